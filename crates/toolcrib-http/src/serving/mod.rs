//! Listeners, connections, requests and shutdown.

pub(crate) mod agents;
pub(crate) mod backend;
pub(crate) mod connections;
pub(crate) mod drained_body;
pub(crate) mod listen_address;
pub(crate) mod mcp;
pub(crate) mod owner_client;
pub(crate) mod owner_socket;
pub(crate) mod request_body;
pub(crate) mod responses;
pub(crate) mod routes;
pub(crate) mod server;
pub(crate) mod unix_socket;
