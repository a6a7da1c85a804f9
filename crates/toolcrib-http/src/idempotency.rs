//! Requests that are sent again: one key is one piece of work and one answer.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::answer_store::{AnswerRecord, AnswerStore, Claim, KeptAnswer};
use crate::api::Api;
use crate::problem::Problem;

/// The header that carries the key.
const KEY: &str = "idempotency-key";
/// Says that an answer had been given before.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// The longest key, in bytes.
const KEY_MAX: usize = 256;
/// How long an answer is kept.
const KEPT: Duration = Duration::from_secs(24 * 3600);
/// Answers that are kept at once.
const ENTRIES: usize = 10_000;
/// Bytes of all answers that are kept.
const BYTES: usize = 64 * 1024 * 1024;

/// A request that carries a key.
#[derive(Debug)]
pub(crate) struct Request {
    owner: Owner,
    /// What is asked for, so that a key is not used for two things.
    content: [u8; 32],
}

/// Whose key it is: keys of one client say nothing to another.
type Owner = (Arc<str>, String);

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
        let key = key.to_str().ok().filter(|key| (1..=KEY_MAX).contains(&key.len()));
        let (Some(key), None) = (key, more) else {
            let detail = format!("one Idempotency-Key of 1 to {KEY_MAX} visible characters");
            return Err(Problem::new(StatusCode::BAD_REQUEST, detail));
        };
        let mut content = blake3::Hasher::new();
        for part in route {
            content.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
        }
        let content = *content.update(body).finalize().as_bytes();
        Ok(Some(Self { owner: (Arc::clone(client), key.to_owned()), content }))
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

/// What is known of a key.
#[derive(Debug)]
struct Entry {
    content: [u8; 32],
    /// The answer, once it is there; the channel closes if there will be none.
    answer: watch::Receiver<Option<Settled>>,
}

/// The answers of the last day: in memory, and where they outlive the server, if there is such a place.
#[derive(Debug)]
pub(crate) struct Idempotency {
    answers: Arc<Mutex<Answers>>,
    store: Option<Arc<dyn AnswerStore>>,
}

#[derive(Debug, Default)]
struct Answers {
    entries: HashMap<Owner, Entry>,
    /// Those that are there, the oldest first, with their size.
    done: VecDeque<(Instant, Owner, usize)>,
    bytes: usize,
}

impl Idempotency {
    pub(crate) fn new(store: Option<Arc<dyn AnswerStore>>) -> Self {
        Self { answers: Arc::default(), store }
    }

    /// Does the work, unless it is being done or has been: then it gives that answer. The work goes on
    /// if whoever asked for it leaves; they may come back for it.
    pub(crate) async fn once(
        &self,
        api: &Api,
        request: Request,
        work: BoxFuture<'static, Response>,
    ) -> Result<Response, Problem> {
        let Request { owner, content } = request;
        let (mut answer, first) = {
            let mut answers = self.lock();
            answers.forget_old();
            match answers.entries.get(&owner) {
                Some(known) if known.content != content => return Err(another_request()),
                Some(known) => (known.answer.clone(), None),
                None => {
                    let (sender, answer) = watch::channel(None);
                    let entry = Entry { content, answer: answer.clone() };
                    answers.entries.insert(owner.clone(), entry);
                    (answer, Some(sender))
                }
            }
        };
        let is_first = first.is_some();
        if let Some(sender) = first {
            let record = self.store.as_ref().map(|store| Record::of(store, &owner, &content));
            let unfinished = Unfinished { answers: Arc::clone(&self.answers), owner: Some(owner) };
            let answered = api.to_the_end(async move {
                let settled = match record {
                    None => Settled::of(work.await, Origin::Now).await,
                    Some(record) => record.once(work).await,
                };
                unfinished.end(&settled);
                // Nobody may be waiting any more.
                let _ = sender.send(Some(settled));
            });
            answered.await?;
        }
        let lost = |_| {
            let detail = "the first request with this Idempotency-Key was not finished";
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
        };
        let settled = answer.wait_for(Option::is_some).await.map_err(lost)?.clone();
        Ok(settled.map(|settled| settled.into_response(is_first)).unwrap_or_default())
    }

    fn lock(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Work under a key. Dropped without an end, it leaves no trace: the next one does it.
struct Unfinished {
    answers: Arc<Mutex<Answers>>,
    owner: Option<Owner>,
}

impl Unfinished {
    fn end(mut self, settled: &Settled) {
        if !settled.is_kept() {
            return;
        }
        let Some(owner) = self.owner.take() else { return };
        let size = owner.1.len() + settled.body.len();
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.done.push_back((Instant::now(), owner, size));
        answers.bytes += size;
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(owner) = self.owner.take() {
            let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
            answers.entries.remove(&owner);
        }
    }
}

impl Answers {
    /// Forgets what is too old or too much.
    fn forget_old(&mut self) {
        while let Some((made, _, _)) = self.done.front() {
            let is_old = made.elapsed() > KEPT;
            if !is_old && self.done.len() < ENTRIES && self.bytes <= BYTES {
                return;
            }
            let Some((_, owner, size)) = self.done.pop_front() else { return };
            self.bytes -= size;
            self.entries.remove(&owner);
        }
    }
}

/// A key's place where answers outlive the server.
struct Record {
    store: Arc<dyn AnswerStore>,
    key: String,
    request: String,
}

impl Record {
    fn of(store: &Arc<dyn AnswerStore>, (client, key): &Owner, content: &[u8; 32]) -> Self {
        let mut whose = blake3::Hasher::new();
        whose.update(&(client.len() as u64).to_le_bytes()).update(client.as_bytes());
        let key = whose.update(key.as_bytes()).finalize().to_hex().to_string();
        let request = blake3::Hash::from_bytes(*content).to_hex().to_string();
        Self { store: Arc::clone(store), key, request }
    }

    /// Does the work if nobody has begun it, and keeps how it ended.
    async fn once(self, work: impl Future<Output = Response>) -> Settled {
        let Self { store, key, request } = self;
        let claimed = {
            let (store, key, request) = (Arc::clone(&store), key.clone(), request.clone());
            blocking(move || store.claim(&key, &request)).await
        };
        let refused = match claimed {
            Ok(Claim::New) => None,
            Ok(Claim::Known(known)) if known.request != request => Some(another_request()),
            Ok(Claim::Known(AnswerRecord { answer: Some(answer), .. })) => {
                return Settled::before(answer);
            }
            Ok(Claim::Known(_)) => Some(cut_short()),
            // Without it nobody could promise that it is done once.
            Err(error) => Some(Problem::internal("the Idempotency-Key cannot be kept", &error)),
        };
        if let Some(problem) = refused {
            return Settled::of(problem.into_response(), Origin::Refused).await;
        }
        let settled = Settled::of(work.await, Origin::Now).await;
        let answer = settled.is_kept().then(|| settled.to_kept()).flatten();
        let kept = blocking(move || match answer {
            Some(answer) => store.settle(&key, &AnswerRecord { request, answer: Some(answer) }),
            None => store.release(&key),
        });
        if let Err(error) = kept.await {
            tracing::warn!(%error, "an answer under an Idempotency-Key will not outlive this server");
        }
        settled
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(io::Error::other(error)))
}

fn another_request() -> Problem {
    Problem::unfit("this Idempotency-Key was used for another request: take a new one")
}

fn cut_short() -> Problem {
    let detail = "the server ended, or another one is at work, between the first request with this \
                  Idempotency-Key and its answer: look whether it was done, and take a new key if not";
    Problem::new(StatusCode::CONFLICT, detail).kind("outcome_unknown")
}

impl Settled {
    async fn of(response: Response, origin: Origin) -> Self {
        let (parts, body) = response.into_parts();
        let headers = parts.headers.iter().map(|(name, value)| (name.clone(), value.clone()));
        // Bodies of answers are made in memory: reading them cannot fail.
        let body = axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default();
        Self { status: parts.status, headers: headers.collect(), body, origin }
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
        }
    }

    /// Whether whoever comes again gets this answer. Told to come back, a client has to find another one.
    fn is_kept(&self) -> bool {
        let later = [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE];
        self.origin != Origin::Refused && !later.contains(&self.status)
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
