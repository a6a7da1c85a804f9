//! From a config to a crib: settings first, then what has to be opened.

use std::env::VarError;
#[cfg(unix)]
use std::io;

use toolcrib_core::masking::{Mask, MaskError, SHORTEST_SECRET};

use super::Config;
use crate::ToolcribBuilder;

/// Why what a config names could not be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum SetupError {
    /// A directory or file could not be opened.
    Open {
        /// The key that names it.
        key: &'static str,
        /// What is wrong, with the path.
        source: std::io::Error,
    },
    /// The secrets are too many or too long.
    Secrets(MaskError),
}

impl std::fmt::Display for SetupError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Open { key, source } => write!(f, "{key}: {source}"),
            Self::Secrets(error) => write!(f, "secrets: {error}"),
        }
    }
}

impl std::error::Error for SetupError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Open { source, .. } => Some(source),
            Self::Secrets(error) => Some(error),
        }
    }
}

impl ToolcribBuilder {
    /// Takes the settings of a config that need nothing but themselves: executor, names, toolsets,
    /// policy, context. What [`resources`](Self::resources) opens comes on top.
    ///
    /// ```
    /// use toolcrib::Toolcrib;
    /// use toolcrib::config::Config;
    /// use toolcrib::manifest::decode;
    ///
    /// let text = "toolsets:\n  quiet:\n    exclude: [{names: ['read_*']}]\n";
    /// let config: Config = decode("config.yml", text).map_err(|problems| problems[0].message.clone())?;
    /// let crib = Toolcrib::builder().settings(&config).build()?;
    /// assert!(crib.turn_in("quiet")?.definitions().is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn settings(self, config: &Config) -> Self {
        let builder = self
            .executor(config.executor_config())
            .context(config.context_values())
            .on_duplicate(config.registry.on_duplicate)
            .allow_override(&config.registry.allow_override)
            .policy(config.policy.clone());
        config.toolsets.iter().fold(builder, |builder, (name, toolset)| {
            builder.toolset(name, toolset.clone().with_read_output())
        })
    }

    /// Reads the secrets from the environment and opens the state directory and the audit log, as far
    /// as a config names them: for programs that make calls. Needs the config's paths to be right from
    /// here ([`Config::relative_to`]).
    ///
    /// A secret that is not set, or too short to be masked, is named in the log.
    #[cfg(unix)]
    pub fn resources(self, config: &Config) -> Result<Self, SetupError> {
        use std::sync::Arc;

        use crate::stores::{FileAudit, StateDir};

        let open = |key| move |source: io::Error| SetupError::Open { key, source };
        let mut builder = self.mask(config.mask(|name| std::env::var(name))?);
        if let Some(dir) = &config.state.dir {
            let state = StateDir::open(dir).map_err(open("state.dir"))?;
            builder = builder
                .spill(Arc::new(state.spill().map_err(open("state.dir"))?))
                .suspensions(Arc::new(state.suspensions().map_err(open("state.dir"))?))
                .runs(Arc::new(state.runs().map_err(open("state.dir"))?));
        }
        if let Some(path) = &config.audit.file {
            let file = FileAudit::open(path).map_err(open("audit.file"))?;
            builder = builder.audit_file(file, config.audit.arguments);
        }
        Ok(builder)
    }
}

impl Config {
    /// The mask over the values of [`secrets`](Self::secrets), as `variable` tells them:
    /// [`std::env::var`], usually. What cannot be masked is named in the log.
    pub fn mask(
        &self,
        variable: impl Fn(&str) -> Result<String, VarError>,
    ) -> Result<Mask, SetupError> {
        let mut names = Vec::new();
        let mut values = Vec::new();
        for name in &self.secrets {
            match variable(name) {
                Ok(value) => {
                    names.push(name);
                    values.push(value);
                }
                Err(VarError::NotPresent) => {
                    tracing::warn!(variable = %name, "the secret is not set, so nothing is masked for it");
                }
                Err(VarError::NotUnicode(_)) => {
                    tracing::warn!(variable = %name, "the secret is no text, so it is not masked");
                }
            }
        }
        let mask = Mask::new(values).map_err(SetupError::Secrets)?;
        for ignored in mask.ignored() {
            // Numbers begin at 1.
            if let Some(name) = names.get(ignored.number - 1) {
                tracing::warn!(
                    variable = %name,
                    bytes = ignored.bytes,
                    "the secret is too short to be masked: give it {SHORTEST_SECRET} bytes or more"
                );
            }
        }
        Ok(mask)
    }
}
