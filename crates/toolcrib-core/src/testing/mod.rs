//! Test doubles.

pub(crate) mod mock;
