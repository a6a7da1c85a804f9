//! The interface to what answers the requests of OpenAI's Responses API.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::watch;
use toolcrib_core::TurnOptions;
use toolcrib_core::run::{Journal, RunId, Seq};
use toolcrib_tool::BoxFuture;
use toolcrib_wire::api::{ApiError, ModelEntry, StreamEvent};
use toolcrib_wire::responses::{CompactRequest, Include, ResponseRequest};

use crate::{AgentRunControl, AgentRunStop};

/// Why work on a run pauses when its server stops. Whoever asks for its response at the next server continues it.
pub const SERVER_STOPPED: &str = "the server stopped";

/// The most bytes of events of one response that are kept for clients that come back.
const LOG_BYTES: usize = 4 * 1024 * 1024;

/// Answers requests for responses, each on behalf of the identity of the client's turn options. A response is a part of
/// an agent's run, and those of other identities do not exist.
pub trait Responses: Send + Sync + 'static {
    /// Begins a response. Nothing is done until its work is.
    fn begin(
        &self,
        client: TurnOptions,
        request: NewResponse,
    ) -> BoxFuture<'_, Result<BegunResponse, ApiError>>;

    /// What is left to do for a response on which nobody works.
    fn resume(
        &self,
        client: TurnOptions,
        id: ResponseId,
    ) -> BoxFuture<'_, Result<BegunResponse, ApiError>>;

    /// A response as it is stored now, with what its request wants to see and what else is wanted now.
    fn show(
        &self,
        client: TurnOptions,
        id: ResponseId,
        include: Include,
    ) -> BoxFuture<'_, Result<ShownResponse, ApiError>>;

    /// What its request said, oldest first.
    fn input_items(
        &self,
        client: TurnOptions,
        id: ResponseId,
    ) -> BoxFuture<'_, Result<Vec<Value>, ApiError>>;

    /// Removes a response on which nobody works. Those that have gone on from it stay as they are.
    fn remove(&self, client: TurnOptions, id: ResponseId) -> BoxFuture<'_, Result<(), ApiError>>;

    /// A conversation in short, until `stopped` completes.
    fn compact(
        &self,
        client: TurnOptions,
        request: CompactRequest,
        previous: Option<ResponseId>,
        stopped: BoxFuture<'static, AgentRunStop>,
    ) -> BoxFuture<'_, Result<Value, ApiError>>;

    /// An estimate of the tokens of a request.
    fn count_tokens(
        &self,
        client: TurnOptions,
        request: ResponseRequest,
        previous: Option<ResponseId>,
    ) -> BoxFuture<'_, Result<u64, ApiError>>;

    /// The models and agents that clients can name.
    fn models(&self) -> Vec<ModelEntry>;
}

/// A request for a response.
#[derive(Debug, Clone)]
pub struct NewResponse {
    /// What the client asks.
    pub request: ResponseRequest,
    /// The same as JSON.
    pub body: Value,
    /// The response from which it goes on.
    pub previous: Option<ResponseId>,
    /// What is known of that response, if it was not stored.
    pub unstored: Option<UnstoredResponse>,
    /// Whether nobody works on the run of that response.
    pub may_continue: bool,
    /// Whether the client has the right to approve.
    pub may_approve: bool,
    /// Whether it is for a chat completion, whose client names calls by [`ResponseId::call`].
    pub is_chat: bool,
}

/// A response that has begun.
pub struct BegunResponse {
    /// Its id.
    pub id: ResponseId,
    /// How it looks before anything is done.
    pub value: Value,
    /// What is to be done for it.
    pub work: ResponseWork,
    /// What is known of it, if it is not stored.
    pub unstored: Option<UnstoredResponse>,
}

/// A response that is not stored. Whoever has this can go on from it.
#[derive(Clone)]
pub struct UnstoredResponse(pub Arc<dyn Journal>);

impl fmt::Debug for UnstoredResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UnstoredResponse")
    }
}

impl fmt::Debug for BegunResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BegunResponse").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The work for a response: its events go to the log, which it ends.
pub type ResponseWork =
    Box<dyn FnOnce(ResponseLog, AgentRunControl) -> BoxFuture<'static, ()> + Send>;

/// A response as it is stored.
#[derive(Debug, Clone)]
pub struct ShownResponse {
    /// What clients see.
    pub value: Value,
    /// Whether it was asked for in the background.
    pub is_background: bool,
    /// Whether it goes on as soon as somebody works on it.
    pub goes_on: bool,
    /// The events that made it, without the pieces of texts.
    pub events: Vec<StreamEvent>,
}

/// The id of a response: its run, and the row of the run's journal with its request. Nobody can guess it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ResponseId {
    /// The run.
    pub run: RunId,
    /// The number of the row.
    pub row: Seq,
}

const PREFIX: &str = "resp_";
/// The characters of a run's id.
const RUN: usize = 32;

const CALL_PREFIX: &str = "call_";

impl ResponseId {
    /// The id of a call that the client of a chat completion gets, the one with number `at` in the response: with it the
    /// server finds the response again.
    pub fn call(&self, at: usize) -> String {
        format!("{CALL_PREFIX}{}{:08x}_{at}", self.run, self.row)
    }

    /// The response of a call with such an id, and the call's number.
    pub fn of_call(id: &str) -> Option<(Self, usize)> {
        let (response, at) = id.strip_prefix(CALL_PREFIX)?.rsplit_once('_')?;
        let known: Self = format!("{PREFIX}{response}").parse().ok()?;
        let at = at.parse().ok()?;
        (known.call(at) == id).then_some((known, at))
    }
}

impl fmt::Display for ResponseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}{:08x}", self.run, self.row)
    }
}

impl FromStr for ResponseId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let rest = text.strip_prefix(PREFIX).ok_or(())?;
        let (run, row) = rest.split_at_checked(RUN).ok_or(())?;
        let run = run.parse().map_err(drop)?;
        let row = Seq::from_str_radix(row, 16).map_err(drop)?;
        let id = Self { run, row };
        // One spelling only.
        if id.to_string() == text { Ok(id) } else { Err(()) }
    }
}

/// The events of a response, bounded, for all who read them. Cloning it is cheap.
#[derive(Debug, Clone)]
pub struct ResponseLog(Arc<LogShared>);

#[derive(Debug)]
struct LogShared {
    state: Mutex<LogState>,
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct LogState {
    events: VecDeque<LoggedEvent>,
    bytes: usize,
    /// The response at its end, once that is reached.
    end: Option<Value>,
}

/// An event of a response as it is sent.
#[derive(Debug, Clone)]
pub(crate) struct LoggedEvent {
    /// Its number in the stream.
    pub(crate) number: u64,
    /// The whole of it, to be sent at once.
    pub(crate) frame: Bytes,
    /// Whether no event follows.
    is_terminal: bool,
}

impl From<StreamEvent> for LoggedEvent {
    fn from(event: StreamEvent) -> Self {
        let (number, is_terminal) = (event.sequence_number(), event.is_terminal());
        Self { number, frame: event.into_sse().into(), is_terminal }
    }
}

impl LoggedEvent {
    /// The event as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.data()).unwrap_or_default()
    }

    /// The event's JSON as text.
    pub(crate) fn data(&self) -> Bytes {
        let text = std::str::from_utf8(&self.frame).unwrap_or_default();
        let data = text.split_once("data: ").map_or("", |(_, data)| data.trim_end());
        self.frame.slice_ref(data.as_bytes())
    }
}

impl Default for ResponseLog {
    fn default() -> Self {
        let changed = watch::Sender::new(());
        Self(Arc::new(LogShared { state: Mutex::default(), changed }))
    }
}

impl ResponseLog {
    fn open(&self) -> MutexGuard<'_, LogState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds events. The oldest are forgotten when there are too many.
    pub fn push(&self, events: Vec<StreamEvent>) {
        if events.is_empty() {
            return;
        }
        let mut state = self.open();
        for event in events.into_iter().map(LoggedEvent::from) {
            state.bytes += event.frame.len();
            state.events.push_back(event);
        }
        while state.bytes > LOG_BYTES && state.events.len() > 1 {
            if let Some(first) = state.events.pop_front() {
                state.bytes -= first.frame.len();
            }
        }
        drop(state);
        self.0.changed.send_replace(());
    }

    /// Ends it with the response as it is then.
    pub fn end(&self, response: Value) {
        self.open().end.get_or_insert(response);
        self.0.changed.send_replace(());
    }

    /// The response, once it is at its end.
    pub(crate) fn response(&self) -> Option<Value> {
        self.open().end.clone()
    }

    /// Whether its readers have been told that it is at its end.
    pub(crate) fn is_over(&self) -> bool {
        self.open().end.is_some() || self.has_terminal_event()
    }

    /// Whether its last event says how the response has ended.
    pub(crate) fn has_terminal_event(&self) -> bool {
        self.open().events.back().is_some_and(|last| last.is_terminal)
    }

    /// How many bytes it keeps.
    pub(crate) fn bytes(&self) -> usize {
        self.open().bytes
    }

    /// The first event after number `after` that is kept. `None` at the end.
    pub(crate) async fn next(&self, after: Option<u64>) -> Option<LoggedEvent> {
        let mut changed = self.0.changed.subscribe();
        loop {
            {
                let state = self.open();
                let at = match after {
                    None => 0,
                    Some(after) => state.events.partition_point(|event| event.number <= after),
                };
                if let Some(event) = state.events.get(at) {
                    return Some(event.clone());
                }
                if state.end.is_some() {
                    return None;
                }
            }
            changed.changed().await.ok()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_one_spelling() {
        let id = ResponseId { run: RunId::random().unwrap(), row: 3 };
        let text = id.to_string();
        assert_eq!(ResponseId::of_call(&id.call(12)), Some((id.clone(), 12)));
        assert_eq!(ResponseId::of_call(&id.call(1).replace("_1", "_01")), None);
        assert_eq!(ResponseId::of_call("call_1"), None);
        assert_eq!(text.parse(), Ok(id));
        for wrong in
            [text.to_uppercase(), format!("{text}0"), text.replace("resp_", ""), "resp_".to_owned()]
        {
            assert!(wrong.parse::<ResponseId>().is_err(), "{wrong}");
        }
    }
}
