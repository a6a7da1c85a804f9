//! A scripted model behind HTTP on the loopback interface: it speaks the three protocols, streams, makes the mistakes it is told
//! to make, and accepts no request that a provider would refuse. With the feature `openai-types` it also refuses requests that
//! the types of the crate `async-openai` do not parse completely.

mod http;
#[cfg(feature = "openai-types")]
mod openai_types;
mod reply;
mod stream;
mod strict;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use toolcrib_wire::model::Wire;

use strict::Checker;

pub use reply::{Fault, Reply};

/// A scripted model behind HTTP. It ends when it is dropped.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    wire: Wire,
    state: Arc<Mutex<ServerState>>,
    /// Aborts its tasks when it is dropped.
    _tasks: JoinSet<()>,
}

#[derive(Debug)]
struct ServerState {
    replies: VecDeque<Reply>,
    is_without_memory: bool,
    answered: usize,
    requests: Vec<ReceivedRequest>,
    violations: Vec<String>,
    checker: Checker,
    /// When the last reply was sent completely.
    replied_at: Option<Instant>,
}

/// A request that the server received.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    /// Its path.
    pub path: String,
    /// Its headers in order, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// Its body as it arrived.
    pub text: String,
    /// Its body.
    pub body: Value,
    /// The time since the reply before was sent completely: the overhead of the loop and its calls.
    pub gap: Option<Duration>,
}

impl ReceivedRequest {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl ModelServer {
    /// Starts a server that gives these replies, one for each request.
    pub async fn start(wire: Wire, replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::with_script(wire, replies, false).await
    }

    /// Starts a server that gives the reply that follows the last call in a request, for clients that lose replies. All
    /// replies but the last need calls.
    pub async fn without_memory(wire: Wire, replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::with_script(wire, replies, true).await
    }

    /// Starts a server that takes over a conversation with another model: what that one has said is not checked.
    pub async fn continuing(wire: Wire, replies: impl IntoIterator<Item = Reply>) -> Self {
        let server = Self::with_script(wire, replies, false).await;
        lock(&server.state).checker.accept_other_models();
        server
    }

    /// Starts a server for a client that may make its conversation shorter: earlier items may change, and the first ones
    /// may be missing.
    pub async fn for_compaction(wire: Wire, replies: impl IntoIterator<Item = Reply>) -> Self {
        let server = Self::with_script(wire, replies, false).await;
        lock(&server.state).checker.accept_compaction();
        server
    }

    /// Starts a server that is asked in several conversations, whose calls it need not have made: each request is checked
    /// for itself.
    pub async fn for_several(wire: Wire, replies: impl IntoIterator<Item = Reply>) -> Self {
        let server = Self::with_script(wire, replies, false).await;
        lock(&server.state).checker.accept_several();
        server
    }

    async fn with_script(
        wire: Wire,
        replies: impl IntoIterator<Item = Reply>,
        is_without_memory: bool,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port on loopback");
        let address = listener.local_addr().expect("a bound socket has an address");
        let state = Arc::new(Mutex::new(ServerState {
            replies: replies.into_iter().collect(),
            is_without_memory,
            answered: 0,
            requests: Vec::new(),
            violations: Vec::new(),
            checker: Checker::new(wire),
            replied_at: None,
        }));
        let mut tasks = JoinSet::new();
        let shared = Arc::clone(&state);
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((connection, _)) = listener.accept().await {
                let state = Arc::clone(&shared);
                connections.spawn(async move {
                    // A client that hangs up is not the server's problem.
                    let _ = serve(wire, connection, &state).await;
                });
                while connections.try_join_next().is_some() {}
            }
        });
        Self { address, wire, state, _tasks: tasks }
    }

    /// The base URL for clients.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The protocol.
    pub fn wire(&self) -> Wire {
        self.wire
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        lock(&self.state).requests.clone()
    }

    /// What was wrong with the requests so far. A wrong request was answered with status 400.
    pub fn violations(&self) -> Vec<String> {
        lock(&self.state).violations.clone()
    }

    /// Adds a reply to the script.
    pub fn push(&self, reply: Reply) {
        lock(&self.state).replies.push_back(reply);
    }
}

fn lock(state: &Mutex<ServerState>) -> MutexGuard<'_, ServerState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(
    wire: Wire,
    mut connection: TcpStream,
    state: &Mutex<ServerState>,
) -> std::io::Result<()> {
    let request = http::read_request(&mut connection).await?;
    if request.path.ends_with("/models") {
        // No reply of the script: nothing was asked of the model.
        let list = serde_json::json!({"object": "list", "data": [{"id": "scripted"}]});
        return http::send_status(&mut connection, 200, &[], &list.to_string()).await;
    }
    let decided = lock(state).decide(wire, request);
    match decided {
        Ok((reply, number)) => {
            http::send(&mut connection, &reply, stream::bytes(wire, &reply, number)).await?;
            lock(state).replied_at = Some(Instant::now());
            Ok(())
        }
        Err(problem) => {
            let body =
                serde_json::json!({"error": {"type": "invalid_request_error", "message": problem}});
            http::send_status(&mut connection, 400, &[], &body.to_string()).await
        }
    }
}

impl ServerState {
    /// The reply to a request and its number, or what is wrong with the request.
    fn decide(&mut self, wire: Wire, request: http::HttpRequest) -> Result<(Reply, usize), String> {
        let gap = self.replied_at.map(|at| at.elapsed());
        let http::HttpRequest { path, headers, body: text } = request;
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        let request = ReceivedRequest { path, headers, text, body, gap };
        if self.is_without_memory {
            self.answered = strict::replies_in(wire, &request.body);
            self.checker.forget();
            for (number, reply) in (1..=self.answered).zip(&self.replies) {
                self.checker.replied(reply, number);
            }
        }
        let checked = self.checker.check(wire, &request);
        #[cfg(feature = "openai-types")]
        let checked = checked.and_then(|()| openai_types::check(wire, &request.body));
        self.requests.push(request);
        let reply = checked.and_then(|()| {
            let reply = if self.is_without_memory {
                self.replies.get(self.answered).cloned()
            } else {
                self.replies.pop_front()
            };
            reply.ok_or_else(|| "the script has no further reply".to_owned())
        });
        let reply = reply.inspect_err(|problem| {
            self.violations.push(format!("request {}: {problem}", self.requests.len()));
        })?;
        self.answered += 1;
        self.checker.replied(&reply, self.answered);
        Ok((reply, self.answered))
    }
}
