//! Units that declare tools.

use std::fmt;

use hashbrown::Equivalent;
use toolcrib_tool::{Layer, Source};

/// A unit that declares tools and is replaced as a whole: a manifest file, an upstream server.
///
/// It is identified by layer and name. The rank only orders the units of a layer: lower ranks first
/// (for manifests, the index of the directory in the configuration), then names by their bytes.
///
/// ```
/// use toolcrib_core::SourceUnit;
/// use toolcrib_tool::Layer;
///
/// let unit = SourceUnit::new(Layer::Manifest, "tools.d/disk.yaml").rank(1);
/// assert_eq!(unit.to_string(), "manifest tools.d/disk.yaml");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SourceUnit {
    pub(super) key: UnitKey,
    pub(super) rank: u32,
}

impl SourceUnit {
    /// A unit of rank 0.
    pub fn new(layer: Layer, name: impl Into<String>) -> Self {
        Self { key: UnitKey { layer, name: name.into() }, rank: 0 }
    }

    /// Sets its rank within the layer.
    #[must_use]
    pub fn rank(mut self, rank: u32) -> Self {
        self.rank = rank;
        self
    }

    /// The layer.
    pub fn layer(&self) -> Layer {
        self.key.layer
    }

    /// The name, as in [`Source::unit`].
    pub fn name(&self) -> &str {
        &self.key.name
    }
}

impl fmt::Display for SourceUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key.fmt(f)
    }
}

/// The key of a unit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct UnitKey {
    pub(super) layer: Layer,
    pub(super) name: String,
}

impl UnitKey {
    pub(super) fn of(source: &Source) -> Self {
        Self { layer: source.layer, name: source.unit.clone() }
    }

    pub(super) fn is_of(&self, source: &Source) -> bool {
        self.layer == source.layer && self.name == source.unit
    }
}

/// A borrowed key.
#[derive(Debug, Hash)]
pub(super) struct UnitRef<'a> {
    layer: Layer,
    name: &'a str,
}

impl<'a> UnitRef<'a> {
    pub(super) fn of(source: &'a Source) -> Self {
        Self { layer: source.layer, name: &source.unit }
    }
}

impl Equivalent<UnitKey> for UnitRef<'_> {
    fn equivalent(&self, key: &UnitKey) -> bool {
        self.layer == key.layer && self.name == key.name
    }
}

impl fmt::Display for UnitKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.layer.as_str(), self.name)
    }
}

/// The position of an entry within its layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EntryPosition {
    /// Registered individually; the number counts such registrations.
    Registered(u64),
    /// Declared by a unit of that rank, at that position.
    Declared {
        /// The unit's rank; units of equal rank are ordered by name.
        rank: u32,
        /// Within the unit.
        position: u32,
    },
}
