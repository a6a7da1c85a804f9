//! Calls as streams of server-sent events: their output while they run, and their answer.

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

use super::calls::{BatchResult, PreparedCalls, start, start_batch, store_run};
use super::result::CallResult;
use super::run_body::RunBody;
use super::{Api, json_text};
use crate::api::problem::Problem;
use crate::auth::client::Client;

/// The interval of keep-alive messages on a silent stream.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The work, whose result becomes the last event.
type FinalEvent = Pin<Box<dyn Future<Output = Event> + Send>>;

/// The rest of a stream.
struct EventBody {
    reader: EventReader,
    /// `None` when it is done.
    work: Option<FinalEvent>,
    final_event: Option<Event>,
}

/// Streams one call with all its output, including that of nested calls.
pub(super) fn call(api: &Api, client: &Client, calls: PreparedCalls) -> Response {
    let (stream, reader) = CallStream::new(&ChannelOptions::default());
    let listeners = Listeners::new().with_stream(stream);
    let turn = client.turn(|options| calls.add_options(options).listeners(listeners));
    let api = api.clone();
    let work = async move {
        let Some(call) = calls.ready.into_iter().next() else {
            return problem(&Problem::unprocessable("the request contains no call"));
        };
        match start(&api, &turn, call).await {
            Answer::Done(result) => final_event("result", &CallResult::from(&result)),
            waits @ Answer::Suspended(_) => match store_run(&api, &turn, vec![waits]).await {
                Ok(run) => final_event("run", &RunBody::from(&run)),
                Err(error) => problem(&error),
            },
        }
    };
    stream_events(reader, work)
}

/// Streams several calls on one ordered channel: the first call that produces output is streamed
/// until it has ended.
pub(super) fn batch(api: &Api, client: &Client, calls: PreparedCalls) -> Response {
    let overflow = client.turn(|options| calls.add_options(options)).overflow();
    let (channel, reader) = OutputChannel::with_overflow(&ChannelOptions::default(), overflow);
    let listeners = Listeners::new().with_channel(channel);
    let turn = client.turn(|options| calls.add_options(options).listeners(listeners));
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
            return final_event("result", &BatchResult::of(results));
        }
        match store_run(&api, &turn, answers).await {
            Ok(run) => final_event("run", &RunBody::from(&run)),
            Err(error) => problem(&error),
        }
    };
    stream_events(reader, work)
}

fn stream_events(
    reader: EventReader,
    work: impl Future<Output = Event> + Send + 'static,
) -> Response {
    // The work runs after the response has started, but still belongs to the request.
    let work: FinalEvent = Box::pin(work.instrument(Span::current()));
    let stream = EventBody { reader, work: Some(work), final_event: None };
    let events = stream::unfold(stream, async |mut stream| {
        let event = stream.next().await?;
        Some((Ok::<_, Infallible>(event), stream))
    });
    let mut response =
        Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response();
    // A buffering proxy would defeat streaming.
    let header = axum::http::HeaderValue::from_static("no");
    response.headers_mut().insert("x-accel-buffering", header);
    response
}

impl EventBody {
    async fn next(&mut self) -> Option<Event> {
        while let Some(work) = &mut self.work {
            tokio::select! {
                biased;
                event = self.reader.next() => match event {
                    Some(event) => return Some(call_event(&event)),
                    // There are no more events; the answer is still to come.
                    None => self.final_event = Some(work.as_mut().await),
                },
                answer = work.as_mut() => self.final_event = Some(answer),
            }
            if self.final_event.is_some() {
                // Suspended calls may keep running; their further output does not belong to this
                // stream.
                self.reader.finish();
                self.work = None;
            }
        }
        match self.reader.next().await {
            Some(event) => Some(call_event(&event)),
            None => self.final_event.take(),
        }
    }
}

fn call_event(event: &toolcrib_core::events::Event) -> Event {
    named(event.name(), &event.to_value().to_string()).id(event.sequence().to_string())
}

fn final_event(name: &str, body: &impl Serialize) -> Event {
    named(name, &json_text(body).unwrap_or_else(|_| Value::Null.to_string()))
}

fn problem(problem: &Problem) -> Event {
    named("problem", &problem.body())
}

fn named(name: &str, data: &str) -> Event {
    Event::default().event(name).data(data)
}
