//! The bodies of requests to the Responses API.

mod choice;
mod compact;
mod content;
mod echo;
mod include;
mod input;
mod input_item;
mod kinds;
mod options;
mod response;
mod tools;

pub use choice::{AllowedTool, RequestToolChoice};
pub use compact::CompactRequest;
pub use include::Include;
pub use input_item::{ApprovalAnswer, InputItem, InputKind, Submission, SubmissionKind};
pub use options::{ModelOptions, TextFormat};
pub use response::ResponseRequest;
pub use tools::{
    BuiltInKind, BuiltInTool, CustomTool, FunctionTool, McpApproval, McpServer, RequestTool,
};

pub(crate) use content::part_at;
pub(crate) use input::{Inputs, history, unanswered};
pub(crate) use options::no_probabilities;
pub(crate) use response::{metadata, tool_files};
