//! The web tools that a crib offers, which a config reload can change.

use std::sync::Arc;

use toolcrib_core::Pattern;
use toolcrib_runners::Secrets;
use toolcrib_tool::{DefinitionError, NativeTool, ToolEntry, native_tools};
use toolcrib_web::{ApiKeys, Web, WebSettings};

/// The service of the web tools.
#[derive(Debug, Clone)]
pub(crate) struct OfferedWeb {
    pub(crate) service: Arc<Web>,
}

impl OfferedWeb {
    /// The service with these settings. Its keys are secrets of the crib.
    pub(crate) fn new(settings: WebSettings, secrets: &Secrets) -> Self {
        let secrets = secrets.clone();
        let find = move |name: &str| secrets.get(name).map_err(|missing| missing.to_string());
        Self { service: Arc::new(Web::new(settings, ApiKeys::new(find))) }
    }

    /// The entries of the tools that these settings offer and whose names match one of the patterns. There are none unless
    /// linked-in tools are offered (`native`).
    #[expect(clippy::unused_self, reason = "only who has the service offers the tools")]
    pub(crate) fn entries(
        &self,
        settings: &WebSettings,
        enabled: Option<&[Pattern]>,
        native: bool,
    ) -> Result<Vec<ToolEntry>, DefinitionError> {
        let is_enabled = |name: &str| {
            enabled.is_none_or(|enabled| enabled.iter().any(|pattern| pattern.matches(name)))
        };
        let offered =
            own_tools().filter(|tool| settings.offers(tool.name) && is_enabled(tool.name));
        offered.filter(|_| native).map(NativeTool::entry).collect()
    }
}

fn own_tools() -> impl Iterator<Item = &'static NativeTool> {
    native_tools().into_iter().filter(|tool| tool.krate == toolcrib_web::CRATE)
}

/// The names of all web tools, offered or not.
pub(super) fn names() -> impl Iterator<Item = String> {
    own_tools().map(|tool| tool.name.to_owned())
}
