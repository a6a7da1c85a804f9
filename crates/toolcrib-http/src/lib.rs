#![doc = include_str!("docs/http.md")]
#![forbid(unsafe_code)]

mod api;
mod auth;
mod error;
mod idempotency;
mod observability;
mod serving;
mod settings;
pub use api::reports;

pub use crate::auth::client::of_anyone;
pub use crate::auth::right::Right;
pub use crate::auth::token::{InvalidToken, InvalidTokenHash, Token, TokenHash};
pub use crate::idempotency::memory::MemoryAnswers;
pub use crate::idempotency::store::{
    AnswerError, AnswerKey, AnswerLimits, AnswerStore, Claim, StoredResponse,
};
pub use crate::serving::agents::{
    AgentItem, AgentItemId, AgentRunBudget, AgentRunControl, AgentRunError, AgentRunEvent,
    AgentRunFollowers, AgentRunInput, AgentRunItem, AgentRunReport, AgentRunRow, AgentRunStep,
    AgentRunStop, AgentRuns, AgentUsage, AgentWaitingCall, NewAgentRun, RequestedAgent,
};
pub use crate::serving::backend::{Backend, Health};
pub use crate::serving::listen_address::{InvalidListen, Listen};
pub use crate::serving::owner_client::{OwnerClient, OwnerError, path_segment};
pub use crate::serving::owner_socket::OwnerSocket;
pub use crate::serving::responses::{
    BegunResponse, NewResponse, ResponseId, ResponseLog, ResponseWork, Responses, SERVER_STOPPED,
    ShownResponse, UnstoredResponse,
};
pub use crate::serving::server::HttpServer;
pub use crate::settings::reloadable::{ChangedSettings, ServerSettings};
pub use crate::settings::{ClientConfig, DEFAULT_PORT, RESERVED_NAMES, Rate, ServerConfig};
pub use error::HttpError;
