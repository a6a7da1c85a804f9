//! Settings that a running server takes over: who its clients are and what they may do.

use std::fmt;
use std::sync::Arc;

use tokio::runtime::Handle;
use toolcrib_core::Toolset;
use toolcrib_tool::ContextValues;

use crate::auth::client::{Clients, Roster};
use crate::auth::clients::LiveClients;
use crate::{Backend, HttpError, Listen, ServerConfig, Token};

/// The part of a running server's settings that can change: its tokens, and the rights, toolsets and
/// limits of their clients. Cloning it is cheap.
///
/// Made by [`HttpServer::settings`](crate::HttpServer::settings).
#[derive(Clone)]
pub struct ServerSettings(Arc<Parts>);

struct Parts {
    roster: Roster,
    clients: Arc<LiveClients>,
    /// The operator's token where the server made one at its start.
    made: Option<Token>,
    listen: Listen,
    no_auth: bool,
}

/// Settings that were found usable and wait to be [applied](Self::apply).
#[must_use = "nothing changes before it is applied"]
pub struct ChangedSettings {
    clients: Arc<LiveClients>,
    backend: Arc<dyn Backend>,
    next: Option<Clients>,
}

impl ServerSettings {
    pub(crate) fn new(
        roster: Roster,
        clients: Arc<LiveClients>,
        made: Option<Token>,
        config: &ServerConfig,
    ) -> Self {
        let (listen, no_auth) = (config.listen.clone(), config.no_auth);
        Self(Arc::new(Parts { roster, clients, made, listen, no_auth }))
    }

    /// Checks settings and makes the clients they name, with the toolsets that `toolsets` finds. Nothing
    /// changes yet.
    ///
    /// `listen`, `no_auth`, `connections` and the other settings of the listener itself stay as they
    /// were at the start. A token that the server made at its start stays good as long as the settings
    /// name no other; settings that would leave nobody a token are refused.
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
        let backend = Arc::clone(own.roster.backend());
        if config.no_auth || own.no_auth {
            // Whether tokens are asked for is decided at the start.
            return Ok(ChangedSettings { clients, backend, next: None });
        }
        let token = config.token.as_ref().or(own.made.as_ref());
        if token.is_none() && config.tokens.is_empty() {
            return Err(HttpError::NoTokenLeft);
        }
        let effective = ServerConfig { listen: own.listen.clone(), ..config.clone() };
        let next = own.roster.clients(&effective, token, toolsets, Some(&clients.now()))?;
        Ok(ChangedSettings { clients, backend, next: Some(next) })
    }
}

impl ChangedSettings {
    /// Puts the settings into effect and gives the names of the clients whose tokens are no longer good
    /// or whose rights, tools, rules or context have changed.
    ///
    /// Everything ends that a token let in which is no longer good: requests with 401, streams and MCP
    /// sessions. Where a client may do less than before, its requests end with 403 that may need what it
    /// lost, and the others go on; its MCP sessions end where it calls with other tools, rules or values.
    /// Calls that wait for approval and that their client may no longer make are denied, now where there
    /// is a tokio runtime, else when somebody approves them. Clients of which nothing or only limits have
    /// changed keep everything that runs.
    pub fn apply(self) -> Vec<Arc<str>> {
        let ended = self.next.map(|next| self.clients.replace(next)).unwrap_or_default();
        if let (false, Ok(runtime)) = (ended.is_empty(), Handle::try_current()) {
            let (backend, clients) = (self.backend, ended.clone());
            runtime.spawn(async move {
                let options = backend.turn_options(ContextValues::new());
                let approvals = backend.executor().approvals(options);
                if let Err(error) = approvals.end_revoked(&clients).await {
                    tracing::warn!(%error, "the calls of revoked clients that wait could not be denied");
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
