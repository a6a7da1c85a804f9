//! Models: one request, one answer.

#[cfg(feature = "http")]
mod endpoint;
mod error;
#[cfg(feature = "http")]
mod listing;
mod scripted;

use std::sync::atomic::{AtomicBool, Ordering};

use toolcrib_tool::BoxFuture;
use toolcrib_wire::model::{Answer, DecoderSettings, ModelEvent, RequestHead, Wire};

use crate::budget::Prices;

#[cfg(feature = "http")]
pub use endpoint::{Endpoint, EndpointTimeouts, check_base_url, is_unencrypted};
pub use error::{AttemptError, AttemptErrorKind};
pub use scripted::{ScriptedModel, ScriptedTurn};

/// Whether [`deny_model_requests`] was called.
static IS_DENIED: AtomicBool = AtomicBool::new(false);

/// Makes every request of an [`Endpoint`] fail from now on, in the whole process: for tests, in which a real model must
/// not be asked by accident. [`ScriptedModel`] and other clients still answer.
///
/// ```
/// toolcrib_agent::model::deny_model_requests();
/// ```
pub fn deny_model_requests() {
    IS_DENIED.store(true, Ordering::Relaxed);
}

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

/// Whether no request may be sent.
#[cfg(feature = "http")]
fn is_denied() -> bool {
    IS_DENIED.load(Ordering::Relaxed)
}
