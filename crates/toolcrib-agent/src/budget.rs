//! Limits of a run, and what it has used.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolcrib_wire::model::Usage;

/// The share of a limit, in percent, at which the model is told about it.
const NOTICE_PERCENT: u128 = 90;

/// The limits of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Budget {
    /// Answers of the model, and of those of sub-agents. Default 50. The last one cannot have calls.
    pub max_turns: u32,
    /// Calls of tools. Default: no limit. Further calls are denied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_calls: Option<u32>,
    /// Tokens of all requests and answers. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Cost of all requests, where prices are known. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<Cost>,
    /// Time in which the run is active, without waits for people. Default: no limit. At its end, requests and calls are
    /// cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_time: Option<Duration>,
}

impl Default for Budget {
    fn default() -> Self {
        Self { max_turns: 50, max_calls: None, max_tokens: None, max_cost: None, max_time: None }
    }
}

impl Budget {
    /// This budget with another number of turns, at least 1.
    #[must_use]
    pub fn with_max_turns(mut self, turns: u32) -> Self {
        self.max_turns = turns.max(1);
        self
    }

    /// This budget with a limit on calls.
    #[must_use]
    pub fn with_max_calls(mut self, calls: u32) -> Self {
        self.max_calls = Some(calls);
        self
    }

    /// This budget with a limit on tokens.
    #[must_use]
    pub fn with_max_tokens(mut self, tokens: u64) -> Self {
        self.max_tokens = Some(tokens);
        self
    }

    /// This budget with a limit on cost.
    #[must_use]
    pub fn with_max_cost(mut self, cost: Cost) -> Self {
        self.max_cost = Some(cost);
        self
    }

    /// This budget with a limit on time.
    #[must_use]
    pub fn with_max_time(mut self, time: Duration) -> Self {
        self.max_time = Some(time);
        self
    }

    /// The tighter one of each limit of two budgets.
    #[must_use]
    pub fn within(mut self, other: &Self) -> Self {
        fn tighter<T: Ord + Copy>(one: Option<T>, other: Option<T>) -> Option<T> {
            one.into_iter().chain(other).min()
        }
        self.max_turns = self.max_turns.min(other.max_turns);
        self.max_calls = tighter(self.max_calls, other.max_calls);
        self.max_tokens = tighter(self.max_tokens, other.max_tokens);
        self.max_cost = tighter(self.max_cost, other.max_cost);
        self.max_time = tighter(self.max_time, other.max_time);
        self
    }

    /// Each limit with its amount and what was used of it.
    fn shares(&self, spent: &Spent) -> impl Iterator<Item = (Limit, u128, u128)> {
        let millis = |time: Duration| time.as_millis();
        [
            (Limit::Time, self.max_time.map(millis), millis(spent.time)),
            (Limit::Cost, self.max_cost.map(|cost| cost.0.into()), spent.cost.0.into()),
            (Limit::Tokens, self.max_tokens.map(u128::from), spent.usage.total().into()),
            (Limit::Calls, self.max_calls.map(u128::from), spent.calls.into()),
            // The last turn is one that follows the others.
            (
                Limit::Turns,
                Some(self.max_turns.saturating_sub(1).max(1).into()),
                if self.max_turns <= 1 { 1 } else { spent.turns.into() },
            ),
        ]
        .into_iter()
        .filter_map(|(limit, amount, used)| Some((limit, amount?, used)))
    }

    /// The first limit that is reached.
    pub(crate) fn reached(&self, spent: &Spent) -> Option<Limit> {
        self.shares(spent).find(|(_, amount, used)| used >= amount).map(|(limit, ..)| limit)
    }

    /// The first limit that is near, but not reached.
    pub(crate) fn near(&self, spent: &Spent) -> Option<Limit> {
        let is_near = |amount: u128, used: u128| {
            used < amount && used > 0 && used * 100 >= amount * NOTICE_PERCENT
        };
        self.shares(spent)
            .find(|(_, amount, used)| is_near(*amount, *used))
            .map(|(limit, ..)| limit)
    }
}

/// A limit of a [`Budget`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Limit {
    /// [`Budget::max_turns`].
    #[serde(rename = "max_turns")]
    Turns,
    /// [`Budget::max_calls`].
    #[serde(rename = "max_calls")]
    Calls,
    /// [`Budget::max_tokens`].
    #[serde(rename = "max_tokens")]
    Tokens,
    /// [`Budget::max_cost`].
    #[serde(rename = "max_cost")]
    Cost,
    /// [`Budget::max_time`].
    #[serde(rename = "max_time")]
    Time,
}

impl Limit {
    /// The stable word for it, as in the settings: `max_turns`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Turns => "max_turns",
            Self::Calls => "max_calls",
            Self::Tokens => "max_tokens",
            Self::Cost => "max_cost",
            Self::Time => "max_time",
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a run has used since its last input from outside a running loop.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Spent {
    /// Complete answers of the model, and of those of sub-agents.
    pub turns: u32,
    /// Calls that were started.
    pub calls: u32,
    /// Tokens of the complete answers, as far as providers counted them.
    pub usage: Usage,
    /// Cost of the complete answers, as far as prices are known.
    pub cost: Cost,
    /// Requests whose tokens and cost are unknown: the answer was lost, or the provider did not count.
    pub unknown_requests: u32,
    /// Time in which the run was active.
    pub time: Duration,
}

impl Spent {
    /// Adds what a sub-agent has used, except for its time.
    pub(crate) fn add_sub_agent(&mut self, child: &Self) {
        self.turns = self.turns.saturating_add(child.turns);
        self.calls = self.calls.saturating_add(child.calls);
        self.add_usage(&child.usage);
        self.cost = Cost(self.cost.0.saturating_add(child.cost.0));
        self.unknown_requests = self.unknown_requests.saturating_add(child.unknown_requests);
    }

    /// Adds all that was used at another time.
    pub(crate) fn add(&mut self, other: &Self) {
        self.add_sub_agent(other);
        self.time = self.time.saturating_add(other.time);
    }

    fn add_usage(&mut self, usage: &Usage) {
        let sum = &mut self.usage;
        sum.input = sum.input.saturating_add(usage.input);
        sum.cached_input = sum.cached_input.saturating_add(usage.cached_input);
        sum.cache_write = sum.cache_write.saturating_add(usage.cache_write);
        sum.output = sum.output.saturating_add(usage.output);
        sum.reasoning = sum.reasoning.saturating_add(usage.reasoning);
    }

    pub(crate) fn add_answer(&mut self, usage: Option<Usage>, cost: Option<Cost>) {
        self.turns += 1;
        self.add_request(usage, cost);
    }

    /// Adds a request that is no turn, such as one for a summary.
    pub(crate) fn add_request(&mut self, usage: Option<Usage>, cost: Option<Cost>) {
        match usage {
            Some(usage) => self.add_usage(&usage),
            None => self.unknown_requests += 1,
        }
        self.cost = Cost(self.cost.0.saturating_add(cost.unwrap_or_default().0));
    }
}

/// An amount of money in billionths of a US dollar.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Cost(u64);

impl Cost {
    /// From billionths of a US dollar.
    pub const fn from_nanodollars(nanodollars: u64) -> Self {
        Self(nanodollars)
    }

    /// From US dollars, rounded to a billionth.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "amounts beyond what can be counted are the least or the most"
    )]
    pub fn from_dollars(dollars: f64) -> Self {
        Self((dollars * 1e9).round() as u64)
    }

    /// In billionths of a US dollar.
    pub const fn nanodollars(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${}.{:06}", self.0 / 1_000_000_000, self.0 % 1_000_000_000 / 1_000)
    }
}

/// The prices of a model, in billionths of a US dollar for one token: $3 for a million tokens is 3,000.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// A token of the request.
    pub input: u64,
    /// A token of the request that the provider had cached.
    pub cached_input: u64,
    /// A token of the request that the provider writes to its cache.
    pub cache_write: u64,
    /// A token of the answer.
    pub output: u64,
}

impl Prices {
    /// The cost of one answer.
    pub fn cost(&self, usage: &Usage) -> Cost {
        let fresh = usage.input.saturating_sub(usage.cached_input + usage.cache_write);
        let parts = [
            (fresh, self.input),
            (usage.cached_input, self.cached_input),
            (usage.cache_write, self.cache_write),
            (usage.output, self.output),
        ];
        let sum = |sum: u64, (tokens, price): (u64, u64)| {
            sum.saturating_add(tokens.saturating_mul(price))
        };
        Cost(parts.into_iter().fold(0, sum))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_near_at_nine_tenths_and_reached_at_its_amount() {
        let budget = Budget::default().with_max_tokens(1_000);
        let spent = |tokens| {
            let mut spent = Spent::default();
            spent.usage.input = tokens;
            spent
        };
        assert_eq!((budget.near(&spent(899)), budget.reached(&spent(899))), (None, None));
        assert_eq!(budget.near(&spent(900)), Some(Limit::Tokens));
        assert_eq!(budget.reached(&spent(999)), None);
        assert_eq!(
            (budget.near(&spent(1_000)), budget.reached(&spent(1_000))),
            (None, Some(Limit::Tokens))
        );
    }

    #[test]
    fn the_last_turn_is_the_one_before_which_the_limit_is_reached() {
        let budget = Budget::default().with_max_turns(3);
        let reached = |turns| budget.reached(&Spent { turns, ..Spent::default() });
        assert_eq!([reached(0), reached(1), reached(2)], [None, None, Some(Limit::Turns)]);
        let one = Budget::default().with_max_turns(1);
        assert_eq!(one.reached(&Spent::default()), Some(Limit::Turns), "the only turn is the last");
    }

    #[test]
    fn cached_tokens_have_their_own_price() {
        let prices = Prices { input: 3_000, cached_input: 300, cache_write: 3_750, output: 15_000 };
        let mut usage = Usage::default();
        (usage.input, usage.cached_input, usage.cache_write, usage.output) = (1_000, 600, 100, 10);
        let cost = prices.cost(&usage);
        assert_eq!(cost.nanodollars(), 300 * 3_000 + 600 * 300 + 100 * 3_750 + 10 * 15_000);
        assert_eq!(cost.to_string(), "$0.001605");
    }
}
