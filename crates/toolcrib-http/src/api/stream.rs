//! Calls as streams of server-sent events: what they say while they run, and their answer.

use std::convert::Infallible;
use std::pin::Pin;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use serde::Serialize;
use serde_json::Value;
use toolcrib_core::Answer;
use toolcrib_core::events::{CallStream, ChannelOptions, EventReader, Listeners, OutputChannel};
use tracing::{Instrument as _, Span};

use super::calls::{BatchResult, Calls, kept, start, start_batch};
use super::result::CallResult;
use super::run_body::RunBody;
use super::{Api, written};
use crate::api::problem::Problem;
use crate::auth::client::Client;

/// How often a silent stream says that it is alive.
const ALIVE: Duration = Duration::from_secs(15);

/// The work, which ends in the last event.
type Work = Pin<Box<dyn Future<Output = Event> + Send>>;

/// What is still to come of a stream.
struct Telling {
    reader: EventReader,
    /// `None` once it is done.
    work: Option<Work>,
    last: Option<Event>,
}

/// One call, with everything it says, and what the calls made from within it say.
pub(super) fn call(api: &Api, client: &Client, calls: Calls) -> Response {
    let (stream, reader) = CallStream::new(&ChannelOptions::default());
    let listeners = Listeners::new().with_stream(stream);
    let turn = client.turn(|options| calls.over(options).listeners(listeners));
    let api = api.clone();
    let work = async move {
        let Some(call) = calls.ready.into_iter().next() else {
            return problem(&Problem::unfit("there is no call"));
        };
        match start(&api, &turn, call).await {
            Answer::Done(result) => last("result", &CallResult::from(&result)),
            waits @ Answer::Suspended(_) => match kept(&api, &turn, vec![waits]).await {
                Ok(run) => last("run", &RunBody::from(&run)),
                Err(error) => problem(&error),
            },
        }
    };
    told(reader, work)
}

/// Several calls on one ordered channel: the first to speak is presented until it has ended.
pub(super) fn batch(api: &Api, client: &Client, calls: Calls) -> Response {
    let overflow = client.turn(|options| calls.over(options)).overflow();
    let (channel, reader) = OutputChannel::with_overflow(&ChannelOptions::default(), overflow);
    let listeners = Listeners::new().with_channel(channel);
    let turn = client.turn(|options| calls.over(options).listeners(listeners));
    let api = api.clone();
    let work = async move {
        let answers = start_batch(&api, &turn, calls.ready).await;
        let results: Option<Vec<_>> = answers
            .iter()
            .map(|answer| match answer {
                Answer::Done(result) => Some(result),
                Answer::Suspended(_) => None,
            })
            .collect();
        if let Some(results) = results {
            return last("result", &BatchResult::of(results));
        }
        match kept(&api, &turn, answers).await {
            Ok(run) => last("run", &RunBody::from(&run)),
            Err(error) => problem(&error),
        }
    };
    told(reader, work)
}

fn told(reader: EventReader, work: impl Future<Output = Event> + Send + 'static) -> Response {
    // It is worked on once the request is answered, and is part of it all the same.
    let work: Work = Box::pin(work.instrument(Span::current()));
    let telling = Telling { reader, work: Some(work), last: None };
    let events = stream::unfold(telling, async |mut telling| {
        let event = telling.next().await?;
        Some((Ok::<_, Infallible>(event), telling))
    });
    let mut response =
        Sse::new(events).keep_alive(KeepAlive::new().interval(ALIVE)).into_response();
    // A proxy that collects what it passes on would make a stream of it no more.
    let header = axum::http::HeaderValue::from_static("no");
    response.headers_mut().insert("x-accel-buffering", header);
    response
}

impl Telling {
    async fn next(&mut self) -> Option<Event> {
        while let Some(work) = &mut self.work {
            tokio::select! {
                biased;
                event = self.reader.next() => match event {
                    Some(event) => return Some(shown(&event)),
                    // Nothing more is said; the answer is still to come.
                    None => self.last = Some(work.as_mut().await),
                },
                answer = work.as_mut() => self.last = Some(answer),
            }
            if self.last.is_some() {
                // Calls that wait for somebody may stay at work; what they say from now on is not for here.
                self.reader.finish();
                self.work = None;
            }
        }
        match self.reader.next().await {
            Some(event) => Some(shown(&event)),
            None => self.last.take(),
        }
    }
}

fn shown(event: &toolcrib_core::events::Event) -> Event {
    named(event.name(), &event.to_value().to_string()).id(event.sequence().to_string())
}

fn last(name: &str, body: &impl Serialize) -> Event {
    named(name, &written(body).unwrap_or_else(|_| Value::Null.to_string()))
}

fn problem(problem: &Problem) -> Event {
    named("problem", &problem.body())
}

fn named(name: &str, data: &str) -> Event {
    Event::default().event(name).data(data)
}
