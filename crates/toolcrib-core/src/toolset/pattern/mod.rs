//! Patterns over names, sources and annotations: the same in policies, toolsets and listings.

mod annotations;
mod source;

pub use annotations::AnnotationPattern;
pub use source::SourcePattern;
pub use toolcrib_tool::Pattern;
