//! A server of the built program with its HTTP API, and requests to it.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::connection::{self, Connection};
use super::crib::Crib;
use super::server::{Server, command};

/// A server and the client's settings for it.
pub(crate) struct Http {
    pub(crate) server: Server,
    pub(crate) address: String,
    pub(crate) token: String,
}

pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

impl Http {
    pub(crate) fn start(crib: &Crib, token: &str) -> Self {
        let arguments = ["serve", "--listen", "127.0.0.1:0", "--json"];
        Self::told(Server::start(crib, &arguments), token)
    }

    /// A server that is started by another command, which ends in `serve --json`.
    pub(crate) fn spawn(crib: &Crib, command: Command) -> Self {
        Self::told(Server::spawn(crib, command), "")
    }

    /// As [`start`](Self::start), with the log in a file.
    pub(crate) fn start_with_log(crib: &Crib, token: &str, log: File) -> Self {
        let mut command = command(env!("CARGO_BIN_EXE_toolcrib"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--json"]).env_remove("TOOLCRIB_TOKEN");
        Self::told(Server::spawn_with_log(crib, command, log.into()), token)
    }

    /// As [`spawn`](Self::spawn), with the log in a file.
    pub(crate) fn spawn_with_log(crib: &Crib, command: Command, log: File) -> Self {
        Self::told(Server::spawn_with_log(crib, command, log.into()), "")
    }

    fn told(mut server: Server, token: &str) -> Self {
        let said = server.receive();
        let address = said["api"].as_str().expect("a URL").trim_start_matches("http://").to_owned();
        let token = said["token"].as_str().unwrap_or(token).to_owned();
        Self { server, address, token }
    }

    pub(crate) fn ask(&self, line: &str, body: Option<&Value>) -> Reply {
        ask(&self.address, &self.token, line, body).expect("an answer")
    }

    /// Like `ask`; `None` if the server does not answer.
    pub(crate) fn try_ask(&self, line: &str, body: Option<&Value>) -> Option<Reply> {
        ask(&self.address, &self.token, line, body)
    }

    /// Sends a request and returns the connection, for reading the answer as it arrives. `head`
    /// contains the request line and the headers that are not in every request.
    pub(crate) fn stream(&self, head: &str, body: &Value) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a limit");
        let body = body.to_string();
        write!(
            stream,
            "{head}\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        )
        .expect("it reads");
        stream
    }

    /// A connection that stays open.
    pub(crate) fn connection(&self) -> Connection {
        Connection::open(&self.address, &self.token).expect("it listens")
    }

    /// A call with a key. Fails if the server dies during it.
    pub(crate) fn ask_under(
        &self,
        key: &str,
        tool: &str,
        arguments: &Value,
    ) -> io::Result<connection::Reply> {
        let line = format!("POST /v1/tools/{tool}/call");
        let body = json!({"arguments": arguments});
        Connection::open(&self.address, &self.token)?.ask(&line, &[("idempotency-key", key)], &body)
    }
}

/// One request on its own connection; `None` if the server does not answer.
pub(crate) fn ask(address: &str, token: &str, line: &str, body: Option<&Value>) -> Option<Reply> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(30))).ok()?;
    let body = body.map(toolcrib::tool::canonical_json).unwrap_or_default();
    write!(
        stream,
        "{line} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
         authorization: Bearer {token}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Reply { status, body: body.to_owned() })
}
