//! A real HTTP server on loopback, and clients that may reach it.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::Request as Incoming;
use axum::response::Response as Outgoing;
use toolcrib_net::{
    AddressPolicy, BoxFuture, Client, ClientBuilder, Error, Limits, Method, NamedBy, Request,
    Resolver, Response, Target,
};

/// A request as the server saw it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) line: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

/// A server that runs until the test's runtime ends, and notes what it is asked.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    /// Starts a server that answers by `answer`, which gets the path and the query.
    pub(crate) async fn start<A, F>(answer: A) -> Self
    where
        A: Fn(String) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Outgoing> + Send,
    {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&seen);
        let router = Router::new().fallback(move |incoming: Incoming| {
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

    /// What was asked so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// A URL of this server by its address.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// A client that may reach loopback.
pub(crate) fn local() -> ClientBuilder {
    let policy = AddressPolicy::public().allow("127.0.0.0/8".parse().unwrap());
    Client::builder().addresses(policy).limits(quick())
}

/// Limits that a failing test does not wait long for.
pub(crate) fn quick() -> Limits {
    let mut limits = Limits::default();
    limits.total = std::time::Duration::from_secs(5);
    limits
}

/// Gets a URL that the operator wrote.
pub(crate) async fn get(client: &Client, url: &str) -> Result<Response, Error> {
    let target = Target::parse(url, NamedBy::Operator).unwrap();
    client.send(Request::new(Method::GET, target)).await
}

/// An answer with this status, these headers and this body.
pub(crate) fn answer(status: u16, headers: &[(&str, &str)], body: impl Into<Vec<u8>>) -> Outgoing {
    let mut answer = Outgoing::builder().status(status);
    for (name, value) in headers {
        answer = answer.header(*name, *value);
    }
    answer.body(body.into().into()).unwrap()
}

/// A resolver that says what it is told to, one list after the other, and counts how often it was
/// asked.
pub(crate) struct Script {
    answers: Mutex<Vec<Vec<IpAddr>>>,
    asked: Mutex<Vec<String>>,
}

impl Script {
    /// The answers in their order; the last one stays.
    pub(crate) fn new(answers: &[&[&str]]) -> Arc<Self> {
        let list =
            |addresses: &&[&str]| addresses.iter().map(|text| text.parse().unwrap()).collect();
        let mut answers: Vec<Vec<IpAddr>> = answers.iter().map(list).collect();
        answers.reverse();
        Arc::new(Self { answers: Mutex::new(answers), asked: Mutex::default() })
    }

    /// The names that were asked for.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl Resolver for Script {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        self.asked.lock().unwrap().push(name.to_owned());
        let mut answers = self.answers.lock().unwrap();
        let answer = if answers.len() > 1 { answers.pop() } else { answers.last().cloned() }
            .unwrap_or_default();
        Box::pin(async move { Ok(answer) })
    }
}
