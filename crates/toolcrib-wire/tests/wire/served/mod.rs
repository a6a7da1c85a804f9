//! Serving OpenAI's APIs: requests as they are read, and responses as they are written.

mod chat;
mod errors;
mod input;
mod request;
mod writer;
