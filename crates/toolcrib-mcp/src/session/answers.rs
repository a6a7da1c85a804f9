//! The transport of a session over HTTP, which notes the requests that are answered.

use std::future::Future;

use rmcp::RoleServer;
use rmcp::model::JsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

use crate::transport::open_requests::{OpenRequests, id_text};

/// A transport that closes each request when its answer is sent.
pub(crate) struct AnswerTransport<T> {
    inner: T,
    open: OpenRequests,
}

impl<T> AnswerTransport<T> {
    pub(crate) fn new(inner: T, open: OpenRequests) -> Self {
        Self { inner, open }
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for AnswerTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let answered = match &message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        if let Some(id) = answered {
            self.open.close(&id_text(id));
        }
        self.inner.send(message)
    }

    fn receive(&mut self) -> impl Future<Output = Option<RxJsonRpcMessage<RoleServer>>> + Send {
        self.inner.receive()
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}
