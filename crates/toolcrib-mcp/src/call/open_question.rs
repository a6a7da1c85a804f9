//! Ends calls whose client goes away while it is asked something.

use std::sync::Arc;

use toolcrib_core::suspension::{Resolution, Suspension, Waiting};

use crate::call::Call;

/// A question that a client is asked within its request. If it is dropped before the question is over, because
/// the client has gone or has cancelled the request, the call is cancelled: nobody else can answer, and
/// another server may wait for the answer. Calls that wait for an approval stay, since others may decide.
pub(crate) struct OpenQuestion {
    asked: Option<(Arc<Call>, Suspension)>,
}

impl OpenQuestion {
    pub(crate) fn new(call: &Arc<Call>, suspension: &Suspension) -> Self {
        let is_for_one = !matches!(suspension.waiting(), Waiting::Approval { .. });
        Self { asked: is_for_one.then(|| (Arc::clone(call), suspension.clone())) }
    }

    /// Notes that the client has answered, or that it could not be asked.
    pub(crate) fn finish(mut self) {
        self.asked = None;
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        let Some((call, suspension)) = self.asked.take() else { return };
        // A server that ends leaves the call in its store.
        if call.server.closing().is_cancelled() {
            return;
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = call.resume(&suspension, Resolution::Cancel).await {
                    tracing::debug!(?error, "a call without a client could not be cancelled");
                }
            });
        }
    }
}
