//! Arguments from text to a validated value: parsed once, checked where they lie.

pub mod coerce;
pub mod json_view;
pub mod parse;
pub mod prepare;
pub mod repair;
pub mod tape;
