//! Who asks: the owner of a token, and all that goes with it.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use toolcrib_core::{Executor, Turn, TurnOptions};
use toolcrib_mcp::{McpHttpOptions, McpHttpService, McpServer};
use toolcrib_tool::ContextValues;

use crate::config::ClientConfig;
use crate::gate::Gate;
use crate::{Backend, HttpError, Right, ServerConfig, Token, TokenHash};

/// A client of the server.
pub(crate) struct Client {
    /// Its name in the config; for logs and metrics.
    pub(crate) name: Arc<str>,
    rights: Vec<Right>,
    turn: TurnOptions,
    executor: Executor,
    pub(crate) gate: Gate,
    mcp: McpHttpService,
    /// The toolset beyond which it sees nothing.
    bound: Option<Arc<str>>,
    /// The same over one toolset each, made when they are first asked for.
    narrowed: Mutex<HashMap<String, McpHttpService>>,
    make: Arc<Make>,
}

/// What services of MCP are made of.
struct Make {
    backend: Arc<dyn Backend>,
    mcp: McpServer,
    options: McpHttpOptions,
}

impl Make {
    fn service(&self, turn: TurnOptions) -> McpHttpService {
        self.mcp.for_client(turn).http_service(self.options.clone())
    }
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
        let mut narrowed = self.narrowed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(service) = narrowed.get(toolset) {
            return Ok(service.clone());
        }
        let found = self.make.backend.toolset(toolset).ok_or(NoToolset::Unknown)?;
        let service = self.make.service(self.turn.clone().toolset(found));
        narrowed.insert(toolset.to_owned(), service.clone());
        Ok(service)
    }

    pub(crate) fn may(&self, right: Right) -> bool {
        self.rights.contains(&right)
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
    /// By their tokens.
    Named(Vec<(Secret, Arc<Client>)>),
}

/// What is known of a client's token.
#[derive(Debug)]
pub(crate) enum Secret {
    Token(Token),
    Hash(TokenHash),
}

impl Clients {
    /// Whose token that is. All are compared, so that the time tells nothing of which.
    pub(crate) fn by_token(&self, offered: &str) -> Option<&Arc<Client>> {
        let Self::Named(clients) = self else { return None };
        let matches = |secret: &Secret| match secret {
            Secret::Token(token) => token.matches(offered),
            Secret::Hash(hash) => hash.matches(offered),
        };
        clients.iter().fold(
            None,
            |found, (secret, client)| {
                if matches(secret) { Some(client) } else { found }
            },
        )
    }
}

/// What clients are made of, once it is known where the server listens.
pub(crate) struct Roster<'a> {
    config: &'a ServerConfig,
    make: Arc<Make>,
}

impl<'a> Roster<'a> {
    pub(crate) fn new(
        config: &'a ServerConfig,
        backend: &Arc<dyn Backend>,
        mcp: &McpServer,
        options: McpHttpOptions,
    ) -> Self {
        let make = Make { backend: Arc::clone(backend), mcp: mcp.clone(), options };
        Self { config, make: Arc::new(make) }
    }

    /// Makes the clients; `token` is the operator's own, if there is one.
    pub(crate) fn clients(&self, token: Option<Token>) -> Result<Clients, HttpError> {
        if self.config.no_auth {
            // Whoever is on this machine: what changes the server, and what a person should decide,
            // needs a token.
            let turn = self.within(self.make.backend.turn_options(ContextValues::new()), None)?;
            let anyone = self.client("anyone", vec![Right::Call, Right::Observe], turn, None);
            return Ok(Clients::Anyone(Arc::new(anyone)));
        }
        let mut clients = Vec::new();
        if let Some(token) = token {
            let turn = self.within(self.make.backend.turn_options(ContextValues::new()), None)?;
            let operator = self.client("operator", Right::ALL.to_vec(), turn, None);
            clients.push((Secret::Token(token), Arc::new(operator)));
        }
        for (name, config) in &self.config.tokens {
            let turn = self.turn_of(name, config)?;
            let client = self.client(name, config.rights.clone(), turn, Some(config));
            clients.push((Secret::Hash(config.hash.clone()), Arc::new(client)));
        }
        Ok(Clients::Named(clients))
    }

    fn turn_of(&self, name: &str, config: &ClientConfig) -> Result<TurnOptions, HttpError> {
        let mut values = ContextValues::new();
        if !config.context.contains_key("user") {
            // Nobody's answers, waiting calls and outputs are another client's.
            values = values.with("user", name);
        }
        for (key, value) in &config.context {
            values = values.with(key.as_str(), value.clone());
        }
        let turn = self.make.backend.turn_options(values).scope(config.policy.clone());
        self.within(turn, config.toolset.as_deref().map(|toolset| (name, toolset)))
    }

    /// Limits a client to its own toolset, if it has one, or to that of all.
    fn within(
        &self,
        turn: TurnOptions,
        own: Option<(&str, &str)>,
    ) -> Result<TurnOptions, HttpError> {
        let (key, toolset) = match (own, &self.config.toolset) {
            (Some((client, toolset)), _) => (format!("tokens.{client}.toolset"), toolset),
            (None, Some(toolset)) => ("toolset".to_owned(), toolset.as_str()),
            (None, None) => return Ok(turn),
        };
        match self.make.backend.toolset(toolset) {
            Some(found) => Ok(turn.toolset(found)),
            None => Err(HttpError::Toolset { key, toolset: toolset.to_owned() }),
        }
    }

    fn client(
        &self,
        name: &str,
        rights: Vec<Right>,
        turn: TurnOptions,
        own: Option<&ClientConfig>,
    ) -> Client {
        let rate = own.and_then(|own| own.rate).or(self.config.rate);
        let concurrent = own.and_then(|own| own.concurrent).or(self.config.concurrent);
        Client {
            name: name.into(),
            rights,
            gate: Gate::new(rate.map(|rate| rate.0), concurrent),
            mcp: self.make.service(turn.clone()),
            bound: own
                .and_then(|own| own.toolset.as_deref())
                .or(self.config.toolset.as_deref())
                .map(Arc::from),
            narrowed: Mutex::default(),
            make: Arc::clone(&self.make),
            executor: self.make.backend.executor().clone(),
            turn,
        }
    }
}
