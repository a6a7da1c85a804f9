//! Patterns for annotations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolcrib_tool::Annotations;

/// A pattern for a tool's annotations; absent fields match anything.
///
/// ```
/// use toolcrib_core::AnnotationPattern;
/// use toolcrib_tool::Annotations;
///
/// let writers = AnnotationPattern { read_only: Some(false), ..AnnotationPattern::default() };
/// assert!(writers.matches(Annotations::default()));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AnnotationPattern {
    /// The call changes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// The call may destroy something. Never true of a read-only tool, whatever it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// Calling twice is calling once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// The call reaches things outside the host's control.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}

impl AnnotationPattern {
    /// Whether it has no conditions.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the annotations match.
    pub fn matches(self, annotations: Annotations) -> bool {
        let met = |wanted: Option<bool>, is: bool| wanted.is_none_or(|wanted| wanted == is);
        met(self.read_only, annotations.read_only)
            && met(self.destructive, annotations.may_destroy())
            && met(self.idempotent, annotations.idempotent)
            && met(self.open_world, annotations.open_world)
    }
}
