//! Where an upstream is declared: its rank among the others, and its place in a file.

use toolcrib_core::SourceUnit;
use toolcrib_tool::{Layer, Origin, Source};

/// What may change while the connection stays: none of it concerns the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) rank: u32,
    pub(crate) origin: Option<Origin>,
}

impl Place {
    /// The registry's unit of an upstream that is declared here.
    pub(crate) fn unit(&self, upstream: &str) -> SourceUnit {
        SourceUnit::new(Layer::Upstream, upstream).rank(self.rank)
    }

    /// Where its tools come from.
    pub(crate) fn source(&self, upstream: &str) -> Source {
        let source = Source::new(Layer::Upstream, upstream);
        match &self.origin {
            Some(origin) => source.at(origin.clone()),
            None => source,
        }
    }
}
