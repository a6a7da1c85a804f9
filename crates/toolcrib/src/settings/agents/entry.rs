//! Settings of agents: a model, an instruction, tools and limits under one name.

use std::collections::{BTreeMap, BTreeSet};
use std::num::{NonZeroU32, NonZeroU64};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolcrib_agent::budget::Budget;
use toolcrib_agent::model::is_unencrypted;
use toolcrib_runners::Secrets;
use toolcrib_tool::units::Timeout;

use super::compaction::AgentCompaction;
use super::dollars::Dollars;
use super::every_run::Agent;
use super::output_schema::OutputSchema;
use crate::agents::LOCAL_NETWORKS;
use crate::settings::providers::{ModelName, Provider};
use crate::settings::{Config, ConfigFinding};

/// An agent (`agents.<name>`).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-renamed" = {
    "max_turns": "did you mean `budget.max_turns`?",
    "max_calls": "did you mean `budget.max_calls`?",
    "max_tokens": "did you mean `budget.max_tokens`?",
    "max_cost": "did you mean `budget.max_cost`?",
    "max_time": "did you mean `budget.max_time`?",
    "system": "did you mean `instruction`?",
    "system_prompt": "did you mean `instruction`?",
    "prompt": "did you mean `instruction`?",
    "tools": "an agent has the tools of a toolset: name it with `toolset`, and declare it under `toolsets`",
}))]
pub struct AgentEntry {
    /// The model: `PROVIDER/MODEL`.
    pub model: ModelName,
    /// What the model is told at the start of every conversation. Default: nothing.
    #[serde(default)]
    pub instruction: Option<String>,
    /// The models that are asked when all attempts of those before them have failed. Default: none.
    #[serde(default)]
    pub fallback: Vec<ModelName>,
    /// Whether it has tools. Without them the model only answers; an `output_schema` still holds.
    #[serde(default = "enabled")]
    pub tools_enabled: bool,
    /// The toolset that it is limited to. Default: all tools.
    #[serde(default)]
    pub toolset: Option<String>,
    /// The JSON Schema that its answer has to match. The model then answers with a call of `attempt_completion`, and is
    /// asked again if the result does not match. References into the schema (`#/…`) are not possible. Default: the
    /// answer is a text.
    #[serde(default)]
    pub output_schema: Option<OutputSchema>,
    /// The agents to which it can give tasks, with `new_task`; with `multi_agent` it can then start helpers, too. They
    /// have at most its tools and rights. Default: none.
    #[serde(default)]
    pub sub_agents: Vec<String>,
    /// When its conversation becomes shorter.
    #[serde(default)]
    pub compaction: AgentCompaction,
    /// Limits of its runs. Default: those of `agent`.
    #[serde(default)]
    pub budget: AgentBudget,
}

const fn enabled() -> bool {
    true
}

/// Limits of an agent's runs. Missing ones are those of `agent`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AgentBudget {
    /// As `agent.max_turns`.
    pub max_turns: Option<NonZeroU32>,
    /// As `agent.max_calls`.
    pub max_calls: Option<NonZeroU32>,
    /// As `agent.max_tokens`.
    pub max_tokens: Option<NonZeroU64>,
    /// As `agent.max_cost`.
    pub max_cost: Option<Dollars>,
    /// As `agent.max_time`.
    pub max_time: Option<Timeout>,
}

impl AgentEntry {
    /// The limits of its runs.
    pub(crate) fn budget(&self, defaults: &Agent) -> Budget {
        let mut budget = defaults.budget();
        let own = &self.budget;
        if let Some(turns) = own.max_turns {
            budget.max_turns = turns.get();
        }
        budget.max_calls = own.max_calls.map(NonZeroU32::get).or(budget.max_calls);
        budget.max_tokens = own.max_tokens.map(NonZeroU64::get).or(budget.max_tokens);
        budget.max_cost = own.max_cost.map(Dollars::cost).or(budget.max_cost);
        budget.max_time = own.max_time.map(|time| time.0).or(budget.max_time);
        budget
    }

    /// The models that it uses, with the last part of each one's key.
    fn models(&self) -> impl Iterator<Item = (Vec<String>, &ModelName)> {
        let fallback = self.fallback.iter().enumerate();
        let fallback =
            fallback.map(|(at, name)| (vec!["fallback".to_owned(), at.to_string()], name));
        let summaries = self.compaction.model.iter();
        let summaries =
            summaries.map(|name| (vec!["compaction".to_owned(), "model".to_owned()], name));
        std::iter::once((vec!["model".to_owned()], &self.model)).chain(fallback).chain(summaries)
    }
}

impl Config {
    /// Models, toolsets and agents that agents name and that are not declared, agents that would start themselves, and
    /// missing secrets of providers.
    pub(in crate::settings) fn unmatched_of_agents(&self, secrets: &Secrets) -> Vec<ConfigFinding> {
        let mut found = Vec::new();
        for (name, provider) in &self.providers {
            let missing = provider.api_key.as_ref().and_then(|key| secrets.check(key.name()).err());
            // A secret under `secrets` that is missing on this machine is reported there.
            if let Some(missing) = missing.filter(|one| !self.secrets.contains_key(&one.name)) {
                found.push(ConfigFinding::unmatched(
                    &["providers", name, "api_key"],
                    format!(
                        "`providers.{name}.api_key` names a secret that is missing: {}",
                        missing.reason
                    ),
                    format!("declare it: `secrets: {{{}: {{env: VARIABLE}}}}`", missing.name),
                ));
            }
        }
        for (name, agent) in &self.agents {
            for (key, model) in agent.models() {
                let path = ["agents", name].map(str::to_owned).into_iter().chain(key);
                let path: Vec<String> = path.collect();
                let path: Vec<&str> = path.iter().map(String::as_str).collect();
                let Some((message, help)) = undeclared_model(&self.providers, model) else {
                    continue;
                };
                let message = format!("`{}` names `{model}`, but {message}", path.join("."));
                found.push(ConfigFinding::refused(&path, message, help));
            }
            if let Some(toolset) = &agent.toolset
                && !self.toolsets.contains_key(toolset)
            {
                found.push(ConfigFinding::refused(
                    &["agents", name, "toolset"],
                    format!(
                        "`agents.{name}.toolset` names `{toolset}`, but `toolsets` declares no such toolset"
                    ),
                    format!("declare it under `toolsets`, or correct the name `{toolset}`"),
                ));
            }
            for (at, other) in agent.sub_agents.iter().enumerate() {
                let said = format!("`agents.{name}.sub_agents` names `{other}`");
                let (message, help) = if !self.agents.contains_key(other) {
                    let names = known(self.agents.keys().filter(|one| *one != name));
                    let help = names.map_or_else(
                        || "declare it under `agents`".to_owned(),
                        |names| format!("declare it under `agents`, or use one of those: {names}"),
                    );
                    (format!("{said}, but `agents` declares no such agent"), help)
                } else if self.starts(other, name) {
                    let message = format!("{said}, so the agent `{name}` would start itself");
                    (message, "remove one of the names in this circle".to_owned())
                } else {
                    continue;
                };
                let path = ["agents", name, "sub_agents", &at.to_string()];
                found.push(ConfigFinding::refused(&path, message, help));
            }
        }
        found
    }

    /// Providers to which requests leave this machine and its private networks unencrypted.
    pub(in crate::settings) fn unencrypted_providers(&self) -> Vec<ConfigFinding> {
        let networks = LOCAL_NETWORKS.iter().filter_map(|network| network.parse().ok());
        let networks: Vec<_> = networks.collect();
        let is_open = |provider: &Provider| is_unencrypted(provider.base_url.as_str(), &networks);
        let open = self.providers.iter().filter(|(_, provider)| is_open(provider));
        let finding = |(name, provider): (&String, &Provider)| {
            let what = match provider.api_key {
                Some(_) => "the key and the conversations",
                None => "the conversations",
            };
            let message = format!(
                "`providers.{name}.base_url` is `{}`: {what} go over the network unencrypted",
                provider.base_url.as_str()
            );
            let path = ["providers", name, "base_url"];
            let help =
                "use an address with `https`; `http` is for this machine and private networks";
            let found = ConfigFinding::unmatched(&path, message, help);
            ConfigFinding { code: "plain-credentials", ..found }
        };
        open.map(finding).collect()
    }

    /// Whether an agent is another one, or starts it, directly or by others.
    fn starts(&self, agent: &str, other: &str) -> bool {
        let (mut seen, mut left) = (BTreeSet::new(), vec![agent]);
        while let Some(name) = left.pop() {
            if name == other {
                return true;
            }
            if seen.insert(name) {
                let below = self.agents.get(name).map(|one| one.sub_agents.iter());
                left.extend(below.into_iter().flatten().map(String::as_str));
            }
        }
        false
    }
}

/// Why a model is not declared, and what to do; `None` if it is.
pub(crate) fn undeclared_model(
    providers: &BTreeMap<String, Provider>,
    name: &ModelName,
) -> Option<(String, String)> {
    let provider = name.provider();
    let Some(own) = providers.get(provider) else {
        let help = match known(providers.keys()) {
            Some(names) => {
                format!("declare it under `providers`, or use one of those there: {names}")
            }
            None => format!(
                "declare it: `providers: {{{provider}: {{kind: chat, base_url: …, api_key: …}}}}`"
            ),
        };
        return Some((format!("`providers` declares no `{provider}`"), help));
    };
    if own.models.is_empty() || own.models.contains_key(name.model()) {
        return None;
    }
    let names = known(own.models.keys()).unwrap_or_default();
    let message = format!("`providers.{provider}.models` does not list it");
    Some((message, format!("add it there, or use one of those there: {names}")))
}

/// The names that there are, as the help of a finding.
fn known<'a>(names: impl Iterator<Item = &'a String>) -> Option<String> {
    let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
    (!names.is_empty()).then(|| names.join(", "))
}
