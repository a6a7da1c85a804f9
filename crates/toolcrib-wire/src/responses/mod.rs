#![doc = include_str!("../docs/responses.md")]

mod answer;
mod answer_parts;
mod error;
mod event;
mod item;
mod kind;
mod numbering;
mod outcome;
mod required_action;
mod shell;
mod stream;

pub use answer::{AnswerError, ToolAnswer, read_output_items, read_tool_outputs};
pub use error::{StreamError, StreamErrorKind};
pub use event::{EventName, ResponseEvent};
pub use kind::CallKind;
pub use required_action::{OutstandingCall, RequiredAction};
pub use stream::{Finished, ResponseStream};
