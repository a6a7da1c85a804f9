//! Tools that come with the core: search, describe and call others, and tools that clients run.

pub mod client_tools;
pub mod meta;
pub(crate) mod search;
