//! Patterns over names, sources and annotations: the same in policies, toolsets and listings.

mod annotations;
mod glob;
mod source;

pub use annotations::AnnotationPattern;
pub use glob::Pattern;
pub use source::SourcePattern;
