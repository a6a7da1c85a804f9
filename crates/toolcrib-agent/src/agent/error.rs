//! Errors of agents.

use toolcrib_core::NoRandomness;
use toolcrib_core::run::{RunError, RunId};
use toolcrib_core::suspension::StoreError;
use toolcrib_wire::model::RequestError;

use crate::run::InvalidRow;

/// Why a run cannot be started or continued. A model that fails is no such error: it ends the run as
/// [failed](crate::run::Outcome::Failed).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The identity has no run with this id.
    #[error("there is no such run")]
    Unknown,
    /// The run does not allow this now.
    #[error("the run {run} {problem}")]
    NotNow {
        /// The run.
        run: RunId,
        /// Why, and what to do.
        problem: &'static str,
    },
    /// A store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A waiting call could not be resolved.
    #[error(transparent)]
    Resolve(#[from] RunError),
    /// The journal does not make sense.
    #[error("the journal of the run {run} cannot be read and is left as it is: {source}")]
    Corrupt {
        /// The run.
        run: RunId,
        /// The wrong row.
        source: InvalidRow,
    },
    /// The conversation cannot be sent to the model.
    #[error("the request to the model cannot be made: {0}")]
    Request(#[from] RequestError),
    /// A row cannot be masked.
    #[error("a row of the run's journal cannot be masked: {0}")]
    Mask(#[from] serde_json::Error),
    /// A sub-agent's run cannot go on, because its agent is no longer there.
    #[error("there is no agent `{name}`")]
    NoAgent {
        /// The name of the agent.
        name: String,
    },
    /// A sub-agent's run cannot go on, because agents of its depth may not be started.
    #[error("{}", crate::sub_agents::tools::TOO_DEEP)]
    TooDeep,
    /// The system has no random numbers.
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
}

impl AgentError {
    /// Whether the run itself is the problem, rather than what it is stored in or runs on.
    pub(super) fn is_about_one_run(&self) -> bool {
        use StoreError::{Corrupt, Expired, TooLarge};
        match self {
            Self::Unknown | Self::Corrupt { .. } | Self::Request(_) | Self::Mask(_) => true,
            Self::Store(error) => matches!(error, Corrupt { .. } | Expired | TooLarge { .. }),
            _ => false,
        }
    }
}
