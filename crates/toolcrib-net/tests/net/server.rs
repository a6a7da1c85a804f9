//! Clients that may reach a server on loopback, and names that lead where a test wants.

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use toolcrib_net::{
    AddressPolicy, BoxFuture, Client, ClientBuilder, Error, Limits, Method, NamedBy, Request,
    Resolver, Response, Target,
};

pub(crate) use crate::noting_server::{Server, answer};

impl Server {
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
