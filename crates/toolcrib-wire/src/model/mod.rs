#![doc = include_str!("../docs/model.md")]

mod answer;
mod anthropic;
mod body;
mod call_ids;
mod chat;
mod conversation;
mod decoder;
mod error;
mod event;
mod failure;
mod item;
mod json;
mod limits;
mod request;
mod responses;
mod sse;
mod wire;

pub use answer::{Answer, StopReason, Usage};
pub use conversation::Conversation;
pub use decoder::{DecoderSettings, StreamDecoder, read_answer};
pub use error::{ModelError, ModelErrorKind};
pub use event::ModelEvent;
pub use failure::{FailureKind, ProviderFailure};
pub use item::{Input, Item, ModelCall, ModelItem, Role, View};
pub use limits::Limits;
pub use request::{ChatDialect, RequestError, RequestHead, ToolChoice};
pub use wire::Wire;
