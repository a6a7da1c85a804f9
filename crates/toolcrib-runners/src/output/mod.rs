//! Captures and shows a program's output.

pub(crate) mod live;
pub(crate) mod masked_json;
pub(crate) mod outcome;
pub(crate) mod redact_patterns;
pub(crate) mod streams;
