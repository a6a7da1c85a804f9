//! The guarded client against real sockets on loopback, and URLs that try to get past it.
#![cfg(feature = "client")]
#![cfg_attr(feature = "client", expect(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod bounds;
mod dns;
mod noting_server;
mod redirects;
mod server;
mod spellings;
mod tls;
mod urls;
