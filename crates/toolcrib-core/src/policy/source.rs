//! Which sources a rule is about.

use toolcrib_tool::{Layer, Source};

use super::glob::Glob;

const LAYERS: [Layer; 5] =
    [Layer::Host, Layer::Native, Layer::Manifest, Layer::Upstream, Layer::Fallback];

/// A layer, units of a layer, or units of any layer.
///
/// The word of a layer always means the layer: an upstream server that is called `host` does not
/// match a rule about `host`.
#[derive(Debug, Clone)]
pub(super) struct SourcePattern {
    layer: Option<Layer>,
    unit: Glob,
}

impl SourcePattern {
    pub(super) fn new(text: &str) -> Result<Self, String> {
        let layer = |word: &str| LAYERS.into_iter().find(|layer| layer.as_str() == word);
        if let Some(layer) = layer(text) {
            return Ok(Self { layer: Some(layer), unit: Glob::Any });
        }
        if let Some((word, unit)) = text.split_once(':')
            && let Some(layer) = layer(word)
        {
            return Ok(Self { layer: Some(layer), unit: Glob::new(unit)? });
        }
        Ok(Self { layer: None, unit: Glob::new(text)? })
    }

    pub(super) fn matches(&self, source: &Source) -> bool {
        self.layer.is_none_or(|layer| layer == source.layer) && self.unit.matches(&source.unit)
    }
}

#[cfg(test)]
mod tests {
    use toolcrib_tool::{Layer, Source};

    use super::SourcePattern;

    #[test]
    fn a_layers_word_never_means_a_unit() {
        let matches = |pattern: &str, layer, unit: &str| {
            SourcePattern::new(pattern).expect("it is one").matches(&Source::new(layer, unit))
        };
        assert!(matches("host", Layer::Host, "anything"));
        assert!(!matches("host", Layer::Upstream, "host"));
        assert!(matches("upstream:host", Layer::Upstream, "host"));
        assert!(!matches("upstream:host", Layer::Manifest, "host"));
        assert!(matches("tools.d/*.yml", Layer::Manifest, "tools.d/a.yml"));
        assert!(matches("git*", Layer::Upstream, "github"));
        assert!(!matches("git*", Layer::Upstream, "legit"));
    }
}
