//! Patterns for sources.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use toolcrib_tool::{Layer, Source};

use super::Pattern;

const LAYERS: [Layer; 5] =
    [Layer::Host, Layer::Native, Layer::Manifest, Layer::Upstream, Layer::Fallback];

/// A layer (`native`), units of any layer (`tools.d/*`), or units of a layer (`upstream:git*`);
/// units are a [`Pattern`].
///
/// The name of a layer always means the layer: an upstream server named `host` is matched by
/// `upstream:host`, not by `host`.
///
/// ```
/// use toolcrib_core::SourcePattern;
/// use toolcrib_tool::{Layer, Source};
///
/// let github = Source::new(Layer::Upstream, "github");
/// assert!(SourcePattern::new("upstream").matches(&github));
/// assert!(SourcePattern::new("git*").matches(&github));
/// assert!(!SourcePattern::new("manifest:git*").matches(&github));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(from = "String")]
#[schemars(with = "String")]
pub struct SourcePattern {
    layer: Option<Layer>,
    unit: Option<Pattern>,
}

impl SourcePattern {
    /// Creates a pattern; every text is valid.
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        let layer = |word: &str| LAYERS.into_iter().find(|layer| layer.as_str() == word);
        if let Some(layer) = layer(&text) {
            return Self { layer: Some(layer), unit: None };
        }
        if let Some((word, unit)) = text.split_once(':')
            && let Some(layer) = layer(word)
        {
            return Self { layer: Some(layer), unit: Some(Pattern::new(unit)) };
        }
        Self { layer: None, unit: Some(Pattern::new(text)) }
    }

    /// Whether the source matches.
    pub fn matches(&self, source: &Source) -> bool {
        self.layer.is_none_or(|layer| layer == source.layer)
            && self.unit.as_ref().is_none_or(|unit| unit.matches(&source.unit))
    }
}

impl From<String> for SourcePattern {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl Serialize for SourcePattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for SourcePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.layer, &self.unit) {
            (Some(layer), Some(unit)) => write!(f, "{}:{unit}", layer.as_str()),
            (Some(layer), None) => f.write_str(layer.as_str()),
            (None, unit) => unit.iter().try_for_each(|unit| unit.fmt(f)),
        }
    }
}

#[cfg(test)]
mod tests {
    use toolcrib_tool::{Layer, Source};

    use super::SourcePattern;

    #[test]
    fn a_layers_word_never_means_a_unit() {
        let matches = |pattern: &str, layer, unit: &str| {
            SourcePattern::new(pattern).matches(&Source::new(layer, unit))
        };
        assert!(matches("host", Layer::Host, "anything"));
        assert!(!matches("host", Layer::Upstream, "host"));
        assert!(matches("upstream:host", Layer::Upstream, "host"));
        assert!(!matches("upstream:host", Layer::Manifest, "host"));
        assert!(matches("tools.d/*.yml", Layer::Manifest, "tools.d/a.yml"));
        assert!(matches("git*", Layer::Upstream, "github"));
        assert!(!matches("git*", Layer::Upstream, "legit"));
        assert!(matches("a:b", Layer::Upstream, "a:b"));
    }

    #[test]
    fn it_is_printed_as_it_was_written() {
        for text in ["host", "upstream:git*", "tools.d/*", "*:hub", "host:", ""] {
            assert_eq!(SourcePattern::new(text).to_string(), text);
        }
    }
}
