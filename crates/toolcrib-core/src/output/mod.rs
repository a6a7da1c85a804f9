//! Output processing: masking, redaction, budgets, spilling.

pub(crate) mod budget;
pub(crate) mod excerpt;
pub mod masking;
pub(crate) mod redaction;
pub mod spill;
