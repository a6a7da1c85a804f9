//! What the served APIs share: errors, events that are sent at once, and the list of models.

mod error;
mod event;
pub(crate) mod fields;
mod models;

pub use error::{ApiError, ErrorType};
pub use event::{SSE_DONE, StreamEvent};
pub use models::{ModelEntry, model_list};
