//! The built-in tools that a crib offers, which a config reload can change.

use toolcrib_builtins::Builtins;
use toolcrib_core::Pattern;
#[cfg(all(unix, feature = "manifests"))]
use toolcrib_core::{Registry, RegistryError};
use toolcrib_tool::{DefinitionError, Services, ToolEntry, native_tools};

#[cfg(feature = "crawler")]
use super::offered_web::{self, OfferedWeb};

/// The inputs of the built-in tools.
#[derive(Debug, Clone)]
pub(crate) struct OfferedBuiltins {
    pub(crate) builtins: Builtins,
    #[cfg(feature = "crawler")]
    pub(crate) web: OfferedWeb,
    /// Whether linked-in tools are offered at all.
    pub(crate) native: bool,
}

impl OfferedBuiltins {
    /// The entries of the tools whose names match one of the patterns; all entries without
    /// patterns.
    pub(crate) fn entries(
        &self,
        enabled: Option<&[Pattern]>,
    ) -> Result<Vec<ToolEntry>, DefinitionError> {
        let is_enabled = |name: &str| {
            enabled.is_none_or(|enabled| enabled.iter().any(|pattern| pattern.matches(name)))
        };
        let own = native_tools()
            .into_iter()
            .filter(|tool| self.builtins.crates().any(|own| own == tool.krate));
        let mut entries = Vec::new();
        for tool in own.filter(|_| self.native) {
            let exposed = self.builtins.expose(tool, tool.entry()?);
            entries.extend(exposed.filter(|entry| is_enabled(entry.name())));
        }
        Ok(entries)
    }

    /// The same [entries](Self::entries), and those of all other linked-in tools.
    pub(crate) fn all(
        &self,
        enabled: Option<&[Pattern]>,
    ) -> Result<Vec<ToolEntry>, DefinitionError> {
        let mut entries = self.entries(enabled)?;
        #[cfg(feature = "crawler")]
        entries.extend(self.web.entries(&self.web.service.settings(), enabled, self.native)?);
        for tool in native_tools().into_iter().filter(|tool| !self.has(tool.krate)) {
            entries.push(tool.entry()?);
        }
        Ok(entries)
    }

    /// Replaces the built-in tools of a running crib, crate by crate.
    #[cfg(all(unix, feature = "manifests"))]
    pub(crate) fn replace(
        &self,
        registry: &Registry,
        entries: &[ToolEntry],
    ) -> Result<(), RegistryError> {
        for krate in self.builtins.crates() {
            let own = entries.iter().filter(|entry| entry.source.unit == krate);
            registry.replace_native(krate, own.cloned().collect())?;
        }
        Ok(())
    }

    /// Adds the services that the tools need to those of a host.
    pub(crate) fn lend(&self, services: Services) -> Services {
        let services = self.builtins.lend(services);
        #[cfg(feature = "crawler")]
        let services = services.with(std::sync::Arc::clone(&self.web.service));
        services
    }

    /// Whether the linked tools of this crate are built-in tools.
    pub(crate) fn has(&self, krate: &str) -> bool {
        #[cfg(feature = "crawler")]
        if krate == toolcrib_web::CRATE {
            return true;
        }
        self.builtins.crates().any(|own| own == krate)
    }

    /// The names of all built-in tools, enabled or not.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = self.entries(None).unwrap_or_default();
        let names = entries.iter().map(|entry| entry.name().to_owned());
        #[cfg(feature = "crawler")]
        let names = names.chain(offered_web::names());
        names.collect()
    }
}
