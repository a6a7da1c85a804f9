//! Tests the guarded client with real sockets on loopback, and with URLs that try to bypass it.
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
