#![doc = include_str!("docs/http.md")]
#![forbid(unsafe_code)]

mod admission;
mod authority;
mod bearer;
mod config;
mod error;
mod problem;
mod routes;
mod server;
mod token;

pub use config::{DEFAULT_PORT, ServerConfig};
pub use error::HttpError;
pub use server::HttpServer;
pub use token::{InvalidToken, Token};
