//! The settings of agents, which a reload replaces.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use crate::settings::{
    Agent, AgentEntry, Config, ModelName, Provider, Responses, SubAgent, undeclared_model,
};

/// What a config says about agents.
#[derive(Debug, Clone, Default)]
pub(crate) struct AgentSettings {
    pub(super) providers: BTreeMap<String, Provider>,
    pub(super) agent: Agent,
    pub(super) sub_agent: SubAgent,
    pub(super) agents: BTreeMap<String, AgentEntry>,
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only servers need it"))]
    pub(super) responses: Responses,
}

impl AgentSettings {
    pub(crate) fn of(config: &Config) -> Self {
        Self {
            providers: config.providers.clone(),
            agent: config.agent.clone(),
            sub_agent: config.sub_agent.clone(),
            agents: config.agents.clone(),
            responses: config.responses.clone(),
        }
    }

    pub(super) fn undeclared_model(&self, name: &ModelName) -> Option<(String, String)> {
        undeclared_model(&self.providers, name)
    }
}

/// The current settings. Runs that are being driven keep those that they began with.
#[derive(Debug, Clone, Default)]
pub(crate) struct LiveAgents(Arc<RwLock<Arc<AgentSettings>>>);

impl LiveAgents {
    pub(super) fn current(&self) -> Arc<AgentSettings> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn replace(&self, config: &Config) {
        let settings = Arc::new(AgentSettings::of(config));
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = settings;
    }
}
