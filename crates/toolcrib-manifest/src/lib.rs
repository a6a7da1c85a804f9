//! Declarations in files.
#![forbid(unsafe_code)]

pub mod declaration;
pub mod template;
