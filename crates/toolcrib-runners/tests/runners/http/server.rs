//! The server of the HTTP client's tests, and one with a fixed response.

#[path = "../../../../toolcrib-net/tests/net/noting_server.rs"]
mod noting_server;

pub(crate) use noting_server::{Server, answer};

impl Server {
    /// Its host and port.
    pub(crate) fn host(&self) -> String {
        self.address.to_string()
    }

    /// A server with a fixed response.
    pub(crate) async fn always(
        status: u16,
        headers: &'static [(&'static str, &'static str)],
        body: impl Into<Vec<u8>>,
    ) -> Self {
        let body = body.into();
        Self::start(move |_| {
            let body = body.clone();
            async move { answer(status, headers, body) }
        })
        .await
    }
}
