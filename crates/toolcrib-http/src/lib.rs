#![doc = include_str!("docs/http.md")]
#![forbid(unsafe_code)]

mod access;
mod admission;
mod answer_store;
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
mod listen;
mod listener;
mod mcp;
mod metrics;
mod observe;
mod openapi;
mod patience;
mod problem;
mod query;
mod routes;
mod self_wakes;
mod server;
mod token;
mod traffic;
mod unix_socket;

pub use access::Right;
pub use answer_store::{AnswerRecord, AnswerStore, Claim, KeptAnswer};
pub use backend::{Backend, Health};
pub use config::{ClientConfig, DEFAULT_PORT, Rate, ServerConfig};
pub use error::HttpError;
pub use listen::{InvalidListen, Listen};
pub use server::HttpServer;
pub use token::{InvalidToken, InvalidTokenHash, Token, TokenHash};
