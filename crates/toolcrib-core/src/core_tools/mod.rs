//! Tools that come with the core: the meta tools, and tools that clients run.

pub mod client_tools;
pub mod meta;
pub(crate) mod search;
