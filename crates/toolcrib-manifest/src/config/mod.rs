//! Settings files: checked against a schema, layered.

pub(crate) mod decode;
pub mod layers;
