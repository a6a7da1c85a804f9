//! Arguments from text to a validated value: parsed once, validated in place. The parser and its
//! tape are `toolcrib-json`.

pub(crate) mod coerce;
pub(crate) mod corrections;
pub mod json_view;
pub(crate) mod messages;
pub mod number_view;
pub(crate) mod preparation;
pub mod prepare;
pub(crate) mod repair;
pub(crate) mod validators;
pub(crate) mod violation;
