//! The Responses API over a WebSocket: a client asks for one response after another.

mod memory;
mod message;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::http::header::UPGRADE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use tokio::time::{sleep, timeout};
use toolcrib_wire::api::{ApiError, ErrorType, StreamEvent};

use super::create::Making;
use super::error::Refused;
use super::responses;
use crate::api::Api;
use crate::auth::client::Client;
use crate::auth::client_limits::LimitExceeded;
use crate::auth::entitlement::{AdmittedRequest, EntitlementLost};
use crate::serving::connections::ConnectionSlot;
use crate::serving::request_body::BodyLimits;
use memory::Memory;
use message::Create;

/// How long a socket may be open.
const LIFETIME: Duration = Duration::from_secs(60 * 60);

/// How long a socket is silent until its client is pinged, and how long the client may take to answer.
const PING: Duration = Duration::from_secs(30);

/// How long a client may take to read a message.
const SEND: Duration = Duration::from_secs(60);

/// How long a client may take to read why its socket is closed.
const CLOSE: Duration = Duration::from_secs(1);

/// How many requests may wait while a response is made. Together they may be as long as one message.
const WAITING: usize = 8;

/// The longest reason of a close frame, in bytes.
const REASON_MAX: usize = 123;

pub(crate) async fn open(
    State(api): State<Api>,
    Extension(client): Extension<Arc<Client>>,
    Extension(limits): Extension<BodyLimits>,
    slot: Option<Extension<ConnectionSlot>>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Refused> {
    responses(&api)?;
    let Ok(upgrade) = upgrade else { return Ok(upgrade_required(&api)) };
    let request = api.this_request();
    let open = move |socket| async move {
        let session = Session {
            api,
            client,
            socket,
            message_bytes: limits.bytes,
            memory: Memory::default(),
            waiting: VecDeque::new(),
            is_pinged: false,
        };
        request.during(Box::pin(session.run())).await;
        // The connection counts until the socket is closed.
        drop(slot);
    };
    let upgrade = upgrade.max_message_size(limits.bytes).max_frame_size(limits.bytes);
    Ok(upgrade.on_upgrade(open))
}

fn upgrade_required(api: &Api) -> Response {
    let message = "GET /v1/responses opens a WebSocket: connect with ws:// or wss://, or send POST";
    let status = StatusCode::UPGRADE_REQUIRED;
    let error = ApiError::invalid(message).with_status(status.as_u16());
    let mut response = Refused::new(api, &error).into_response();
    response.headers_mut().insert(UPGRADE, HeaderValue::from_static("websocket"));
    response
}

/// An open socket.
struct Session {
    api: Api,
    client: Arc<Client>,
    socket: WebSocket,
    /// The maximum size of a message.
    message_bytes: usize,
    memory: Memory,
    /// Messages that came while a response was made.
    waiting: VecDeque<Utf8Bytes>,
    /// Whether the client has been silent since it was pinged.
    is_pinged: bool,
}

/// How a socket ends.
enum Ending {
    /// The client has left, or reads nothing.
    Gone,
    /// The server closes it, with a code and a reason.
    Close(u16, Cow<'static, str>),
}

/// What a request was answered with.
enum Begun {
    Made(Making),
    /// It only prepares the next one.
    Prepared(Vec<StreamEvent>),
}

impl Session {
    async fn run(mut self) {
        let Ending::Close(code, reason) = self.serve().await else { return };
        let mut end = reason.len().min(REASON_MAX);
        while !reason.is_char_boundary(end) {
            end -= 1;
        }
        let frame = CloseFrame { code, reason: reason[..end].into() };
        // The client reads the reason before the connection is gone.
        let _ = timeout(CLOSE, async {
            self.socket.send(Message::Close(Some(frame))).await?;
            while let Some(Ok(_)) = self.socket.recv().await {}
            Ok::<_, axum::Error>(())
        })
        .await;
    }

    /// Answers requests until the socket ends.
    async fn serve(&mut self) -> Ending {
        let mut lost = pin!(entitlement_lost());
        let mut old = pin!(sleep(LIFETIME));
        let closing = self.api.closing().clone();
        loop {
            let ending = tokio::select! {
                biased;
                lost = &mut lost => self.revoked(lost).await,
                () = closing.cancelled() => {
                    Ending::Close(close_code::AWAY, "the server is stopping".into())
                }
                () = &mut old => self.too_old().await,
                message = self.message() => match message {
                    Err(ending) => ending,
                    Ok(text) => {
                        let answered = tokio::select! {
                            biased;
                            lost = &mut lost => Err(lost),
                            answered = self.answer(&text) => Ok(answered),
                        };
                        match answered {
                            Ok(Ok(())) => continue,
                            Ok(Err(ending)) => ending,
                            Err(lost) => self.revoked(lost).await,
                        }
                    }
                },
            };
            return ending;
        }
    }

    async fn revoked(&mut self, lost: EntitlementLost) -> Ending {
        let kind = match lost {
            EntitlementLost::Revoked => ErrorType::Authentication,
            EntitlementLost::Right(_) | EntitlementLost::Calls => ErrorType::Permission,
        };
        let told = self.refuse(&ApiError::new(kind, lost.to_string())).await;
        told.err().unwrap_or_else(|| Ending::Close(close_code::POLICY, lost.to_string().into()))
    }

    async fn too_old(&mut self) -> Ending {
        let message = "a WebSocket is open for at most 60 minutes: open another one";
        let error = ApiError::invalid(message).with_code("websocket_connection_limit_reached");
        let told = self.refuse(&error).await;
        told.err().unwrap_or_else(|| Ending::Close(close_code::NORMAL, message.into()))
    }

    /// The next request.
    async fn message(&mut self) -> Result<Utf8Bytes, Ending> {
        match self.waiting.pop_front() {
            Some(text) => Ok(text),
            None => self.receive().await,
        }
    }

    /// Waits for a message. Does nothing but wait, so it can be dropped at any time.
    async fn receive(&mut self) -> Result<Utf8Bytes, Ending> {
        loop {
            let Ok(message) = timeout(PING, self.socket.recv()).await else {
                if std::mem::replace(&mut self.is_pinged, true) {
                    return Err(Ending::Gone);
                }
                self.send(Message::Ping(axum::body::Bytes::new())).await?;
                continue;
            };
            self.is_pinged = false;
            match message {
                Some(Ok(Message::Text(text))) => return Ok(text),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(Message::Binary(_))) => {
                    let reason = "a message is a text with JSON";
                    return Err(Ending::Close(close_code::UNSUPPORTED, reason.into()));
                }
                None | Some(Ok(Message::Close(_))) => return Err(Ending::Gone),
                Some(Err(error)) => return Err(self.unreadable(error)),
            }
        }
    }

    fn unreadable(&self, error: axum::Error) -> Ending {
        match error.into_inner().downcast_ref() {
            Some(tungstenite::Error::Capacity(_)) => {
                let reason = format!("a message has at most {} bytes", self.message_bytes);
                Ending::Close(close_code::SIZE, reason.into())
            }
            Some(tungstenite::Error::Utf8(_)) => {
                Ending::Close(close_code::INVALID, "a message is UTF-8".into())
            }
            _ => Ending::Gone,
        }
    }

    async fn send(&mut self, message: Message) -> Result<(), Ending> {
        match timeout(SEND, self.socket.send(message)).await {
            Ok(Ok(())) => Ok(()),
            _ => Err(Ending::Gone),
        }
    }

    async fn refuse(&mut self, error: &ApiError) -> Result<(), Ending> {
        let text = message::error_text(&self.api, error);
        self.send(Message::Text(text.into())).await
    }

    /// Answers a request.
    async fn answer(&mut self, text: &str) -> Result<(), Ending> {
        let create = match self.read(text) {
            Ok(create) => create,
            Err(error) => return self.refuse(&error).await,
        };
        let previous = create.request.previous_response_id.clone();
        match Box::pin(self.begin(create)).await {
            Ok(Begun::Made(making)) => self.follow(making, previous.as_deref()).await,
            Ok(Begun::Prepared(events)) => {
                for event in events {
                    self.send(Message::Text(event.json().into())).await?;
                }
                Ok(())
            }
            Err(error) => {
                self.memory.forget(previous.as_deref());
                self.refuse(&error).await
            }
        }
    }

    fn read(&self, text: &str) -> Result<Create, ApiError> {
        self.client.limits.count().map_err(|limit| {
            let wait = match limit {
                LimitExceeded::Rate(wait) => wait,
                LimitExceeded::Concurrency => Duration::from_secs(1),
            };
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            let message = format!("this client sends too many requests: wait {seconds} s");
            ApiError::new(ErrorType::TooManyRequests, message).with_code("rate_limited")
        })?;
        Create::read(&self.api, text)
    }

    async fn begin(&mut self, create: Create) -> Result<Begun, ApiError> {
        let is_prepared = !create.request.generate;
        let (create, unstored) = self.memory.resolved(create, self.message_bytes)?;
        if is_prepared {
            return Ok(Begun::Prepared(self.memory.prepare(create, unstored)?));
        }
        let Create { request, body } = create;
        let making = Making::begin(&self.api, &self.client, (request, body), unstored).await?;
        Ok(Begun::Made(making))
    }

    /// Sends the events of a response.
    async fn follow(&mut self, making: Making, previous: Option<&str>) -> Result<(), Ending> {
        let Making { log, cancel, work, unstored, value } = making;
        // What is not stored ends with its socket.
        let guard = unstored.is_some().then(|| cancel.drop_guard());
        let mut after = None;
        loop {
            let event = tokio::select! {
                biased;
                event = log.next(after) => event,
                message = self.receive() => {
                    self.wait_for_turn(message?).await?;
                    continue;
                }
            };
            let Some(event) = event else { break };
            if event.number != after.map_or(0, |after| after + 1) {
                let message = "the events were read too slowly";
                self.refuse(&ApiError::new(ErrorType::Server, message)).await?;
                return Err(Ending::Close(close_code::POLICY, message.into()));
            }
            after = Some(event.number);
            let text = Utf8Bytes::try_from(event.data()).map_err(|_| Ending::Gone)?;
            self.send(Message::Text(text)).await?;
        }
        let was_told = log.has_terminal_event();
        let _ = work.await;
        if let Some(guard) = guard {
            guard.disarm();
        }
        let response = log.response().unwrap_or(value);
        let status = response["status"].as_str().unwrap_or_default();
        if matches!(status, "completed" | "incomplete") {
            self.memory.remember(response["id"].as_str().unwrap_or_default(), unstored);
        } else {
            self.memory.forget(previous);
        }
        if was_told {
            return Ok(());
        }
        let message = format!("the response is {status}: nothing more is said about it");
        let error = ApiError::new(ErrorType::Server, message).with_code("response_interrupted");
        self.refuse(&error).await
    }

    /// Keeps a message until the response before it is made.
    async fn wait_for_turn(&mut self, text: Utf8Bytes) -> Result<(), Ending> {
        let bytes: usize = self.waiting.iter().chain([&text]).map(|text| text.len()).sum();
        if self.waiting.len() < WAITING && bytes <= self.message_bytes {
            self.waiting.push_back(text);
            return Ok(());
        }
        let message = "too many requests wait: a WebSocket makes one response at a time";
        let error = ApiError::new(ErrorType::TooManyRequests, message).with_code("rate_limited");
        self.refuse(&error).await
    }
}

/// Completes when the client may no longer do what it was admitted for.
async fn entitlement_lost() -> EntitlementLost {
    match AdmittedRequest::of_this_request() {
        Some(admitted) => admitted.ended().await,
        None => std::future::pending().await,
    }
}
