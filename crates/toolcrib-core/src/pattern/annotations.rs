//! What is asked of a tool's annotations.

use schemars::JsonSchema;
use serde::Deserialize;
use toolcrib_tool::Annotations;

/// What is asked of a tool's annotations; what is absent does not matter.
///
/// ```
/// use toolcrib_core::AnnotationPattern;
/// use toolcrib_tool::Annotations;
///
/// let writers = AnnotationPattern { read_only: Some(false), ..AnnotationPattern::default() };
/// assert!(writers.matches(Annotations::default()));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(description = "What is asked of a tool's annotations; what is absent does not matter.")]
#[serde(default, deny_unknown_fields)]
pub struct AnnotationPattern {
    /// The call changes nothing.
    pub read_only: Option<bool>,
    /// The call may destroy something. Never true of a read-only tool, whatever it says.
    pub destructive: Option<bool>,
    /// Calling twice is calling once.
    pub idempotent: Option<bool>,
    /// The call reaches things outside the host's control.
    pub open_world: Option<bool>,
}

impl AnnotationPattern {
    /// Whether the annotations are as asked.
    pub fn matches(self, annotations: Annotations) -> bool {
        let met = |wanted: Option<bool>, is: bool| wanted.is_none_or(|wanted| wanted == is);
        met(self.read_only, annotations.read_only)
            && met(self.destructive, annotations.may_destroy())
            && met(self.idempotent, annotations.idempotent)
            && met(self.open_world, annotations.open_world)
    }
}
