//! Test doubles: mocks and recordings.

pub(crate) mod mock;
pub(crate) mod recording;
