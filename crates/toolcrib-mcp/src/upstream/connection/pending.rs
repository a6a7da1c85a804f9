//! A request to an upstream that is withdrawn when nobody waits for its answer any more.

use rmcp::RoleClient;
use rmcp::model::{ClientRequest, ProgressToken, ServerResult};
use rmcp::service::{PeerRequestOptions, RequestHandle, ServiceError};

use super::link::{Link, Live};

/// A request that the server has not answered yet. Dropped before that, it is withdrawn.
pub(crate) struct Pending<'a> {
    handle: Option<RequestHandle<RoleClient>>,
    token: ProgressToken,
    link: &'a Link,
}

impl<'a> Pending<'a> {
    /// Sends a request over the connection of the moment.
    pub(crate) async fn ask(
        link: &'a Link,
        live: &Live,
        request: ClientRequest,
    ) -> Result<Self, ServiceError> {
        let options = PeerRequestOptions::no_options();
        let handle = live.peer.send_request_with_option(request, options).await?;
        Ok(Self { token: handle.progress_token.clone(), handle: Some(handle), link })
    }

    /// By which the server names it where it tells of progress.
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

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        let Some(handle) = self.handle.take() else { return };
        self.link.given_up.notify_one();
        // Outside a runtime there is no connection any more.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let reason = "the caller does not wait for the answer any more".to_owned();
            runtime.spawn(handle.cancel(Some(reason)));
        }
    }
}
