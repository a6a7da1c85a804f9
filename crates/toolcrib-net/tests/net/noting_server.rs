//! A real HTTP server on loopback that records its requests. The tests of other crates use this file, too.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::Request;
use axum::response::Response;

/// A request as the server received it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) line: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

/// A server that runs until the test's runtime ends, and records its requests.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    /// Starts a server that answers with `answer`, which gets the path and the query.
    pub(crate) async fn start<A, F>(answer: A) -> Self
    where
        A: Fn(String) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response> + Send,
    {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&seen);
        let router = Router::new().fallback(move |incoming: Request| {
            let (noted, answer) = (Arc::clone(&noted), answer.clone());
            async move {
                let line = format!("{} {}", incoming.method(), incoming.uri());
                let asked = incoming.uri().to_string();
                let headers = incoming.headers().iter().map(|(name, value)| {
                    (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
                });
                let headers = headers.collect();
                let body = axum::body::to_bytes(incoming.into_body(), 1 << 20).await.unwrap();
                let body = String::from_utf8_lossy(&body).into_owned();
                noted.lock().unwrap().push(Seen { line, headers, body });
                answer(asked).await
            }
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, seen }
    }

    /// The requests so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

/// A response with this status, these headers and this body.
pub(crate) fn answer(status: u16, headers: &[(&str, &str)], body: impl Into<Vec<u8>>) -> Response {
    let mut answer = Response::builder().status(status);
    for (name, value) in headers {
        answer = answer.header(*name, *value);
    }
    answer.body(body.into().into()).unwrap()
}
