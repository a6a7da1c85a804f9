//! Settings that a running server can change: its clients and their rights.

use std::fmt;
use std::sync::Arc;

use tokio::runtime::Handle;
use toolcrib_core::Toolset;
use toolcrib_tool::ContextValues;

use crate::auth::client::{ClientFactory, Clients};
use crate::auth::clients::LiveClients;
use crate::{Backend, HttpError, Listen, ServerConfig, Token};

/// The settings of a running server that can change: its tokens, and the rights, toolsets and
/// limits of their clients. Clones are cheap.
///
/// Created by [`HttpServer::settings`](crate::HttpServer::settings).
#[derive(Clone)]
pub struct ServerSettings(Arc<SettingsState>);

struct SettingsState {
    client_factory: ClientFactory,
    clients: Arc<LiveClients>,
    /// The operator's token, if the server generated one at its start.
    generated_token: Option<Token>,
    listen: Listen,
    no_auth: bool,
}

/// Validated settings that wait to be [applied](Self::apply).
#[must_use = "nothing changes before it is applied"]
pub struct ChangedSettings {
    clients: Arc<LiveClients>,
    backend: Arc<dyn Backend>,
    next: Option<Clients>,
}

impl ServerSettings {
    pub(crate) fn new(
        client_factory: ClientFactory,
        clients: Arc<LiveClients>,
        generated_token: Option<Token>,
        config: &ServerConfig,
    ) -> Self {
        let (listen, no_auth) = (config.listen.clone(), config.no_auth);
        Self(Arc::new(SettingsState { client_factory, clients, generated_token, listen, no_auth }))
    }

    /// Validates settings and creates the clients they name, looking up toolsets with `toolsets`.
    /// Nothing changes yet.
    ///
    /// `listen`, `no_auth`, `connections` and the other settings of the listener itself stay as
    /// they were at the start. A token generated at the start stays valid as long as the settings
    /// name no other; settings without any valid token are refused.
    pub fn prepare(
        &self,
        config: &ServerConfig,
        toolsets: &dyn Fn(&str) -> Option<Toolset>,
    ) -> Result<ChangedSettings, HttpError> {
        let own = &*self.0;
        config.check()?;
        // What only a restart puts into effect has to be right as well.
        config.host_rules(None)?;
        config.origin_rules(None)?;
        let clients = Arc::clone(&own.clients);
        let backend = Arc::clone(own.client_factory.backend());
        if config.no_auth || own.no_auth {
            // Whether tokens are required is decided at the start.
            return Ok(ChangedSettings { clients, backend, next: None });
        }
        let token = config.token.as_ref().or(own.generated_token.as_ref());
        if token.is_none() && config.tokens.is_empty() {
            return Err(HttpError::NoTokenLeft);
        }
        let effective = ServerConfig { listen: own.listen.clone(), ..config.clone() };
        let next = own.client_factory.clients(&effective, token, toolsets, Some(&clients.now()))?;
        Ok(ChangedSettings { clients, backend, next: Some(next) })
    }
}

impl ChangedSettings {
    /// Puts the settings into effect. Returns the names of the clients that were revoked or whose
    /// rights, tools, rules or context have changed.
    ///
    /// Everything that a revoked token has started ends: requests with 401, streams, and MCP
    /// sessions. If a client's rights shrink, requests that may need the lost rights end with 403
    /// and the others continue; its MCP sessions end if its tools, rules or values have changed.
    /// Calls that wait for approval and that their client may no longer make are denied:
    /// immediately within a tokio runtime, else when somebody approves them. Clients whose entry is
    /// unchanged, or changed only in its limits, keep everything that runs.
    pub fn apply(self) -> Vec<Arc<str>> {
        let ended = self.next.map(|next| self.clients.replace(next)).unwrap_or_default();
        if let (false, Ok(runtime)) = (ended.is_empty(), Handle::try_current()) {
            let (backend, clients) = (self.backend, ended.clone());
            runtime.spawn(async move {
                let options = backend.turn_options(ContextValues::new());
                let approvals = backend.executor().approvals(options);
                if let Err(error) = approvals.end_revoked(&clients).await {
                    tracing::warn!(%error, "waiting calls of revoked clients could not be denied");
                }
            });
        }
        ended
    }
}

impl fmt::Debug for ServerSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerSettings").field("listen", &self.0.listen).finish_non_exhaustive()
    }
}

impl fmt::Debug for ChangedSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChangedSettings").finish_non_exhaustive()
    }
}
