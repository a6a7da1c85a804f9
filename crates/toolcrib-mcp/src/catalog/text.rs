//! Text templates.

use std::collections::BTreeMap;

/// A text with placeholders for values.
///
/// ```
/// use toolcrib_mcp::catalog::{CatalogText, TextPiece};
///
/// let text = CatalogText::from("Review this.");
/// assert_eq!(text.pieces, [TextPiece::Literal("Review this.".to_owned())]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CatalogText {
    /// Its pieces, in order.
    pub pieces: Vec<TextPiece>,
}

/// One piece of a [`CatalogText`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextPiece {
    /// Literal text.
    Literal(String),
    /// The value with that name, or nothing if there is none.
    Value(String),
}

impl CatalogText {
    /// Fills in the values. Placeholders inside a value are not expanded.
    pub(crate) fn fill(&self, values: &BTreeMap<String, String>) -> String {
        let pieces = self.pieces.iter().map(|piece| match piece {
            TextPiece::Literal(text) => text.as_str(),
            TextPiece::Value(name) => values.get(name).map_or("", String::as_str),
        });
        pieces.collect()
    }
}

impl From<&str> for CatalogText {
    fn from(text: &str) -> Self {
        Self { pieces: vec![TextPiece::Literal(text.to_owned())] }
    }
}
