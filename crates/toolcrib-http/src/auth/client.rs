//! Who asks: the owner of a token, and all that goes with it.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use toolcrib_core::approval::Standing;
use toolcrib_core::fingerprint::Fingerprint;
use toolcrib_core::suspension::Caller;
use toolcrib_core::{Executor, Toolset, Turn, TurnOptions};
use toolcrib_mcp::{McpHttpOptions, McpHttpService, McpServer};
use toolcrib_tool::{ContextValues, Identity};

use crate::auth::client_limits::Gate;
use crate::auth::entitlement::{Authority, Entered, Entitlement};
use crate::settings::ClientConfig;
use crate::{Backend, HttpError, Right, ServerConfig, Token, TokenHash};

/// The name of the client of a server that asks for no token.
pub(crate) const ANYONE: &str = "anyone";

/// Whose idempotency keys the operator's are. No client can have this name: those of clients have a
/// prefix.
const OPERATOR: &str = "operator";

/// The name of the client of the owner's socket. No client in the config can have it.
const OWNER: &str = "owner";

/// A client of the server.
pub(crate) struct Client {
    /// Its name in the config; for logs and metrics.
    pub(crate) name: Arc<str>,
    /// Whose idempotency keys it uses: never those of a client that only has the same name.
    pub(crate) keys: Arc<str>,
    /// All that the settings say of it, to tell after a reload whether it is still the same.
    described: Value,
    /// What it may do, for as long as its entry does not change.
    entitlement: Arc<Entitlement>,
    /// Tells what it let in of changes; shared with all clients that this token had before.
    authority: Arc<Authority>,
    /// Its own MCP server, which ends its sessions.
    server: McpServer,
    turn: TurnOptions,
    /// What tells it from another client of the same name: a fingerprint of its token's hash. None
    /// where nobody else can have the name.
    token_key: Option<Arc<str>>,
    executor: Executor,
    pub(crate) gate: Gate,
    mcp: McpHttpService,
    /// What its services of MCP are made with; their sessions have one bound.
    options: McpHttpOptions,
    /// The toolset beyond which it sees nothing.
    bound: Option<Arc<str>>,
    /// The same over one toolset each, made when they are first asked for.
    narrowed: Arc<Mutex<HashMap<String, Narrowed>>>,
    make: Arc<Make>,
}

/// A client without a limit of its own may have one in so many connections busy.
const SHARE_OF_CONNECTIONS: usize = 4;

/// MCP over one toolset, as it was when the service was made.
struct Narrowed {
    toolset: Toolset,
    server: McpServer,
    service: McpHttpService,
}

/// What services of MCP are made of.
struct Make {
    backend: Arc<dyn Backend>,
    mcp: McpServer,
    options: McpHttpOptions,
}

/// Why a client is not served over a toolset.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoToolset {
    /// The server has none of that name.
    Unknown,
    /// The client is bound to this one.
    Bound(Arc<str>),
}

impl Client {
    /// MCP over all its tools.
    pub(crate) fn mcp(&self) -> &McpHttpService {
        &self.mcp
    }

    /// MCP over one toolset. A client that is bound to one is not told which others there are.
    pub(crate) fn mcp_within(&self, toolset: &str) -> Result<McpHttpService, NoToolset> {
        if let Some(bound) = &self.bound {
            let own = **bound == *toolset;
            return if own {
                Ok(self.mcp.clone())
            } else {
                Err(NoToolset::Bound(Arc::clone(bound)))
            };
        }
        let found = self.make.backend.toolset(toolset).ok_or(NoToolset::Unknown)?;
        let mut narrowed = self.narrowed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = narrowed.get(toolset) {
            if known.toolset == found {
                return Ok(known.service.clone());
            }
            // The toolset has changed: its sessions end, so that none goes on with the tools of before.
            known.server.close();
        }
        let server = self.server.for_client(self.turn.clone().toolset(found.clone()));
        let service = server.http_service(self.options.clone());
        let known = Narrowed { toolset: found, server, service: service.clone() };
        narrowed.insert(toolset.to_owned(), known);
        Ok(service)
    }

    /// Ends what its token let it begin: requests that are being answered, streams and sessions.
    fn revoke(&self) {
        self.authority.revoke();
        self.end_sessions();
    }

    /// Ends its sessions and their calls, which it may not go on with.
    fn end_sessions(&self) {
        let narrowed = self.narrowed.lock().unwrap_or_else(PoisonError::into_inner);
        narrowed.values().for_each(|known| known.server.revoke());
        self.server.revoke();
    }

    /// Lets in a request that needs this right; `tool` is the one tool that it calls, if it is known to
    /// call no other.
    pub(crate) fn let_in(&self, right: Right, tool: Option<Arc<str>>) -> Entered {
        self.authority.enter(&self.entitlement, right, tool)
    }

    pub(crate) fn may(&self, right: Right) -> bool {
        self.entitlement.has(right)
    }

    /// Whose token it is, and which.
    fn holder(&self) -> (&str, &Value) {
        let own = &self.described["own"]["hash"];
        (&self.keys, if own.is_null() { &self.described["hash"] } else { own })
    }

    /// The same client in place of one that had this token before. Once it is in its place, it is told to
    /// what that one let in; where calls are made as before, it has its sessions.
    fn in_place_of(mut self, before: &Self) -> Self {
        self.authority = Arc::clone(&before.authority);
        if self.entitlement.has_same_calls(&before.entitlement) {
            self.server = before.server.clone();
            self.mcp = before.mcp.clone();
            self.narrowed = Arc::clone(&before.narrowed);
        }
        self
    }

    /// Whether it is the operator, or the owner of the server's socket.
    pub(crate) fn is_operator(&self) -> bool {
        *self.keys == *OPERATOR
    }

    /// What its turns are opened with, if it is the client that made a suspended call and may make
    /// calls at all; else why not.
    fn as_caller(&self, caller: &Caller) -> Result<TurnOptions, &'static str> {
        if self.token_key.as_deref() != caller.client_key() {
            Err("its token was revoked")
        } else if !self.may(Right::Call) {
            Err("it lost the right `call`")
        } else {
            Ok(self.turn.clone())
        }
    }

    /// Whether it sees only a part of the tools.
    pub(crate) fn has_toolset(&self) -> bool {
        self.turn.own_toolset().is_some()
    }

    /// A turn over its tools, for one request.
    pub(crate) fn turn(&self, with: impl FnOnce(TurnOptions) -> TurnOptions) -> Turn {
        self.executor.turn(with(self.turn.clone()))
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("name", &self.name).finish_non_exhaustive()
    }
}

/// All clients, and how they are told apart.
#[derive(Debug)]
pub(crate) enum Clients {
    /// Whoever comes: no token is asked for.
    Anyone(Arc<Client>),
    /// By the hashes of their tokens.
    Named(Vec<(TokenHash, Arc<Client>)>),
}

impl Clients {
    /// Whose token that is. It is hashed once and compared with all, so that the time tells nothing of
    /// which.
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

    /// What the client that made a suspended call may do.
    pub(crate) fn standing(&self, caller: &Caller) -> Standing {
        let Some(name) = caller.client_name() else { return Standing::Unmanaged };
        if name == OWNER {
            // Whoever owns the server's process is in no table, and nothing revokes them.
            return Standing::Unmanaged;
        }
        let known = self.all().find(|client| *client.name == *name);
        let unknown = "it was removed, or the server that it was connected to has ended";
        let current = known.ok_or(unknown).and_then(|client| client.as_caller(caller));
        match current {
            Ok(options) => Standing::Current(Box::new(options)),
            Err(reason) => Standing::Revoked { reason: reason.to_owned() },
        }
    }

    /// Ends what `next` does not allow any more. Gives the names of the clients that were revoked or
    /// whose rights have changed.
    pub(crate) fn give_way_to(&self, next: &Self) -> Vec<Arc<str>> {
        let mut ended = Vec::new();
        for client in self.all() {
            let same = |other: &&Arc<Client>| Arc::ptr_eq(&other.authority, &client.authority);
            let is_told = match next.all().find(same) {
                None => {
                    client.revoke();
                    true
                }
                Some(other) => {
                    // Before its sessions end, so that whoever is cut off is told why.
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

/// What clients are made of, once it is known where the server listens.
pub(crate) struct Roster {
    make: Arc<Make>,
}

/// Finds a toolset by its name.
pub(crate) type Toolsets<'a> = &'a dyn Fn(&str) -> Option<Toolset>;

impl Roster {
    pub(crate) fn new(
        backend: &Arc<dyn Backend>,
        mcp: &McpServer,
        options: McpHttpOptions,
    ) -> Self {
        let make = Make { backend: Arc::clone(backend), mcp: mcp.clone(), options };
        Self { make: Arc::new(make) }
    }

    pub(crate) fn backend(&self) -> &Arc<dyn Backend> {
        &self.make.backend
    }

    /// The one client of the owner's socket: every right, no limit.
    pub(crate) fn owner(&self) -> Clients {
        let turn = self.make.backend.turn_options(ContextValues::new());
        let who = Who { name: OWNER, keys: OPERATOR.into(), rights: Right::ALL.to_vec() };
        Clients::Anyone(Arc::new(self.client(who, turn, &ServerConfig::default(), None)))
    }

    /// Makes the clients; `token` is the operator's own, if there is one. Clients of `before` of which
    /// the settings say the same are taken over with their sessions and limits.
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
                Some(other) if other.described == client.described => Arc::clone(other),
                Some(other) => Arc::new(client.in_place_of(other)),
                None => Arc::new(client),
            }
        };
        let host_turn = || {
            let turn = self.make.backend.turn_options(ContextValues::new());
            within(turn, config, None, toolsets)
        };
        if config.no_auth {
            // Whoever is on this machine: what changes the server, and what a person should decide,
            // needs a token.
            let rights = vec![Right::Call, Right::Observe];
            let who = Who { name: ANYONE, keys: ANYONE.into(), rights };
            let anyone = self.client(who, host_turn()?, config, None);
            return Ok(Clients::Anyone(kept(anyone)));
        }
        let mut clients = Vec::new();
        if let Some(token) = token {
            let rights = Right::ALL.to_vec();
            let who = Who { name: OPERATOR, keys: OPERATOR.into(), rights };
            let mut operator = self.client(who, host_turn()?, config, None);
            operator.described["hash"] = token.hash().to_string().into();
            clients.push((token.hash(), kept(operator)));
        }
        for (name, own) in &config.tokens {
            let turn = self.turn_of(name, config, own, toolsets)?;
            let who = Who { name, keys: format!("tokens.{name}"), rights: own.rights.clone() };
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
            // Nobody's answers, waiting calls and outputs are another client's.
            values = values.with_identity(&Identity::user(name));
        }
        let is_nobody =
            |key: &str| [Identity::USER, Identity::TENANT].contains(&key) && !is_stated(key);
        for (key, value) in own.context.iter().filter(|(key, _)| !is_nobody(key)) {
            values = values.with(key.as_str(), value.clone());
        }
        let turn = self.make.backend.turn_options(values).scope(own.policy.clone());
        within(turn, config, own.toolset.as_deref().map(|toolset| (name, toolset)), toolsets)
    }

    fn client(
        &self,
        who: Who<'_>,
        turn: TurnOptions,
        config: &ServerConfig,
        own: Option<&ClientConfig>,
    ) -> Client {
        // What the host attaches to turns never grants a client the right: its own rights decide.
        let turn = turn.may_approve(who.rights.contains(&Right::Approve)).client(who.name);
        // The operator's may be a new one at every start.
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
            // One client of several must not take the connections of all.
            .or(own.map(|_| (config.connections / SHARE_OF_CONNECTIONS).max(1)));
        let bound = own.and_then(|own| own.toolset.as_deref()).or(config.toolset.as_deref());
        let described = json!({
            "keys": who.keys,
            "own": own,
            "rate": rate,
            "concurrent": concurrent,
            "toolset": bound,
            "tools": turn.own_toolset(),
        });
        let server = self.make.mcp.for_client(turn.clone());
        let executor = self.make.backend.executor().clone();
        let entitlement = Entitlement::new(who.rights, turn.clone(), own, executor.clone());
        let entitlement = Arc::new(entitlement);
        let sessions = self.make.backend.mcp_sessions().for_another_client();
        let options = self.make.options.clone().sessions(sessions);
        Client {
            name: who.name.into(),
            keys: who.keys.into(),
            described,
            authority: Arc::new(Authority::new(&entitlement)),
            entitlement,
            gate: Gate::new(rate.map(|rate| rate.0), concurrent),
            mcp: server.http_service(options.clone()),
            options,
            server,
            bound: bound.map(Arc::from),
            narrowed: Arc::default(),
            make: Arc::clone(&self.make),
            executor,
            turn,
            token_key,
        }
    }
}

/// Limits a client to its own toolset, if it has one, or to that of all.
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

/// Who a client is, whatever it is limited to.
struct Who<'a> {
    name: &'a str,
    keys: String,
    rights: Vec<Right>,
}
