//! Clients: the owners of tokens, with their rights, limits and sessions.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use toolcrib_core::approval::CallerStatus;
use toolcrib_core::fingerprint::Fingerprint;
use toolcrib_core::suspension::Caller;
use toolcrib_core::{Executor, Toolset, Turn, TurnOptions};
use toolcrib_mcp::{McpHttpOptions, McpHttpService, McpServer};
use toolcrib_tool::{ContextValues, Identity};

use crate::api::events::names;
use crate::auth::client_limits::ClientLimits;
use crate::auth::entitlement::{AdmittedRequest, Authority, Entitlement};
use crate::settings::ClientConfig;
use crate::{Backend, HttpError, Right, ServerConfig, Token, TokenHash};

/// The name of the only client of a server without authentication.
pub(crate) const ANYONE: &str = "anyone";

/// The owner of the operator's idempotency keys. No client can have this name, since those of
/// clients have a prefix.
const OPERATOR: &str = "operator";

/// The name of the client of the owner's socket. No client in the config can have it.
const OWNER: &str = "owner";
/// The client of runs that the owner of the state folder begins with `toolcrib run`. Unlike clients in `tokens`, it has
/// no key.
const COMMAND_LINE: &str = "command line";

/// A client of the server.
pub(crate) struct Client {
    /// Its name in the config; for logs and metrics.
    pub(crate) name: Arc<str>,
    /// The owner of its idempotency keys, which differs from that of another client with the same
    /// name.
    pub(crate) key_owner: Arc<str>,
    /// All its settings, to detect after a reload whether it has changed.
    settings_value: Value,
    /// What it may do, while its entry does not change.
    entitlement: Arc<Entitlement>,
    /// Notifies its running requests of changes; shared with earlier clients of the same token.
    authority: Arc<Authority>,
    /// Its own MCP server, through which its sessions are ended.
    server: McpServer,
    turn: TurnOptions,
    /// Distinguishes it from another client with the same name: a fingerprint of its token's hash.
    /// None if no other client can have the name.
    token_key: Option<Arc<str>>,
    executor: Executor,
    pub(crate) limits: ClientLimits,
    mcp: McpHttpService,
    /// The options of its MCP services, which share one session limit.
    options: McpHttpOptions,
    /// The toolset that it is limited to.
    fixed_toolset: Option<Arc<str>>,
    /// MCP services for other toolsets, created on first use.
    toolset_services: Arc<Mutex<HashMap<String, ToolsetService>>>,
    factory: Arc<McpFactory>,
}

/// A client without a limit of its own may use one in this many connections.
const SHARE_OF_CONNECTIONS: usize = 4;

/// An MCP service for one toolset, as the toolset was when the service was created.
struct ToolsetService {
    toolset: Toolset,
    server: McpServer,
    service: McpHttpService,
}

/// The dependencies of MCP services.
struct McpFactory {
    backend: Arc<dyn Backend>,
    mcp: McpServer,
    options: McpHttpOptions,
}

/// Why a client cannot use a toolset.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ToolsetError {
    /// The server has no toolset with that name.
    Unknown,
    /// The client is limited to this toolset.
    Bound(Arc<str>),
}

impl Client {
    /// The MCP service for all its tools.
    pub(crate) fn mcp(&self) -> &McpHttpService {
        &self.mcp
    }

    /// The MCP service for one toolset. A client that is limited to a toolset does not learn which
    /// others exist.
    pub(crate) fn mcp_within(&self, toolset: &str) -> Result<McpHttpService, ToolsetError> {
        if let Some(fixed_toolset) = &self.fixed_toolset {
            let own = **fixed_toolset == *toolset;
            return if own {
                Ok(self.mcp.clone())
            } else {
                Err(ToolsetError::Bound(Arc::clone(fixed_toolset)))
            };
        }
        let found = self.factory.backend.toolset(toolset).ok_or(ToolsetError::Unknown)?;
        let mut toolset_services =
            self.toolset_services.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = toolset_services.get(toolset) {
            if known.toolset == found {
                return Ok(known.service.clone());
            }
            // The toolset has changed: end its sessions, so that none continues with the old tools.
            known.server.close();
        }
        let server = self.server.for_client(self.turn.clone().toolset(found.clone()));
        let service = server.http_service(self.options.clone());
        let known = ToolsetService { toolset: found, server, service: service.clone() };
        toolset_services.insert(toolset.to_owned(), known);
        Ok(service)
    }

    /// Ends everything that its token has started: running requests, streams and sessions.
    fn revoke(&self) {
        self.authority.revoke();
        self.end_sessions();
    }

    /// Ends its sessions and their calls, which it is no longer entitled to.
    fn end_sessions(&self) {
        let toolset_services = self.toolset_services.lock().unwrap_or_else(PoisonError::into_inner);
        toolset_services.values().for_each(|known| known.server.revoke());
        self.server.revoke();
    }

    /// Admits a request that needs this right; `tool` is the only tool that it calls, if that is
    /// known.
    pub(crate) fn admit_request(&self, right: Right, tool: Option<Arc<str>>) -> AdmittedRequest {
        self.authority.enter(&self.entitlement, right, tool)
    }

    pub(crate) fn may(&self, right: Right) -> bool {
        self.entitlement.has(right)
    }

    /// What it may do, while its entry does not change.
    pub(crate) fn entitlement(&self) -> &Entitlement {
        &self.entitlement
    }

    /// The holder of its token, and the token.
    fn holder(&self) -> (&str, &Value) {
        let own = &self.settings_value["own"]["hash"];
        (&self.key_owner, if own.is_null() { &self.settings_value["hash"] } else { own })
    }

    /// Replaces a client that had this token before. Its running requests are then told of the
    /// change; if calls are made in the same way, it also keeps its sessions.
    fn replacing(mut self, before: &Self) -> Self {
        self.authority = Arc::clone(&before.authority);
        if self.entitlement.has_same_calls(&before.entitlement) {
            self.server = before.server.clone();
            self.mcp = before.mcp.clone();
            self.toolset_services = Arc::clone(&before.toolset_services);
        }
        self
    }

    /// Whether it is the operator or the owner of the server's socket.
    pub(crate) fn is_operator(&self) -> bool {
        *self.key_owner == *OPERATOR
    }

    /// The options of its turns, if it is the client that made a suspended call and may still make
    /// calls; otherwise the reason.
    fn as_caller(&self, caller: &Caller) -> Result<TurnOptions, &'static str> {
        if self.token_key.as_deref() != caller.client_key() {
            Err("its token was revoked")
        } else if !self.may(Right::Call) {
            Err("it lost the right `call`")
        } else {
            Ok(self.turn.clone())
        }
    }

    /// Whether it is limited to a toolset.
    pub(crate) fn has_toolset(&self) -> bool {
        self.turn.own_toolset().is_some()
    }

    /// The options of its turns.
    pub(crate) fn turn_options(&self) -> TurnOptions {
        self.turn.clone()
    }

    /// A turn for one request.
    pub(crate) fn turn(&self, with: impl FnOnce(TurnOptions) -> TurnOptions) -> Turn {
        self.executor.turn(with(self.turn.clone()))
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("name", &self.name).finish_non_exhaustive()
    }
}

/// All clients, by token.
#[derive(Debug)]
pub(crate) enum Clients {
    /// A single client: no token is required.
    Anyone(Arc<Client>),
    /// Clients by the hashes of their tokens.
    Named(Vec<(TokenHash, Arc<Client>)>),
}

impl Clients {
    /// The owner of a token. The token is hashed once and compared with all hashes, so that the
    /// duration does not reveal which one matches.
    pub(crate) fn by_token(&self, offered: &str) -> Option<&Arc<Client>> {
        let Self::Named(clients) = self else { return None };
        let offered = TokenHash::of(offered);
        clients.iter().fold(
            None,
            |found, (hash, client)| {
                if hash.is_same(&offered) { Some(client) } else { found }
            },
        )
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Client>> {
        let (anyone, named) = match self {
            Self::Anyone(client) => (Some(client), [].as_slice()),
            Self::Named(clients) => (None, clients.as_slice()),
        };
        anyone.into_iter().chain(named.iter().map(|(_, client)| client))
    }

    /// What the client that made a suspended call may do now.
    pub(crate) fn caller_status(&self, caller: &Caller) -> CallerStatus {
        let Some(name) = caller.client_name() else { return CallerStatus::Unmanaged };
        let is_command_line = name == COMMAND_LINE && caller.client_key().is_none();
        if name == OWNER || is_command_line {
            // The owner of the server's process and of its state folder is not in this table and cannot be revoked.
            return CallerStatus::Unmanaged;
        }
        let known = self.all().find(|client| *client.name == *name);
        let unknown = "it was removed, or the server that it was connected to has ended";
        let current = known.ok_or(unknown).and_then(|client| client.as_caller(caller));
        match current {
            Ok(options) => CallerStatus::Current(Box::new(options)),
            Err(reason) => CallerStatus::Revoked { reason: reason.to_owned() },
        }
    }

    /// Ends everything that `next` no longer allows. Returns the names of the clients that were
    /// revoked or whose rights have changed.
    pub(crate) fn replace_with(&self, next: &Self) -> Vec<Arc<str>> {
        let mut ended = Vec::new();
        for client in self.all() {
            let same = |other: &&Arc<Client>| Arc::ptr_eq(&other.authority, &client.authority);
            let is_told = match next.all().find(same) {
                None => {
                    client.revoke();
                    true
                }
                Some(other) => {
                    // Set this before the sessions end, so that their clients learn the reason.
                    other.authority.set(&other.entitlement);
                    let has_sessions = client.entitlement.has_same_calls(&other.entitlement);
                    if !has_sessions {
                        client.end_sessions();
                    }
                    !has_sessions || !client.entitlement.is_covered_by(&other.entitlement)
                }
            };
            if is_told {
                ended.push(Arc::clone(&client.name));
            }
        }
        ended
    }
}

/// Creates clients, once the server's address is known.
pub(crate) struct ClientFactory {
    factory: Arc<McpFactory>,
}

/// Looks up a toolset by name.
pub(crate) type Toolsets<'a> = &'a dyn Fn(&str) -> Option<Toolset>;

impl ClientFactory {
    pub(crate) fn new(
        backend: &Arc<dyn Backend>,
        mcp: &McpServer,
        options: McpHttpOptions,
    ) -> Self {
        let factory = McpFactory { backend: Arc::clone(backend), mcp: mcp.clone(), options };
        Self { factory: Arc::new(factory) }
    }

    pub(crate) fn backend(&self) -> &Arc<dyn Backend> {
        &self.factory.backend
    }

    /// The only client of the owner's socket, with every right and no limit.
    pub(crate) fn owner(&self) -> Clients {
        let turn = self.factory.backend.turn_options(ContextValues::new());
        let who =
            ClientIdentity { name: OWNER, key_owner: OPERATOR.into(), rights: Right::ALL.to_vec() };
        Clients::Anyone(Arc::new(self.client(who, turn, &ServerConfig::default(), None)))
    }

    /// Creates the clients; `token` is the operator's, if there is one. Clients of `before` with
    /// the same settings are kept, with their sessions and limits.
    pub(crate) fn clients(
        &self,
        config: &ServerConfig,
        token: Option<&Token>,
        toolsets: Toolsets<'_>,
        before: Option<&Clients>,
    ) -> Result<Clients, HttpError> {
        let kept = |client: Client| {
            let known = before
                .and_then(|clients| clients.all().find(|other| other.holder() == client.holder()));
            match known {
                Some(other) if other.settings_value == client.settings_value => Arc::clone(other),
                Some(other) => Arc::new(client.replacing(other)),
                None => Arc::new(client),
            }
        };
        let host_turn = || {
            let turn = self.factory.backend.turn_options(ContextValues::new());
            within(turn, config, None, toolsets)
        };
        if config.no_auth {
            // Any local process can connect, so operations and decisions need a token.
            let rights = vec![Right::Call, Right::Observe];
            let who = ClientIdentity { name: ANYONE, key_owner: ANYONE.into(), rights };
            let turn = of_anyone(host_turn()?, self.factory.backend.executor());
            let anyone = self.client(who, turn, config, None);
            return Ok(Clients::Anyone(kept(anyone)));
        }
        let mut clients = Vec::new();
        if let Some(token) = token {
            let rights = Right::ALL.to_vec();
            let who = ClientIdentity { name: OPERATOR, key_owner: OPERATOR.into(), rights };
            let mut operator = self.client(who, host_turn()?, config, None);
            operator.settings_value["hash"] = token.hash().to_string().into();
            clients.push((token.hash(), kept(operator)));
        }
        for (name, own) in &config.tokens {
            let turn = self.turn_of(name, config, own, toolsets)?;
            let who = ClientIdentity {
                name,
                key_owner: format!("tokens.{name}"),
                rights: own.rights.clone(),
            };
            let client = self.client(who, turn, config, Some(own));
            clients.push((own.hash.clone(), kept(client)));
        }
        Ok(Clients::Named(clients))
    }

    fn turn_of(
        &self,
        name: &str,
        config: &ServerConfig,
        own: &ClientConfig,
        toolsets: Toolsets<'_>,
    ) -> Result<TurnOptions, HttpError> {
        let mut values = ContextValues::new();
        let is_stated = |key: &str| own.context.get(key).is_some_and(|value| !value.is_null());
        if !is_stated(Identity::USER) {
            // Clients share no cached answers, waiting calls or outputs.
            values = values.with_identity(&Identity::user(name));
        }
        let is_nobody =
            |key: &str| [Identity::USER, Identity::TENANT].contains(&key) && !is_stated(key);
        for (key, value) in own.context.iter().filter(|(key, _)| !is_nobody(key)) {
            values = values.with(key.as_str(), value.clone());
        }
        let turn = self.factory.backend.turn_options(values).scope(own.policy.clone());
        within(turn, config, own.toolset.as_deref().map(|toolset| (name, toolset)), toolsets)
    }

    fn client(
        &self,
        who: ClientIdentity<'_>,
        turn: TurnOptions,
        config: &ServerConfig,
        own: Option<&ClientConfig>,
    ) -> Client {
        // Options that the host sets never grant a right: the client's own rights decide.
        let turn = turn.may_approve(who.rights.contains(&Right::Approve)).client(who.name);
        // The operator's token may change at every start.
        let token_key = own.map(|own| Fingerprint::of_json(&json!(own.hash)).to_string());
        let token_key: Option<Arc<str>> = token_key.map(Arc::from);
        let turn = match &token_key {
            Some(key) => turn.client_key(Arc::clone(key)),
            None => turn,
        };
        let rate = own.and_then(|own| own.rate).or(config.rate);
        let concurrent = own
            .and_then(|own| own.concurrent)
            .or(config.concurrent.map(std::num::NonZeroUsize::get))
            // A named client must not use up the connections of all.
            .or(own.map(|_| (config.connections / SHARE_OF_CONNECTIONS).max(1)));
        let fixed_toolset =
            own.and_then(|own| own.toolset.as_deref()).or(config.toolset.as_deref());
        let settings_value = json!({
            "keys": who.key_owner,
            "own": own,
            "rate": rate,
            "concurrent": concurrent,
            "toolset": fixed_toolset,
            "tools": turn.own_toolset(),
        });
        let server = self.factory.mcp.for_client(turn.clone());
        let executor = self.factory.backend.executor().clone();
        let entitlement = Entitlement::new(who.rights, turn.clone(), own, executor.clone());
        let entitlement = Arc::new(entitlement);
        let sessions = self.factory.backend.mcp_sessions().for_another_client();
        let options = self.factory.options.clone().sessions(sessions);
        Client {
            name: who.name.into(),
            key_owner: who.key_owner.into(),
            settings_value,
            authority: Arc::new(Authority::new(&entitlement)),
            entitlement,
            limits: ClientLimits::new(rate.map(|rate| rate.0), concurrent),
            mcp: server.http_service(options.clone()),
            options,
            server,
            fixed_toolset: fixed_toolset.map(Arc::from),
            toolset_services: Arc::default(),
            factory: Arc::clone(&self.factory),
            executor,
            turn,
            token_key,
        }
    }
}

/// The options of turns of whoever uses a server without a token. They have an identity of their own, `anyone`, so that
/// nothing that is kept for the operator or for the command line is theirs, unless `turn` states a user.
pub fn of_anyone(turn: TurnOptions, executor: &Executor) -> TurnOptions {
    let stated = executor.turn(turn.clone());
    let user = names(stated.identity()).and_then(|[_, user]| user);
    match user {
        Some(_) => turn,
        None => turn.identity(Identity::user(ANYONE)),
    }
}

/// Limits a client to its own toolset, or else to the server's.
fn within(
    turn: TurnOptions,
    config: &ServerConfig,
    own: Option<(&str, &str)>,
    toolsets: Toolsets<'_>,
) -> Result<TurnOptions, HttpError> {
    let (key, toolset) = match (own, &config.toolset) {
        (Some((client, toolset)), _) => (format!("tokens.{client}.toolset"), toolset),
        (None, Some(toolset)) => ("toolset".to_owned(), toolset.as_str()),
        (None, None) => return Ok(turn),
    };
    match toolsets(toolset) {
        Some(found) => Ok(turn.toolset(found)),
        None => Err(HttpError::Toolset { key, toolset: toolset.to_owned() }),
    }
}

/// The identity and rights of a client, without its limits.
struct ClientIdentity<'a> {
    name: &'a str,
    key_owner: String,
    rights: Vec<Right>,
}
