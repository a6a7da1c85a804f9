//! What a call hands out: masked, redacted, fitted to a budget, the rest spilled.

pub(crate) mod budget;
pub(crate) mod excerpt;
pub mod masking;
pub(crate) mod redaction;
pub mod spill;
