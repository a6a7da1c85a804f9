//! Errors of runs.

use std::fmt;

use crate::suspension::{RedeemError, Resolved, StoreError, SubmitError};

/// Errors of runs.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError {
    /// The run belongs to another identity.
    Unknown,
    /// Outputs were not accepted.
    Submit(SubmitError),
    /// A call could not be resolved.
    Redeem(RedeemError),
    /// A run was cancelled except for a call that somebody had already resolved.
    PartlyCancelled(Box<Resolved>),
    /// A store failed.
    Store(StoreError),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("there is no such run"),
            Self::Submit(error) => error.fmt(f),
            Self::Redeem(error) => error.fmt(f),
            Self::PartlyCancelled(first) => {
                write!(f, "{first}; the other waiting calls of the run were cancelled")
            }
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RunError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unknown | Self::PartlyCancelled(_) => None,
            // Their messages are this error's.
            Self::Submit(error) => error.source(),
            Self::Redeem(error) => error.source(),
            Self::Store(error) => error.source(),
        }
    }
}

impl From<SubmitError> for RunError {
    fn from(error: SubmitError) -> Self {
        Self::Submit(error)
    }
}

impl From<RedeemError> for RunError {
    fn from(error: RedeemError) -> Self {
        Self::Redeem(error)
    }
}

impl From<StoreError> for RunError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
