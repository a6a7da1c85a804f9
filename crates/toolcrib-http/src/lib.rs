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
mod entitlement;
mod error;
mod gate;
mod idempotency;
mod lingering;
mod listen;
mod listener;
mod live_clients;
mod mcp;
mod memory_answers;
mod metrics;
mod observe;
mod openapi;
mod owner_client;
mod owner_socket;
mod patience;
mod problem;
mod query;
mod revocation;
mod routes;
mod self_wakes;
mod server;
mod server_settings;
mod token;
mod traffic;
mod unix_socket;

pub use access::Right;
pub use answer_store::{
    AnswerError, AnswerKey, AnswerLimits, AnswerStore, Claim, KeptAnswer,
};
pub use memory_answers::MemoryAnswers;
pub use backend::{Backend, Health};
pub use config::{ClientConfig, DEFAULT_PORT, RESERVED_NAMES, Rate, ServerConfig};
pub use error::HttpError;
pub use listen::{InvalidListen, Listen};
pub use owner_client::{OwnerClient, OwnerError, path_segment};
pub use owner_socket::OwnerSocket;
pub use server::HttpServer;
pub use server_settings::{ChangedSettings, ServerSettings};
pub use token::{InvalidToken, InvalidTokenHash, Token, TokenHash};
