//! Agents of a config: models of its providers, with the tools of a crib.

mod error;
#[cfg(feature = "http")]
mod items;
mod live;
#[cfg(feature = "http")]
mod responses;
#[cfg(feature = "http")]
mod served;
mod sub_agents;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use toolcrib_agent::model::{Endpoint, ModelClient};
use toolcrib_agent::sub_agents::SubAgentLimits;
use toolcrib_agent::{Agent, AgentBuilder};
use toolcrib_core::{ToolFilter, Toolset, TurnOptions};

use crate::Toolcrib;
use crate::settings::{ModelName, Provider};

use sub_agents::{SubAgents, with_tools, without_tools};

pub use error::AgentSetupError;
pub(crate) use live::LiveAgents;
pub(crate) use sub_agents::is_sub_agent_tool;
pub use sub_agents::sub_agent_tools;

/// The networks that the operator reaches by naming an address in the config: this machine, and private networks. The
/// local link is not among them, because metadata services of clouds are there.
pub(crate) const LOCAL_NETWORKS: [&str; 7] = [
    "127.0.0.0/8",
    "::1/128",
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "100.64.0.0/10",
    "fc00::/7",
];

/// How a run names its agent: an entry of `agents`, or a model alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentName {
    /// An entry of `agents`.
    Entry(String),
    /// A model, without an instruction and with the limits of `agent`.
    Model(ModelName),
}

/// What the name of a run's agent begins with if it is a model alone.
const MODEL_PREFIX: &str = "model:";

impl fmt::Display for AgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entry(name) => f.write_str(name),
            Self::Model(name) => write!(f, "{MODEL_PREFIX}{name}"),
        }
    }
}

/// The name as a run's journal records it.
impl FromStr for AgentName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.strip_prefix(MODEL_PREFIX) {
            Some(model) => model.parse().map(Self::Model),
            None => Ok(Self::Entry(text.to_owned())),
        }
    }
}

/// A toolset without tools. One that includes nothing by name would include everything.
fn no_tools() -> Toolset {
    Toolset::new().include(ToolFilter::new().name(""))
}

/// The limits of an agent that starts no others.
fn none_below() -> SubAgentLimits {
    let mut limits = SubAgentLimits::default();
    limits.max_depth = 0;
    limits
}

impl Toolcrib {
    /// The agent that is meant if nobody names one: the only one, or the one called `default`; without agents, the only
    /// model of the only provider.
    pub fn default_agent(&self) -> Result<AgentName, AgentSetupError> {
        let config = self.live_agents().current();
        let mut agents = config.agents.keys();
        match (agents.next(), agents.next()) {
            (Some(only), None) => return Ok(AgentName::Entry(only.clone())),
            (Some(_), Some(_)) if config.agents.contains_key("default") => {
                return Ok(AgentName::Entry("default".to_owned()));
            }
            (Some(_), Some(_)) => {
                return Err(AgentSetupError::choose_agent(config.agents.keys()));
            }
            (None, _) => {}
        }
        if config.providers.is_empty() {
            return Err(AgentSetupError::NoProvider);
        }
        let models = config.providers.iter().flat_map(|(provider, own)| {
            own.models.keys().map(move |model| format!("{provider}/{model}"))
        });
        let models: Vec<_> = models.collect();
        match models.as_slice() {
            [only] if config.providers.len() == 1 => {
                only.parse().map(AgentName::Model).map_err(AgentSetupError::other)
            }
            _ => Err(AgentSetupError::choose_model(config.providers.keys(), &models)),
        }
    }

    /// Starts to build an agent of the config that works with these turn options, which should come from
    /// [`turn_options`](Self::turn_options). A toolset of the options limits the agent's own: it has the tools that are in both. Its runs are
    /// kept in the crib's [journals](Self::runs), else in memory. An agent with `sub_agents` needs
    /// [the tools for them](sub_agent_tools) and a store of suspended calls in the crib.
    pub fn agent(
        &self,
        name: &AgentName,
        options: TurnOptions,
    ) -> Result<AgentBuilder, AgentSetupError> {
        let config = self.live_agents().current();
        match name {
            AgentName::Model(model) => {
                let builder = Agent::builder(self.executor().clone(), self.model(&config, model)?)
                    .name(name.to_string())
                    .budget(config.agent.budget())
                    .turn_options(options)
                    .pin_tools(config.agent.tools.are_pinned())
                    .lost_calls(config.agent.lost_calls.into())
                    .sub_agents(none_below());
                Ok(self.with_journal(builder))
            }
            AgentName::Entry(entry) => {
                self.entry(&config, entry, options, &mut SubAgents::default())
            }
        }
    }

    /// Starts to build an entry of `agents` as [`agent`](Self::agent) does, with this model in place of all that it and its
    /// sub-agents have. Their providers need not be declared.
    pub fn agent_with_model(
        &self,
        entry: &str,
        options: TurnOptions,
        model: Arc<dyn ModelClient>,
    ) -> Result<AgentBuilder, AgentSetupError> {
        let config = self.live_agents().current();
        self.entry(&config, entry, options, &mut SubAgents::with_model(model))
    }

    /// A model of the config.
    pub fn model_of_provider(
        &self,
        name: &ModelName,
    ) -> Result<Arc<dyn ModelClient>, AgentSetupError> {
        self.model(&self.live_agents().current(), name)
    }

    /// Starts to build an entry of `agents`, with its sub-agents.
    fn entry(
        &self,
        config: &live::AgentSettings,
        name: &str,
        options: TurnOptions,
        others: &mut SubAgents,
    ) -> Result<AgentBuilder, AgentSetupError> {
        let unknown = || {
            if config.agents.is_empty() && config.providers.is_empty() {
                AgentSetupError::NoProvider
            } else {
                AgentSetupError::unknown_agent(name, config.agents.keys())
            }
        };
        let own = config.agents.get(name).ok_or_else(unknown)?;
        others.begin(name)?;
        let starts_others = !own.sub_agents.is_empty();
        let chosen = others.model.clone();
        let model = |name: &ModelName| match &chosen {
            Some(model) => Ok(Arc::clone(model)),
            None => self.model(config, name),
        };
        let mut compaction = own.compaction.compaction();
        if let Some(name) = &own.compaction.model {
            compaction = compaction.model(model(name)?);
        }
        let limits = if starts_others { config.sub_agent.limits() } else { none_below() };
        let builder = Agent::builder(self.executor().clone(), model(&own.model)?)
            .name(name)
            .budget(own.budget(&config.agent))
            .turn_options(options)
            .compaction(compaction)
            .sub_agents(limits);
        let mut builder = self
            .with_journal(builder)
            .pin_tools(config.agent.tools.are_pinned())
            .lost_calls(config.agent.lost_calls.into());
        if !own.tools_enabled {
            builder = builder.toolset(&no_tools());
        } else if let Some(toolset) = &own.toolset {
            let toolset = self.toolset(toolset).map_err(AgentSetupError::other)?;
            let toolset = if starts_others { with_tools(toolset) } else { toolset };
            builder = builder.toolset(&toolset);
        } else if starts_others {
            builder = builder.toolset(&with_tools(Toolset::new()));
        }
        if let Some(text) = &own.instruction {
            builder = builder.instructions(text);
        }
        if let Some(schema) = &own.output_schema {
            builder = builder.output_schema(schema.as_value()).map_err(AgentSetupError::other)?;
        }
        let fallback = own.fallback.iter().filter(|_| chosen.is_none());
        for name in fallback {
            builder = builder.fallback(model(name)?);
        }
        for other in &own.sub_agents {
            builder = builder.sub_agent(self.sub_agent(config, other, others)?);
        }
        others.end();
        Ok(builder)
    }

    /// An agent that others start. It works with their options; only its toolset is its own.
    fn sub_agent(
        &self,
        config: &live::AgentSettings,
        name: &str,
        others: &mut SubAgents,
    ) -> Result<Agent, AgentSetupError> {
        if let Some(agent) = others.built.get(name) {
            return Ok(agent.clone());
        }
        let mut options = self.turn_options();
        if let Some(own) = config.agents.get(name).filter(|own| own.sub_agents.is_empty()) {
            let toolset = match &own.toolset {
                Some(toolset) => self.toolset(toolset).map_err(AgentSetupError::other)?,
                None => Toolset::new(),
            };
            options = options.toolset(without_tools(toolset));
        }
        let agent = self.entry(config, name, options, others)?.build();
        others.built.insert(name.to_owned(), agent.clone());
        Ok(agent)
    }

    fn with_journal(&self, builder: AgentBuilder) -> AgentBuilder {
        match self.runs() {
            Some(journal) => builder.journal(Arc::clone(journal)),
            None => builder,
        }
    }

    fn model(
        &self,
        config: &live::AgentSettings,
        name: &ModelName,
    ) -> Result<Arc<dyn ModelClient>, AgentSetupError> {
        if config.providers.is_empty() {
            return Err(AgentSetupError::NoProvider);
        }
        if let Some((problem, help)) = config.undeclared_model(name) {
            return Err(AgentSetupError::UnknownModel { model: name.to_string(), problem, help });
        }
        let provider = config.providers.get(name.provider()).ok_or(AgentSetupError::NoProvider)?;
        let endpoint = self.endpoint(name.provider(), provider, name.model())?;
        let own = provider.models.get(name.model()).cloned().unwrap_or_default();
        let capabilities = provider.capabilities.clone();
        // Journals and events name it by the config, not by an address that clients have no business to know.
        let source = name.to_string();
        let endpoint = endpoint.timeouts(provider.limits.timeouts()).configure(move |head| {
            head.source = source.into();
            head.stream = capabilities.stream;
            head.accepts_media = capabilities.media;
            head.prompt_cache = capabilities.prompt_cache;
            head.chat.stream_usage = capabilities.stream_usage;
            head.chat.send_reasoning = capabilities.send_reasoning;
            head.chat.developer_role = capabilities.developer_role;
            head.chat.max_tokens = capabilities.legacy_max_tokens;
            head.max_output_tokens = own.max_output_tokens.map(Into::into);
            head.temperature = own.temperature;
            head.reasoning_effort = own.reasoning_effort;
        });
        let window = provider.models.get(name.model()).and_then(|own| own.context_window);
        let endpoint = match window {
            Some(tokens) => endpoint.context_window(tokens.get()),
            None => endpoint,
        };
        let prices = provider.models.get(name.model()).and_then(|own| own.prices.as_ref());
        Ok(Arc::new(match prices {
            Some(prices) => endpoint.prices(prices.prices()),
            None => endpoint,
        }))
    }

    /// Asks a provider of the config once for its models, within this time. The secrets that the crib has are used.
    pub async fn models_of(
        &self,
        name: &str,
        provider: &Provider,
        within: Duration,
    ) -> Result<Vec<String>, AgentSetupError> {
        let endpoint = self.endpoint(name, provider, "")?;
        let endpoint = endpoint.timeouts(provider.limits.timeouts_within(within));
        let failed = |problem| AgentSetupError::Unreachable { provider: name.to_owned(), problem };
        let asked = tokio::time::timeout(within, endpoint.models()).await;
        asked
            .map_err(|_| failed(format!("no answer within {within:?}")))?
            .map_err(|error| failed(error.to_string()))
    }

    /// A model of a provider, with the provider's key.
    fn endpoint(
        &self,
        name: &str,
        provider: &Provider,
        model: &str,
    ) -> Result<Endpoint, AgentSetupError> {
        let endpoint = Endpoint::new(provider.kind.wire(), provider.base_url.as_str(), model);
        let networks = LOCAL_NETWORKS.iter().filter_map(|network| network.parse().ok());
        let endpoint = networks.fold(endpoint, Endpoint::allow);
        let Some(reference) = &provider.api_key else {
            let missing = format!(
                "no key is sent to the provider `{name}`: `providers.{name}.api_key` is not set, and the request"
            );
            return Ok(endpoint.key_source(missing));
        };
        let key = self.secrets.get(reference.name()).map_err(|missing| AgentSetupError::NoKey {
            provider: name.to_owned(),
            secret: reference.name().to_owned(),
            reason: missing.reason,
        })?;
        let source = format!(
            "the key of the provider `{name}` (`providers.{name}.api_key`, the secret `{}`)",
            reference.name()
        );
        Ok(endpoint.api_key(key).key_source(source))
    }
}
