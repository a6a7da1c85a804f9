//! Serving OpenAI's chat completions, as data.
//!
//! A [`ChatRequest`] reads the body of a request, with the same items, tools and options as one to the
//! [Responses API](crate::responses). A [`ChatWriter`] writes the answer, in chunks or at once.

mod chunk;
mod completion;
mod messages;
mod request;

pub use chunk::ChatWriter;
pub use completion::FinishReason;
pub use request::ChatRequest;
