//! Events of the whole server as server-sent events.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderValue, Uri};
use axum::response::sse::{Event as Sent, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use toolcrib_core::Turn;
use toolcrib_core::events::{Event, Payload, Subscription};

use super::Api;
use crate::Right;
use crate::api::problem::Problem;
use crate::api::query::Query;
use crate::auth::client::Client;

/// The interval of keep-alive messages on a silent stream.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// An open event stream.
struct EventFeed {
    subscription: Subscription,
    scope: VisibleEvents,
    /// Cancelled when the server stops: the stream has no end of its own.
    closing: CancellationToken,
}

/// The events that a client may see.
enum VisibleEvents {
    /// Events of its own identity.
    Own(String),
    /// Events of all identities of its tenant, or of all tenants.
    All { tenant: Option<Value>, tools: Option<Turn> },
}

pub(crate) async fn events(
    State(api): State<Api>,
    Extension(client): Extension<Arc<Client>>,
    uri: Uri,
) -> Result<Response, Problem> {
    Query::of(&uri)?.finish()?;
    let bus = api.backend().executor().events().ok_or_else(|| {
        Problem::not_found("this server publishes no events because it has no event bus")
    })?;
    let feed = EventFeed {
        subscription: bus.subscribe(),
        scope: VisibleEvents::of(&client),
        closing: api.closing().clone(),
    };
    let events = stream::unfold(feed, async |mut feed| {
        let event = feed.next().await?;
        Some((Ok::<_, Infallible>(event), feed))
    });
    let mut response =
        Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response();
    // A buffering proxy would delay the events.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

impl EventFeed {
    /// The next event that the client may see; `None` when the server stops.
    async fn next(&mut self) -> Option<Sent> {
        loop {
            let event = tokio::select! {
                biased;
                () = self.closing.cancelled() => return None,
                event = self.subscription.next() => event?,
            };
            if self.scope.admits(&event) {
                return Some(sent(&event));
            }
        }
    }
}

impl VisibleEvents {
    fn of(client: &Client) -> Self {
        let turn = client.turn(|options| options);
        if !client.may(Right::Operate) {
            return Self::Own(turn.identity().to_owned());
        }
        let tenant = names(turn.identity()).and_then(|[tenant, _]| tenant);
        Self::All { tenant, tools: client.has_toolset().then_some(turn) }
    }

    fn admits(&self, event: &Event) -> bool {
        // Lost events concern only this reader.
        if matches!(event.payload(), Payload::Lagged { .. }) {
            return true;
        }
        let Some(identity) = event.identity() else { return false };
        match self {
            Self::Own(own) => identity == own,
            Self::All { tenant, tools } => {
                let tool = match event.payload() {
                    Payload::Paused { tool, .. } => Some(tool.as_str()),
                    _ => event.tool(),
                };
                let of_tenant = || names(identity).and_then(|[tenant, _]| tenant);
                (tenant.is_none() || of_tenant() == *tenant)
                    && tools
                        .as_ref()
                        .is_none_or(|turn| tool.is_some_and(|tool| turn.describe(tool).is_some()))
            }
        }
    }
}

/// The tenant and the user of an identity.
pub(crate) fn names(identity: &str) -> Option<[Option<Value>; 2]> {
    serde_json::from_str(identity).ok()
}

/// The event as it is sent, with the tenant and user of the call.
fn sent(event: &Event) -> Sent {
    let mut value = event.to_value();
    if let Some([tenant, user]) = event.identity().and_then(names) {
        for (key, name) in [("tenant", tenant), ("user", user)] {
            if let Some(name) = name {
                value[key] = name;
            }
        }
    }
    Sent::default().event(event.name()).id(event.sequence().to_string()).data(value.to_string())
}
