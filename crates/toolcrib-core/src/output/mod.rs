//! Output processing: masking of secrets, sensitive arguments, budgets, spilling.

pub(crate) mod budget;
pub(crate) mod excerpt;
pub mod masking;
pub(crate) mod sensitive_arguments;
pub mod spill;
