#![doc = include_str!("../docs/responses.md")]

mod answer;
mod answer_parts;
mod error;
mod event;
mod item;
mod kind;
mod lists;
mod numbering;
mod outcome;
mod prefixes;
pub(crate) mod request;
mod required_action;
mod resource;
mod shell;
mod stream;
mod writer;

pub use answer::{AnswerError, ToolAnswer, read_output_items, read_tool_outputs};
pub use error::{StreamError, StreamErrorKind};
pub use event::{EventName, ResponseEvent};
pub use kind::CallKind;
pub use lists::{ItemPage, compaction, compaction_item, deleted, input_message, input_tokens};
pub use request::{
    AllowedTool, ApprovalAnswer, BuiltInKind, BuiltInTool, CompactRequest, CustomTool,
    FunctionTool, Include, InputItem, InputKind, McpApproval, McpServer, ModelOptions, RequestTool,
    RequestToolChoice, ResponseRequest, Submission, SubmissionKind, TextFormat,
};
pub use required_action::{OutstandingCall, RequiredAction};
pub use resource::{ResponseFailure, ResponseResource, ResponseStatus};
pub use stream::{Finished, ResponseStream};
pub use writer::{ClientCallLost, Dialect, Phase, ResponseWriter, WriterSettings};
