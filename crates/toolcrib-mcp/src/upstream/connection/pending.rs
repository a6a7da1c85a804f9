//! A request to an upstream that is cancelled when its caller stops waiting.

use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::model::{ClientRequest, ProgressToken, ServerResult};
use rmcp::service::{PeerRequestOptions, RequestHandle, ServiceError};

use super::link::{Link, LiveConnection};

/// A request that the server has not answered yet. Dropping it cancels the request.
pub(crate) struct PendingRequest {
    handle: Option<RequestHandle<RoleClient>>,
    token: ProgressToken,
    link: Arc<Link>,
}

impl PendingRequest {
    /// Sends a request over the current connection.
    pub(crate) async fn ask(
        link: &Arc<Link>,
        live: &LiveConnection,
        request: ClientRequest,
    ) -> Result<Self, ServiceError> {
        let options = PeerRequestOptions::no_options();
        let handle = live.peer.send_request_with_option(request, options).await?;
        Ok(Self {
            token: handle.progress_token.clone(),
            handle: Some(handle),
            link: Arc::clone(link),
        })
    }

    /// The token that the server's progress notifications carry.
    pub(crate) fn progress_token(&self) -> ProgressToken {
        self.token.clone()
    }

    pub(crate) async fn answer(&mut self) -> Result<ServerResult, ServiceError> {
        let Some(handle) = &mut self.handle else { return Err(ServiceError::TransportClosed) };
        let answer = (&mut handle.rx).await;
        self.handle = None;
        answer.map_err(|_| ServiceError::TransportClosed)?
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        let Some(handle) = self.handle.take() else { return };
        self.link.given_up.notify_one();
        // Outside a runtime there is no connection left.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let reason = "the caller no longer waits for the answer".to_owned();
            runtime.spawn(handle.cancel(Some(reason)));
        }
    }
}
