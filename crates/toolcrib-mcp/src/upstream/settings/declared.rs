//! How an upstream is declared at the moment: its settings, and its rank among the others.

use std::sync::Arc;

use toolcrib_core::SourceUnit;
use toolcrib_tool::{Layer, Source};

use crate::upstream::settings::Upstream;

/// What may change while the connection stays: none of it concerns the server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Declared {
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) rank: u32,
}

impl Declared {
    /// The registry's unit of an upstream that is declared so.
    pub(crate) fn unit(&self) -> SourceUnit {
        SourceUnit::new(Layer::Upstream, self.upstream.name.as_str()).rank(self.rank)
    }

    /// Where its tools come from.
    pub(crate) fn source(&self) -> Source {
        let source = Source::new(Layer::Upstream, self.upstream.name.as_str());
        match &self.upstream.origin {
            Some(origin) => source.at(origin.clone()),
            None => source,
        }
    }
}
