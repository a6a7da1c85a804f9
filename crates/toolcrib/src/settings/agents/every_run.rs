//! Settings of every run of an agent (`agent`), and how clients of OpenAI's protocols see runs (`responses`).

use std::num::{NonZeroU32, NonZeroU64};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolcrib_agent::budget::Budget;
use toolcrib_tool::units::{OrNone, TimeLimit, or_none};

use super::dollars::Dollars;

/// The limits of every run of an agent, unless the agent has a `budget` of its own. At nine tenths of a limit the model
/// is told; at the limit it has one round without tools to answer.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Agent {
    /// Maximum number of answers of the model.
    pub max_turns: NonZeroU32,
    /// Maximum number of calls; `none` for no limit.
    #[serde(with = "or_none")]
    #[schemars(with = "OrNone<NonZeroU32>")]
    pub max_calls: Option<NonZeroU32>,
    /// Maximum number of tokens of all requests and answers; `none` for no limit.
    #[serde(with = "or_none")]
    #[schemars(with = "OrNone<NonZeroU64>")]
    pub max_tokens: Option<NonZeroU64>,
    /// Maximum cost in US dollars, where the prices of models are known; `none` for no limit.
    #[serde(with = "or_none")]
    #[schemars(with = "OrNone<Dollars>")]
    pub max_cost: Option<Dollars>,
    /// Maximum time in which the model answers and calls run, without waits for people; `none` for no limit.
    pub max_time: TimeLimit,
    /// Whether a run notices that the definitions of its tools have changed.
    pub tools: ShownTools,
    /// What happens to calls whose process ends while they run, if their tools are neither read-only nor idempotent.
    pub lost_calls: LostCalls,
}

/// Which tools the model of a run is shown after a reload has changed some. Calls always go to the tools as they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ShownTools {
    /// The next request has the tools as they are. The provider's prompt cache begins anew.
    #[default]
    Round,
    /// The run keeps those that it was shown first, until it rests or its conversation becomes shorter.
    Run,
}

/// What happens to calls whose process ended while they ran, and that may have taken effect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LostCalls {
    /// The model is told that their outcome is unknown. They do not run again.
    #[default]
    Tell,
    /// Somebody is asked whether they may run again.
    Ask,
}

impl From<LostCalls> for toolcrib_agent::LostCalls {
    fn from(setting: LostCalls) -> Self {
        match setting {
            LostCalls::Tell => Self::Tell,
            LostCalls::Ask => Self::Ask,
        }
    }
}

impl ShownTools {
    /// Whether a run keeps the tools that it was shown first.
    pub(crate) fn are_pinned(self) -> bool {
        self == Self::Run
    }
}

impl Default for Agent {
    fn default() -> Self {
        Self {
            max_turns: NonZeroU32::new(Budget::default().max_turns).unwrap_or(NonZeroU32::MIN),
            max_calls: None,
            max_tokens: None,
            max_cost: None,
            max_time: TimeLimit(None),
            tools: ShownTools::default(),
            lost_calls: LostCalls::default(),
        }
    }
}

impl Agent {
    /// The limits of a run.
    pub(crate) fn budget(&self) -> Budget {
        let mut budget = Budget::default().with_max_turns(self.max_turns.get());
        budget.max_calls = self.max_calls.map(NonZeroU32::get);
        budget.max_tokens = self.max_tokens.map(NonZeroU64::get);
        budget.max_cost = self.max_cost.map(Dollars::cost);
        budget.max_time = self.max_time.0;
        budget
    }
}

/// How clients of OpenAI's Responses API see agents and models.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Responses {
    /// The specification that responses follow.
    pub dialect: ResponsesDialect,
}

/// A specification of the Responses API.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ResponsesDialect {
    /// OpenAI's API, with all its types of items.
    #[default]
    Openai,
    /// The Open Responses specification: calls that ran on the server are a `function_call` with its
    /// `function_call_output`, and types that the specification does not have begin with `toolcrib:`.
    Open,
}
