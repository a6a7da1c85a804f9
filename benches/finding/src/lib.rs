//! Finding tools: by names that are nearly right, and by words that say what a tool should do.

#![forbid(unsafe_code)]
#![allow(
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "a bench that cannot set up its work has nothing to measure"
)]

pub mod catalogue;
pub mod names;
pub mod plain;
pub mod random;
pub mod ranked;
pub mod recall;
pub mod validation;
