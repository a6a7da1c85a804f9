//! Arguments from text to a validated value: parsed once, checked where they lie. The parser and its
//! tape are `toolcrib-json`.

pub(crate) mod coerce;
pub mod json_view;
pub(crate) mod mending;
pub mod prepare;
pub(crate) mod refusal;
pub(crate) mod repair;
