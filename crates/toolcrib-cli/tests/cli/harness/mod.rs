//! Shared helpers: a folder with manifests, runs of the binary in it, and servers.

pub(crate) mod connection;
pub(crate) mod crib;
pub(crate) mod http;
pub(crate) mod server;
pub(crate) mod upstream;
