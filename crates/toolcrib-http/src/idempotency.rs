//! Requests that are sent again: one key is one piece of work and one answer.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use tokio::sync::watch;
use tokio::time::Instant;

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

/// An answer as it is kept.
#[derive(Debug, Clone)]
struct Kept {
    status: StatusCode,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Bytes,
}

/// What is known of a key.
#[derive(Debug)]
struct Entry {
    content: [u8; 32],
    /// The answer, once it is there; the channel closes if there will be none.
    answer: watch::Receiver<Option<Kept>>,
}

/// The answers of the last day, in memory.
#[derive(Debug, Default)]
pub(crate) struct Idempotency(Arc<Mutex<Answers>>);

#[derive(Debug, Default)]
struct Answers {
    entries: HashMap<Owner, Entry>,
    /// Those that are there, the oldest first, with their size.
    done: VecDeque<(Instant, Owner, usize)>,
    bytes: usize,
}

impl Idempotency {
    /// Does the work, unless it is being done or has been: then it gives that answer. The work goes on
    /// if whoever asked for it leaves; they may come back for it.
    pub(crate) async fn once(
        &self,
        api: &Api,
        request: Request,
        work: impl Future<Output = Response> + Send + 'static,
    ) -> Result<Response, Problem> {
        let Request { owner, content } = request;
        let (mut answer, first) = {
            let mut answers = self.lock();
            answers.forget_old();
            match answers.entries.get(&owner) {
                Some(known) if known.content != content => {
                    let detail =
                        "this Idempotency-Key was used for another request: take a new one";
                    return Err(Problem::unfit(detail));
                }
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
            let unfinished = Unfinished { answers: Arc::clone(&self.0), owner: Some(owner) };
            let answered = api.to_the_end(async move {
                let kept = Kept::of(work.await).await;
                unfinished.end(&kept);
                // Nobody may be waiting any more.
                let _ = sender.send(Some(kept));
            });
            answered.await?;
        }
        let lost = |_| {
            let detail = "the first request with this Idempotency-Key was not finished";
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
        };
        let kept = answer.wait_for(Option::is_some).await.map_err(lost)?.clone();
        Ok(kept.map(|kept| kept.into_response(is_first)).unwrap_or_default())
    }

    fn lock(&self) -> MutexGuard<'_, Answers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Work under a key. Dropped without an end, it leaves no trace: the next one does it.
struct Unfinished {
    answers: Arc<Mutex<Answers>>,
    owner: Option<Owner>,
}

impl Unfinished {
    fn end(mut self, kept: &Kept) {
        // Told to come back, a client has to find another answer when it does.
        let later = [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE];
        if later.contains(&kept.status) {
            return;
        }
        let Some(owner) = self.owner.take() else { return };
        let size = owner.1.len() + kept.body.len();
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

impl Kept {
    async fn of(response: Response) -> Self {
        let (parts, body) = response.into_parts();
        let headers = parts.headers.iter().map(|(name, value)| (name.clone(), value.clone()));
        // Bodies of answers are made in memory: reading them cannot fail.
        let body = axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default();
        Self { status: parts.status, headers: headers.collect(), body }
    }

    fn into_response(self, is_first: bool) -> Response {
        let mut response = (self.status, Body::from(self.body)).into_response();
        response.headers_mut().extend(self.headers);
        if !is_first {
            response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
        }
        response
    }
}
