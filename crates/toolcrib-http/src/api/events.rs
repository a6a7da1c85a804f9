//! Everything that happens in the server, as server-sent events.

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

/// How often a silent stream says that it is alive.
const ALIVE: Duration = Duration::from_secs(15);

/// What a client watches.
struct Watching {
    subscription: Subscription,
    scope: Scope,
    /// Cancelled when the server stops: the stream has no end of its own.
    closing: CancellationToken,
}

/// Which events a client may see.
enum Scope {
    /// Those of its own identity.
    Own(String),
    /// Those of all identities of its tenant, or of all tenants.
    All { tenant: Option<Value>, tools: Option<Turn> },
}

pub(crate) async fn events(
    State(api): State<Api>,
    Extension(client): Extension<Arc<Client>>,
    uri: Uri,
) -> Result<Response, Problem> {
    Query::of(&uri)?.finish()?;
    let bus = api.backend().executor().events().ok_or_else(|| {
        Problem::not_found("this server publishes no events: its host gave it no event bus")
    })?;
    let watching = Watching {
        subscription: bus.subscribe(),
        scope: Scope::of(&client),
        closing: api.closing().clone(),
    };
    let events = stream::unfold(watching, async |mut watching| {
        let event = watching.next().await?;
        Some((Ok::<_, Infallible>(event), watching))
    });
    let mut response =
        Sse::new(events).keep_alive(KeepAlive::new().interval(ALIVE)).into_response();
    // A proxy that collects what it passes on would hold the events back.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

impl Watching {
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

impl Scope {
    fn of(client: &Client) -> Self {
        let turn = client.turn(|options| options);
        if !client.may(Right::Operate) {
            return Self::Own(turn.identity().to_owned());
        }
        let tenant = names(turn.identity()).and_then(|[tenant, _]| tenant);
        Self::All { tenant, tools: client.has_toolset().then_some(turn) }
    }

    fn admits(&self, event: &Event) -> bool {
        // What this reader has lost concerns it alone.
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

/// The tenant and the user that an identity consists of.
fn names(identity: &str) -> Option<[Option<Value>; 2]> {
    serde_json::from_str(identity).ok()
}

/// As it is sent: with the names of whose call it is.
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
