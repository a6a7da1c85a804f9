//! Definitions that somebody reviewed before they were seen here.

pub(crate) mod confidential;
pub(crate) mod pins;

use std::fmt;

use serde_json::Value;
use toolcrib_tool::Source;

/// Knows which definitions of imported tools were reviewed, for example from a lock file.
///
/// For a tool that it knows, its decision counts; for others the pins decide
/// ([`PinStore`](super::PinStore)). It is consulted whenever a server has listed its tools, and
/// when [`Upstreams::look_again`](super::Upstreams::look_again) is called. It may block.
pub trait Review: fmt::Debug + Send + Sync + 'static {
    /// The review result for each of a server's tools, in their order.
    fn review(&self, source: &Source, tools: &[OfferedTool]) -> Vec<Reviewed>;
}

/// A tool as a server offers it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct OfferedTool {
    /// Its name here.
    pub name: String,
    /// All that the server tells models and people about it: name, title, description, schemas and
    /// annotations.
    pub says: Value,
}

impl OfferedTool {
    /// Creates a tool with this name here.
    pub fn new(name: impl Into<String>, says: Value) -> Self {
        Self { name: name.into(), says }
    }
}

/// The review result for a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reviewed {
    /// This definition was reviewed.
    Accepted,
    /// The definition differs from the reviewed one: the tool is blocked, for this reason.
    Refused(String),
    /// The tool was not reviewed; there may be a remark for people.
    Unknown(Option<String>),
}

/// A review that knows no tool.
#[derive(Debug)]
pub(crate) struct NoReview;

impl Review for NoReview {
    fn review(&self, _: &Source, tools: &[OfferedTool]) -> Vec<Reviewed> {
        vec![Reviewed::Unknown(None); tools.len()]
    }
}
