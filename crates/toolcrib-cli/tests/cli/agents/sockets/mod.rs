//! The Responses API over a `WebSocket`, as clients see it.

mod answers;
mod bounds;

use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_testkit::served::{Dialect, check_events};
use tungstenite::client::IntoClientRequest as _;
use tungstenite::http::HeaderValue;
use tungstenite::{Error, Message, WebSocket};

use crate::harness::http::Http;

/// A client's end of a WebSocket.
struct Socket(WebSocket<TcpStream>);

impl Socket {
    /// Opens a socket, with this token and one more header; otherwise returns the status of the refusal.
    fn try_open(
        server: &Http,
        token: &str,
        header: Option<(&'static str, &str)>,
    ) -> Result<Self, u16> {
        let url = format!("ws://{}/v1/responses", server.address);
        let mut request = url.into_client_request().expect("a URL");
        let mut add = |name: &'static str, value: &str| {
            request.headers_mut().insert(name, HeaderValue::from_str(value).expect("a value"));
        };
        add("authorization", &format!("Bearer {token}"));
        if let Some((name, value)) = header {
            add(name, value);
        }
        let stream = TcpStream::connect(&server.address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a limit");
        match tungstenite::client(request, stream) {
            Ok((socket, _)) => Ok(Self(socket)),
            Err(tungstenite::HandshakeError::Failure(Error::Http(refused))) => {
                Err(refused.status().as_u16())
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn open(server: &Http) -> Self {
        Self::try_open(server, &server.token, None).expect("it opens")
    }

    /// Sends a request.
    fn send(&mut self, request: &Value) {
        let mut message = request.clone();
        message["type"] = "response.create".into();
        self.0.send(Message::text(message.to_string())).expect("it reads");
    }

    /// The next message; or the code and the reason with which the server has closed the socket.
    fn receive(&mut self) -> Result<Value, (u16, String)> {
        loop {
            match self.0.read() {
                Ok(Message::Text(text)) => return Ok(serde_json::from_str(&text).expect("JSON")),
                Ok(Message::Close(frame)) => {
                    let frame = frame.expect("a reason");
                    return Err((frame.code.into(), frame.reason.to_string()));
                }
                Ok(_) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// The events of the next response, which are checked, and the response; or the error in its place.
    fn answer(&mut self) -> Result<(Vec<Value>, Value), Value> {
        let mut events = Vec::new();
        loop {
            let event = self.receive().expect("an event");
            if event["type"] == "error" && event["sequence_number"].is_null() {
                return Err(event);
            }
            let kind = event["type"].as_str().expect("a type").to_owned();
            events.push(event);
            let ends = ["response.completed", "response.incomplete", "response.failed"];
            if ends.contains(&&*kind) {
                let checked = check_events(Dialect::OpenAi, &events).expect("as specified");
                return Ok((events, checked.response));
            }
        }
    }

    fn ask(&mut self, request: &Value) -> Value {
        self.send(request);
        self.answer().unwrap_or_else(|error| panic!("{error}")).1
    }

    fn refused(&mut self, request: &Value) -> Value {
        self.send(request);
        let error = self.answer().expect_err("an error");
        assert!(error["status"].is_u64() && error["error"]["message"].is_string(), "{error}");
        error
    }
}

fn look() -> Value {
    json!({"type": "function", "name": "look", "description": "Look.",
           "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}})
}

fn output(call: &Value, output: &str) -> Value {
    json!([{"type": "function_call_output", "call_id": call["call_id"], "output": output}])
}

fn text_of(response: &Value) -> &str {
    let output = response["output"].as_array().expect("an output");
    let message = output.iter().rfind(|item| item["type"] == "message");
    message.and_then(|item| item["content"][0]["text"].as_str()).unwrap_or_default()
}

/// The item of a type.
fn item<'r>(response: &'r Value, kind: &str) -> &'r Value {
    let items = response["output"].as_array().expect("an output");
    items.iter().find(|item| item["type"] == kind).unwrap_or_else(|| panic!("{kind}: {response}"))
}
