#![doc = include_str!("docs/http.md")]
#![forbid(unsafe_code)]

mod access;
mod admission;
mod api;
mod authority;
mod backend;
mod bearer;
mod body;
mod client;
mod config;
mod direct;
mod endpoint;
mod error;
mod gate;
mod idempotency;
mod listener;
mod mcp;
mod metrics;
mod observe;
mod openapi;
mod problem;
mod query;
mod routes;
mod server;
mod token;
mod traffic;

pub use access::Right;
pub use backend::{Backend, Health};
pub use config::{ClientConfig, DEFAULT_PORT, Rate, ServerConfig};
pub use error::HttpError;
pub use server::HttpServer;
pub use token::{InvalidToken, InvalidTokenHash, Token, TokenHash};
