//! Requests that are sent again: one key is one piece of work and one answer.

pub(crate) mod memory;
pub(crate) mod store;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use crate::api::Api;
use crate::api::problem::{NothingDone, Problem};
use crate::idempotency::store::{AnswerError, AnswerKey, AnswerStore, Claim, KeptAnswer};

/// The header that carries the key.
const KEY: &str = "idempotency-key";
/// Says that an answer had been given before.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// The longest key, in bytes.
const KEY_MAX: usize = 256;

/// A request that carries a key.
#[derive(Debug)]
pub(crate) struct Request {
    key: AnswerKey,
    /// What is asked for, as hexadecimal digits, so that a key is not used for two things.
    content: String,
}

impl Request {
    /// The request's key, if it has one. `route` says what is done with the body.
    pub(crate) fn of(
        headers: &HeaderMap,
        client: &Arc<str>,
        route: &[&str],
        body: &Bytes,
    ) -> Result<Option<Self>, Problem> {
        let mut keys = headers.get_all(KEY).iter();
        let (key, more) = (keys.next(), keys.next());
        let Some(key) = key else { return Ok(None) };
        let is_visible = |key: &&str| key.bytes().all(|byte| byte.is_ascii_graphic());
        let key = key.to_str().ok().filter(is_visible);
        let key = key.filter(|key| (1..=KEY_MAX).contains(&key.len()));
        let (Some(key), None) = (key, more) else {
            let detail = format!("one Idempotency-Key of 1 to {KEY_MAX} visible characters");
            return Err(Problem::new(StatusCode::BAD_REQUEST, detail));
        };
        let mut content = blake3::Hasher::new();
        for part in route {
            content.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
        }
        let content = content.update(body).finalize().to_hex().to_string();
        Ok(Some(Self { key: AnswerKey::new(client.as_ref(), key), content }))
    }

    /// Refuses a key where it could not be honoured.
    pub(crate) fn none(headers: &HeaderMap) -> Result<(), Problem> {
        if headers.contains_key(KEY) {
            let detail = "a stream of events cannot be given twice: leave Idempotency-Key out, or \
                          ask for application/json";
            return Err(Problem::new(StatusCode::BAD_REQUEST, detail));
        }
        Ok(())
    }
}

/// How a request ended, for all who sent it.
#[derive(Debug, Clone)]
struct Settled {
    status: StatusCode,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Bytes,
    origin: Origin,
    /// Whether the work was turned away before anything was done.
    nothing_done: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// It was worked on now.
    Now,
    /// It was answered before this server was started, or by another one.
    Before,
    /// It was not worked on.
    Refused,
}

/// Work under a key that this process is doing.
#[derive(Debug)]
struct Flight {
    content: String,
    /// The answer, once it is there; the channel closes if there will be none.
    answer: watch::Receiver<Option<Settled>>,
}

/// Which keys this process works on; what became of the others is in the store.
#[derive(Debug)]
pub(crate) struct Idempotency {
    flights: Arc<Flights>,
    store: Arc<dyn AnswerStore>,
}

#[derive(Debug, Default)]
struct Flights(Mutex<HashMap<AnswerKey, Flight>>);

impl Flights {
    fn open(&self) -> MutexGuard<'_, HashMap<AnswerKey, Flight>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Idempotency {
    pub(crate) fn new(store: Arc<dyn AnswerStore>) -> Self {
        Self { flights: Arc::default(), store }
    }

    /// Does the work of a request that carries a key, once: if it is being done or has been, this gives
    /// that answer. The work goes on if whoever asked for it leaves; they may come back for it. Without a
    /// key it is simply done.
    pub(crate) async fn once_if(
        &self,
        api: &Api,
        request: Option<Request>,
        work: BoxFuture<'static, Response>,
    ) -> Result<Response, Problem> {
        match request {
            Some(request) => self.once(api, request, work).await,
            None => Ok(work.await),
        }
    }

    /// The same of a request that does carry one.
    pub(crate) async fn once(
        &self,
        api: &Api,
        request: Request,
        work: BoxFuture<'static, Response>,
    ) -> Result<Response, Problem> {
        let Request { key, content } = request;
        let (mut answer, first) = {
            let mut flights = self.flights.open();
            match flights.get(&key) {
                Some(known) if known.content != content => return Err(another_request()),
                Some(known) => (known.answer.clone(), None),
                None => {
                    let (sender, answer) = watch::channel(None);
                    let flight = Flight { content: content.clone(), answer: answer.clone() };
                    flights.insert(key.clone(), flight);
                    let landing = Landing { flights: Arc::clone(&self.flights), key: key.clone() };
                    (answer, Some((sender, landing)))
                }
            }
        };
        let is_first = first.is_some();
        if let Some((sender, landing)) = first {
            let store = Arc::clone(&self.store);
            let answered = api.to_the_end(async move {
                let settled = once(&*store, &key, &content, work).await;
                // Whoever comes from now on finds it in the store.
                drop(landing);
                // Nobody may be waiting any more.
                let _ = sender.send(Some(settled));
            });
            answered.await?;
        }
        let settled =
            answer.wait_for(Option::is_some).await.map_err(|_| outcome_unknown())?.clone();
        Ok(settled.map(|settled| settled.into_response(is_first)).unwrap_or_default())
    }
}

/// Work under a key. However it ends, this process no longer works on it.
struct Landing {
    flights: Arc<Flights>,
    key: AnswerKey,
}

impl Drop for Landing {
    fn drop(&mut self) {
        self.flights.open().remove(&self.key);
    }
}

/// Does the work if nobody has begun it, and keeps how it ended.
async fn once(
    store: &dyn AnswerStore,
    key: &AnswerKey,
    content: &str,
    work: impl Future<Output = Response>,
) -> Settled {
    let refused = match store.claim(key, content).await {
        Ok(Claim::New) => None,
        Ok(
            Claim::Answered { request, .. } | Claim::Working { request } | Claim::Lost { request },
        ) if request != content => Some(another_request()),
        Ok(Claim::Answered { answer, .. }) => return Settled::before(answer),
        Ok(Claim::Working { .. }) => Some(busy()),
        Ok(Claim::Lost { .. }) => Some(outcome_unknown()),
        Err(AnswerError::Full(full)) => {
            let detail = format!(
                "{full}: send the request without a key, or wait until the oldest key expires"
            );
            let problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, detail);
            Some(match full.retry_after {
                Some(wait) => problem.retry_after(wait),
                None => problem,
            })
        }
        // Without it nobody could promise that it is done once.
        Err(error) => Some(Problem::internal("the Idempotency-Key cannot be kept", &error)),
    };
    if let Some(problem) = refused {
        return Settled::of(problem.into_response(), Origin::Refused).await;
    }
    let settled = Settled::of(work.await, Origin::Now).await;
    let kept = match settled.to_kept().filter(|_| !settled.nothing_done) {
        Some(answer) => store.settle(key, &answer).await,
        None => store.release(key).await,
    };
    if let Err(error) = kept {
        // The claim stays: sent again, the request is answered with `outcome_unknown`.
        tracing::warn!(%error, "an answer under an Idempotency-Key could not be kept");
    }
    settled
}

fn another_request() -> Problem {
    Problem::unfit("this Idempotency-Key was used for another request: take a new one")
}

fn busy() -> Problem {
    let detail = "another server is working on the request with this Idempotency-Key: send it again \
                  for its answer";
    Problem::new(StatusCode::CONFLICT, detail).retry_after(Duration::from_secs(1))
}

fn outcome_unknown() -> Problem {
    let detail = "the first request with this Idempotency-Key was begun and never answered, because \
                  its server ended: it may have had its effect. Look before you send it again under a \
                  new key";
    Problem::new(StatusCode::FAILED_DEPENDENCY, detail).kind("outcome_unknown")
}

impl Settled {
    async fn of(response: Response, origin: Origin) -> Self {
        let (parts, body) = response.into_parts();
        let headers = parts.headers.iter().map(|(name, value)| (name.clone(), value.clone()));
        // Bodies of answers are made in memory: reading them cannot fail.
        let body = axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default();
        let nothing_done = parts.extensions.get::<NothingDone>().is_some();
        Self { status: parts.status, headers: headers.collect(), body, origin, nothing_done }
    }

    fn before(answer: KeptAnswer) -> Self {
        let header = |(name, value): (String, String)| {
            Some((name.parse().ok()?, HeaderValue::from_str(&value).ok()?))
        };
        Self {
            status: StatusCode::from_u16(answer.status).unwrap_or_default(),
            headers: answer.headers.into_iter().filter_map(header).collect(),
            body: answer.body.into(),
            origin: Origin::Before,
            nothing_done: false,
        }
    }

    fn to_kept(&self) -> Option<KeptAnswer> {
        let header = |(name, value): &(HeaderName, HeaderValue)| {
            Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
        };
        Some(KeptAnswer {
            status: self.status.as_u16(),
            headers: self.headers.iter().filter_map(header).collect(),
            // Answers of the API are JSON.
            body: std::str::from_utf8(&self.body).ok()?.to_owned(),
        })
    }

    fn into_response(self, is_first: bool) -> Response {
        let mut response = (self.status, Body::from(self.body)).into_response();
        response.headers_mut().extend(self.headers);
        let is_replayed = match self.origin {
            Origin::Now => !is_first,
            Origin::Before => true,
            Origin::Refused => false,
        };
        if is_replayed {
            response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
        }
        response
    }
}
