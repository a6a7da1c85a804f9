//! Models: one request, one answer.

#[cfg(feature = "http")]
mod endpoint;
mod error;
#[cfg(feature = "http")]
mod listing;
mod scripted;

use toolcrib_tool::BoxFuture;
use toolcrib_wire::model::{Answer, DecoderSettings, ModelEvent, RequestHead, Wire};

use crate::budget::Prices;

#[cfg(feature = "http")]
pub use endpoint::{Endpoint, EndpointTimeouts, check_base_url};
pub use error::{AttemptError, AttemptErrorKind};
pub use scripted::{ScriptedModel, ScriptedTurn};

/// A model that can be asked. [`Endpoint`] reaches one over HTTP, and [`ScriptedModel`] is one for tests.
pub trait ModelClient: Send + Sync {
    /// The format of its requests and answers.
    fn wire(&self) -> Wire;

    /// What its requests begin with: the model's name, its source and its settings. The agent adds instructions, tools
    /// and the cache key.
    fn head(&self) -> RequestHead;

    /// How many tokens a request and its answer may have, if it is known. See [`Compaction`](crate::Compaction).
    fn context_window(&self) -> Option<u64> {
        None
    }

    /// Its prices, if they are known.
    fn prices(&self) -> Option<Prices> {
        None
    }

    /// Makes one attempt: sends `request`, reports the answer's events for display, and returns the answer if it is
    /// complete. It does not retry. Dropping the future ends the request.
    fn ask<'a>(
        &'a self,
        request: String,
        settings: DecoderSettings,
        events: &'a mut (dyn FnMut(ModelEvent) + Send),
    ) -> BoxFuture<'a, Result<Answer, AttemptError>>;
}
