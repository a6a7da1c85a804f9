//! What is kept and shown of a program's output.

pub(crate) mod masked_json;
pub(crate) mod outcome;
pub(crate) mod redact;
pub(crate) mod streams;
