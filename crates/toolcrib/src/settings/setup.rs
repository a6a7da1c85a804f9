//! Builds a crib from a config: applies the settings, then opens stores.

#[cfg(unix)]
use std::io;
use std::sync::Arc;

use toolcrib_core::masking::{MaskError, SHORTEST_SECRET};
use toolcrib_runners::{ExposeSecret, RunnerHost, SecretString, Secrets};

use super::Config;
use crate::ToolcribBuilder;
use crate::control_plane::ExposedFiles;
use crate::manifests::lock::LockKeeper;
use crate::manifests::trust::TrustKeeper;

/// Why a resource that a config names could not be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum SetupError {
    /// A directory or file could not be opened.
    Open {
        /// The key in the config.
        key: &'static str,
        /// The problem, with the path.
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

/// The text contains the cause, which is therefore not reported again as its source.
impl std::error::Error for SetupError {}

impl Config {
    /// The host of this config's manifests: the working directory of their commands, their secrets,
    /// and the manifests that the operator trusts.
    pub fn runner_host(&self, secrets: Secrets) -> RunnerHost {
        let host = RunnerHost::new(&self.workspace.root)
            .with_secrets(secrets)
            .with_confinement(self.confinement_defaults())
            .with_homes(self.homes_folder())
            .with_trust(TrustKeeper::of(self));
        if let Some(state) = &self.state.dir {
            host.control_plane.record_exposures(Arc::new(ExposedFiles::in_state(state)));
        }
        #[cfg(feature = "builtins")]
        let host = host.with_sensitive(self.paths.sensitive_extra.clone());
        host
    }
}

impl ToolcribBuilder {
    /// Applies the settings that require no other resources: executor, names, toolsets, policy, context, folders of the
    /// built-in tools, and the path of the lock, which [`build`](Self::build) reads. [`resources`](Self::resources)
    /// opens the rest.
    ///
    /// ```
    /// use toolcrib::Toolcrib;
    /// use toolcrib::settings::Config;
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
        #[cfg(feature = "builtins")]
        let this = self
            .builtins(config.builtin_tools())
            .enabled_builtins(config.builtins.enabled.clone())
            .meta_tools(config.builtins.meta);
        #[cfg(not(feature = "builtins"))]
        let this = self;
        #[cfg(feature = "agent")]
        let this = this.agents(config);
        #[cfg(feature = "crawler")]
        let this = this.web(config.web_settings());
        let builder = this
            .own_places(config.own_places())
            .working_folders(config.working_folders())
            .executor(config.executor_config())
            .context(config.context_values())
            .on_duplicate(config.registry.on_duplicate)
            .allow_override(&config.registry.allow_override)
            .lock(LockKeeper::new(&config.registry.lock_file, config.registry.lock))
            .policy(config.policy.clone());
        config
            .own_toolsets()
            .into_iter()
            .fold(builder, |builder, (name, toolset)| builder.toolset(name, toolset))
    }

    /// Sets the secrets that manifests refer to, as [`Config::read_secrets`] returns them: their values are masked in
    /// all output of calls, also after [`Toolcrib::refresh_secrets`](crate::Toolcrib::refresh_secrets).
    ///
    /// A [`mask`](Self::mask) that is set later replaces them. Secrets that are too short to be masked are named in the
    /// log; [`Secrets::missing`] names those that are missing.
    pub fn secrets(self, secrets: &Secrets) -> Result<Self, SetupError> {
        let mut builder = self;
        builder.executor =
            builder.executor.mask_also(values(&secrets.values())).map_err(SetupError::Secrets)?;
        builder.secrets = secrets.clone();
        Ok(builder)
    }

    /// Creates the workspace if it does not exist, and opens the state directory and the audit log that a config names:
    /// for programs that make calls. Without a state directory, calls wait in memory. The config's paths must be
    /// relative to the current directory ([`Config::relative_to`]).
    #[cfg(unix)]
    pub fn resources(self, config: &Config) -> Result<Self, SetupError> {
        use std::sync::Arc;

        use toolcrib_core::spill::SpillLimits;

        use crate::stores::{
            AuditSinks, Database, FileAudit, Runs, Spills, StateDir, Suspensions, SyslogAudit,
        };

        let open = |key| move |source: io::Error| SetupError::Open { key, source };
        if let Err(error) = config.make_workspace() {
            let folder = config.workspace.root.display();
            tracing::warn!(
                %folder, %error,
                "the workspace cannot be made: tools that work in it fail; make the folder, or name \
                 another one in `workspace.root`"
            );
        }
        let mut builder = self;
        #[cfg(feature = "http")]
        if let Some(token) = &config.server.token {
            // This applies without a listener too: a tool may find the token in the environment of
            // another program.
            let secret = [token.reveal().to_owned()];
            builder.executor = builder.executor.mask_also(secret).map_err(SetupError::Secrets)?;
        }
        let shares = &config.limits.per_client;
        // Without a directory the code is the same, but nothing outlives the program.
        let (database, mut spills) = if let Some(dir) = &config.state.dir {
            let state = StateDir::open(dir).map_err(open("state.dir"))?;
            StateDir::check_owner(dir).map_err(open("state.dir"))?;
            (state.database().map_err(open("state.dir"))?, Spills::disk_limits())
        } else {
            let database = Database::in_memory().map_err(io::Error::other);
            (database.map_err(open("state.dir"))?, SpillLimits::default())
        };
        database.keep(config.state.keep.retention());
        // `state.keep` says for how long.
        spills.ttl = std::time::Duration::MAX;
        builder = builder
            .database(database.clone())
            .spill(Arc::new(Spills::new(&database, shares.spill_limits(spills))))
            .suspensions(Arc::new(Suspensions::within(&database, shares.run_bounds())))
            .runs(Arc::new(Runs::within(&database, shares.run_bounds())));
        #[cfg(feature = "mcp")]
        {
            builder = builder.pins(Arc::new(crate::stores::DatabasePins::new(&database)));
        }
        #[cfg(feature = "mcp")]
        {
            builder = builder.task_store(Arc::new(crate::stores::Tasks::new(&database)));
        }
        #[cfg(feature = "http")]
        {
            let mut limits = toolcrib_http::AnswerLimits::default().with_keys(shares.keys.get());
            limits.kept = std::time::Duration::MAX;
            builder = builder
                .answers(Arc::new(crate::stores::Answers::within(&database, limits)))
                .mcp_sessions(shares.sessions.get());
        }
        if let Some(why) = config.misplaced_audit_log() {
            return Err(open("audit.file")(io::Error::new(io::ErrorKind::InvalidInput, why)));
        }
        let mut sinks =
            AuditSinks { collector: builder.audit_sinks.collector.take(), ..AuditSinks::default() };
        if config.audit.otlp && sinks.collector.is_none() {
            let problem = "no collector is set: the program that embeds toolcrib has to set one";
            return Err(open("audit.otlp")(io::Error::new(io::ErrorKind::InvalidInput, problem)));
        }
        if let Some(path) = &config.audit.file {
            let file = FileAudit::rotating(path, config.audit.rotation());
            sinks.file = Some(Arc::new(file.map_err(open("audit.file"))?));
        }
        if let Some(address) = &config.audit.syslog {
            let syslog = SyslogAudit::start(address.clone()).map_err(open("audit.syslog"))?;
            sinks.syslog = Some(Arc::new(syslog));
        }
        if !sinks.is_empty() {
            builder = builder.audit_sinks(sinks, config.audit.arguments);
        }
        Ok(builder)
    }
}

/// The values for the mask. Values that it cannot hide are named in the log.
pub(crate) fn values(secrets: &[(String, SecretString)]) -> Vec<String> {
    let value = |(name, secret): &(String, SecretString)| {
        let value = secret.expose_secret().to_owned();
        let bytes = value.trim().len();
        if bytes < SHORTEST_SECRET {
            tracing::warn!(
                secret = %name,
                bytes,
                "the secret is too short to be masked: give it {SHORTEST_SECRET} bytes or more"
            );
        }
        value
    };
    secrets.iter().map(value).collect()
}
