//! What happens in an agent's run, as server-sent events.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use toolcrib_core::run::{RunId, Seq};

use super::active::ActiveRun;
use super::{ROW_MAX, agents, report, rows};
use crate::api::problem::Problem;
use crate::api::{Api, json_text};
use crate::auth::client::Client;
use crate::{AgentRunEvent, AgentRunRow};

/// The interval of keep-alive messages on a silent stream.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How often rows are looked for that another server writes.
const LOOK: Duration = Duration::from_millis(250);
/// Rows that are read at a time.
const ROWS: usize = 100;
/// The header with which clients take up a stream again: the `id` of the last event that they have.
const LAST_EVENT_ID: &str = "last-event-id";

/// The number of the last row that a client has, by its header.
pub(super) fn last_event_id(headers: &HeaderMap) -> Result<Option<usize>, Problem> {
    let Some(id) = headers.get(LAST_EVENT_ID) else { return Ok(None) };
    let id =
        id.to_str().ok().and_then(|id| id.parse().ok()).filter(|id| (1..=ROW_MAX).contains(id));
    id.map(Some).ok_or_else(|| {
        Problem::unprocessable("Last-Event-ID has to be the `id` of an event of this run")
    })
}

/// An open stream. Nothing is read ahead of its client.
struct RunFeed {
    api: Api,
    client: Arc<Client>,
    run: RunId,
    /// The number of the last row that was sent.
    last: Seq,
    rows: VecDeque<AgentRunRow>,
    source: Source,
}

/// What comes next in a stream.
enum Source {
    /// Rows that are stored. The work that may add more is followed afterwards.
    Stored(Option<Followed>),
    /// Work on the run.
    Work(Followed),
    /// Work of another server, if there is any. Only rows are known of it.
    Elsewhere,
    /// The work has ended: the rest of the rows, then the run.
    Rest,
    /// Nothing.
    Over,
}

/// Work on a run that a stream follows.
struct Followed {
    work: ActiveRun,
    events: broadcast::Receiver<AgentRunEvent>,
}

impl Followed {
    /// This server's work on a run. What happens from now on is kept until the stored rows are read.
    fn of(api: &Api, run: &RunId) -> Option<Self> {
        let work = api.active_runs().get(run)?;
        Some(Self { events: work.events(), work })
    }
}

/// Streams the rows of a run after a row, and what happens until nobody works on it any more.
pub(super) fn events(api: &Api, client: Arc<Client>, run: RunId, after: Seq) -> Response {
    let source = Source::Stored(Followed::of(api, &run));
    let feed =
        RunFeed { api: api.clone(), client, run, last: after, rows: VecDeque::new(), source };
    let events = stream::unfold(feed, async |mut feed| {
        let event = Box::pin(feed.next()).await?;
        Some((Ok::<_, Infallible>(event), feed))
    });
    let mut response =
        Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response();
    // A buffering proxy would delay the events.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

impl RunFeed {
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(row) = self.rows.pop_front() {
                return Some(self.row(&row));
            }
            match std::mem::replace(&mut self.source, Source::Over) {
                Source::Stored(followed) => match self.read().await {
                    Err(problem) => return Some(sent("problem", &problem.body())),
                    Ok(true) => self.source = Source::Stored(followed),
                    Ok(false) => self.source = followed.map_or(Source::Elsewhere, Source::Work),
                },
                Source::Work(followed) => {
                    if let Some(event) = self.follow(followed).await {
                        return Some(event);
                    }
                }
                Source::Elsewhere => match self.look().await {
                    Err(problem) => return Some(sent("problem", &problem.body())),
                    Ok(source) => self.source = source?,
                },
                Source::Rest => match self.read().await {
                    Err(problem) => return Some(sent("problem", &problem.body())),
                    Ok(true) => self.source = Source::Rest,
                    Ok(false) => return Some(self.end().await),
                },
                Source::Over => return None,
            }
        }
    }

    /// Waits for what happens next. Rows are read from the journal, so none is missing.
    async fn follow(&mut self, mut followed: Followed) -> Option<Event> {
        let event = tokio::select! {
            biased;
            event = followed.events.recv() => event,
            () = followed.work.ended.cancelled() => Err(RecvError::Closed),
        };
        match event {
            Ok(AgentRunEvent::Recorded(seq)) if seq <= self.last => {
                self.source = Source::Work(followed);
                None
            }
            Ok(AgentRunEvent::Recorded(_)) => {
                self.source = Source::Stored(Some(followed));
                None
            }
            // A row that was sent says more.
            Ok(AgentRunEvent::Shown { after, .. }) if after < self.last => {
                self.source = Source::Work(followed);
                None
            }
            Ok(AgentRunEvent::Shown { value, .. }) => {
                self.source = Source::Work(followed);
                let name = value["type"].as_str().unwrap_or("message").to_owned();
                Some(sent(&name, &value.to_string()))
            }
            Err(RecvError::Lagged(missed)) => {
                self.source = Source::Stored(Some(followed));
                Some(sent("stream.lagged", &json!({"missed": missed}).to_string()))
            }
            Err(RecvError::Closed) => {
                // It may have been no more than telling the server that works on the run something.
                self.source = Source::Elsewhere;
                None
            }
        }
    }

    /// Where more comes from once all stored rows are sent and this server does not work on the run. `None` when the
    /// server stops: the client takes the stream up again elsewhere.
    async fn look(&self) -> Result<Option<Source>, Problem> {
        if !agents(&self.api)?.is_elsewhere(self.run.clone()).await? {
            return Ok(Some(Source::Rest));
        }
        tokio::select! {
            () = self.api.closing().cancelled() => return Ok(None),
            () = tokio::time::sleep(LOOK) => {}
        }
        Ok(Some(Source::Stored(Followed::of(&self.api, &self.run))))
    }

    /// Reads the next rows; false if there are none.
    async fn read(&mut self) -> Result<bool, Problem> {
        let client = self.client.turn_options();
        self.rows = rows(&self.api, client, &self.run, self.last, ROWS).await?.into();
        Ok(!self.rows.is_empty())
    }

    fn row(&mut self, row: &AgentRunRow) -> Event {
        self.last = row.seq;
        let kind = match &row.entry {
            Value::String(kind) => Some(kind.as_str()),
            entry => entry.as_object().and_then(|entry| entry.keys().next()).map(String::as_str),
        };
        let name = format!("run.{}", kind.unwrap_or("entry"));
        sent(&name, &text(row)).id(row.seq.to_string())
    }

    /// The last event: where the run stands.
    async fn end(&self) -> Event {
        match report(&self.api, &self.client, &self.run).await {
            Ok(run) => sent("run", &text(&run)),
            Err(problem) => sent("problem", &problem.body()),
        }
    }
}

fn text(body: &impl serde::Serialize) -> String {
    json_text(body).unwrap_or_else(|_| Value::Null.to_string())
}

fn sent(name: &str, data: &str) -> Event {
    Event::default().event(name).data(data)
}
