//! Arguments from text to a validated value: parsed once, checked where they lie. The parser and its
//! tape are `toolcrib-json`.

pub mod coerce;
pub mod json_view;
pub mod prepare;
pub mod repair;
