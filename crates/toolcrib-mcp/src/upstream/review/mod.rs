//! Definitions that somebody has reviewed before they were seen here.

pub(crate) mod confidential;
pub(crate) mod pins;

use std::fmt;

use serde_json::Value;
use toolcrib_tool::Source;

/// Knows which definitions of imported tools were reviewed: a lock, for example.
///
/// Where it knows a tool, its word counts; where it does not, pins do
/// ([`PinStore`](super::PinStore)). It is asked whenever a server has listed its tools, and when
/// [`Upstreams::look_again`](super::Upstreams::look_again) says so. It may block.
pub trait Review: fmt::Debug + Send + Sync + 'static {
    /// What is known of tools of one server, in their order.
    fn review(&self, source: &Source, tools: &[OfferedTool]) -> Vec<Reviewed>;
}

/// A tool as a server offers it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct OfferedTool {
    /// Its name here.
    pub name: String,
    /// All that the server says of it to models and people: name, title, description, schemas,
    /// annotations.
    pub says: Value,
}

impl OfferedTool {
    /// A tool of this name here.
    pub fn new(name: impl Into<String>, says: Value) -> Self {
        Self { name: name.into(), says }
    }
}

/// What is known of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reviewed {
    /// This is what was reviewed.
    Accepted,
    /// It is not: the tool is blocked, for this reason.
    Refused(String),
    /// Nothing; for people there may be a remark.
    Unknown(Option<String>),
}

/// Nobody reviews anything.
#[derive(Debug)]
pub(crate) struct NoReview;

impl Review for NoReview {
    fn review(&self, _: &Source, tools: &[OfferedTool]) -> Vec<Reviewed> {
        vec![Reviewed::Unknown(None); tools.len()]
    }
}
