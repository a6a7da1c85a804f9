//! The current declaration of an upstream: its settings and its rank among the others.

use std::sync::Arc;

use toolcrib_core::SourceUnit;
use toolcrib_tool::{Layer, Source};

use crate::upstream::settings::Upstream;

/// The settings that can change while the connection stays.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct UpstreamDeclaration {
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) rank: u32,
}

impl UpstreamDeclaration {
    /// The registry unit of the upstream under this declaration.
    pub(crate) fn unit(&self) -> SourceUnit {
        SourceUnit::new(Layer::Upstream, self.upstream.name.as_str()).rank(self.rank)
    }

    /// The source of its tools.
    pub(crate) fn source(&self) -> Source {
        self.upstream.source()
    }
}
