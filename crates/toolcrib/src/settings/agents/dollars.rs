//! Amounts of money in settings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolcrib_agent::budget::Cost;

/// An amount of money in US dollars, more than zero.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "f64", into = "f64")]
#[schemars(with = "f64", extend("x-expected" = "an amount in US dollars such as 2.50"))]
pub struct Dollars(f64);

impl Dollars {
    /// The largest amount.
    const MAX: f64 = 1_000_000_000.0;

    /// The amount for the budget of a run.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "amounts are checked when they are read"
    )]
    pub fn cost(self) -> Cost {
        Cost::from_nanodollars((self.0 * 1e9).round() as u64)
    }
}

impl TryFrom<f64> for Dollars {
    type Error = &'static str;

    fn try_from(dollars: f64) -> Result<Self, Self::Error> {
        if dollars > 0.0 && dollars <= Self::MAX {
            Ok(Self(dollars))
        } else {
            Err("an amount in US dollars is more than zero; `none` is no limit")
        }
    }
}

impl From<Dollars> for f64 {
    fn from(dollars: Dollars) -> Self {
        dollars.0
    }
}
