//! Clients that may connect to a server on loopback, and names that resolve as a test wants.

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

/// A client that may connect to loopback.
pub(crate) fn local() -> ClientBuilder {
    let policy = AddressPolicy::public().allow("127.0.0.0/8".parse().unwrap());
    Client::builder().addresses(policy).limits(quick())
}

/// Short limits, so that a failing test does not take long.
pub(crate) fn quick() -> Limits {
    let mut limits = Limits::default();
    limits.total = std::time::Duration::from_secs(5);
    limits
}

/// Requests a URL that the operator wrote.
pub(crate) async fn get(client: &Client, url: &str) -> Result<Response, Error> {
    let target = Target::parse(url, NamedBy::Operator).unwrap();
    client.send(Request::new(Method::GET, target)).await
}

/// A resolver that returns one list of addresses after the other, and counts its calls.
pub(crate) struct ScriptedResolver {
    answers: Mutex<Vec<Vec<IpAddr>>>,
    asked: Mutex<Vec<String>>,
}

impl ScriptedResolver {
    /// The answers in order; the last one repeats.
    pub(crate) fn new(answers: &[&[&str]]) -> Arc<Self> {
        let list =
            |addresses: &&[&str]| addresses.iter().map(|text| text.parse().unwrap()).collect();
        let mut answers: Vec<Vec<IpAddr>> = answers.iter().map(list).collect();
        answers.reverse();
        Arc::new(Self { answers: Mutex::new(answers), asked: Mutex::default() })
    }

    /// The resolved names.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl Resolver for ScriptedResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        self.asked.lock().unwrap().push(name.to_owned());
        let mut answers = self.answers.lock().unwrap();
        let answer = if answers.len() > 1 { answers.pop() } else { answers.last().cloned() }
            .unwrap_or_default();
        Box::pin(async move { Ok(answer) })
    }
}
