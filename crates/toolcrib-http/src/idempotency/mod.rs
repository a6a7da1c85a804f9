//! Idempotency keys: repeated requests with one key run once and get the same answer.

pub(crate) mod memory;
pub(crate) mod store;
mod unstored;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use toolcrib_core::run::RunId;

use crate::api::Api;
use crate::api::problem::{NothingDone, Problem};
use crate::idempotency::store::{AnswerError, AnswerKey, AnswerStore, Claim, StoredResponse};
use crate::idempotency::unstored::{UnstoredAnswer, UnstoredAnswers};

/// The header that carries the key.
const KEY: &str = "idempotency-key";
/// Marks an answer that was given before.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// When a request is worth repeating that could not be stored: the store tries again as often.
pub(crate) const STORE_RETRY: Duration = Duration::from_secs(2);
/// The longest key, in bytes.
const KEY_MAX: usize = 256;

/// A request with an idempotency key.
#[derive(Debug)]
pub(crate) struct Request {
    key: AnswerKey,
    /// A digest of the request in hexadecimal, so that a key is not used for two different
    /// requests.
    content: String,
}

impl Request {
    /// The request's key, if it has one. `route` identifies the operation on the body.
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
            let detail = format!("send one Idempotency-Key of 1 to {KEY_MAX} visible characters");
            return Err(Problem::new(StatusCode::BAD_REQUEST, detail));
        };
        let mut content = blake3::Hasher::new();
        for part in route {
            content.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
        }
        let content = content.update(body).finalize().to_hex().to_string();
        Ok(Some(Self { key: AnswerKey::new(client.as_ref(), key), content }))
    }

    /// The key.
    pub(crate) fn key(&self) -> &AnswerKey {
        &self.key
    }

    /// Refuses a key where it cannot be honoured.
    pub(crate) fn none(headers: &HeaderMap) -> Result<(), Problem> {
        if headers.contains_key(KEY) {
            let detail = "an event stream cannot be replayed: omit Idempotency-Key, or \
                          ask for application/json";
            return Err(Problem::new(StatusCode::BAD_REQUEST, detail));
        }
        Ok(())
    }
}

/// The outcome of a request, for all who sent it.
#[derive(Debug, Clone)]
struct RequestOutcome {
    status: StatusCode,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Bytes,
    origin: OutcomeOrigin,
    /// Whether the work was refused before anything was done.
    nothing_done: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutcomeOrigin {
    /// The work was done now.
    Now,
    /// The answer is from before this server's start, or from another server.
    Before,
    /// The work was not done.
    Refused,
}

/// A request in progress in this process.
#[derive(Debug)]
struct RequestInProgress {
    content: String,
    /// The answer when it is ready; the channel closes if there will be none.
    answer: watch::Receiver<Option<RequestOutcome>>,
}

/// The requests in progress in this process; the outcomes of others are in the store.
#[derive(Debug)]
pub(crate) struct Idempotency {
    in_progress: Arc<RequestsInProgress>,
    unstored: Arc<UnstoredAnswers>,
    store: Arc<dyn AnswerStore>,
}

#[derive(Debug, Default)]
struct RequestsInProgress(Mutex<HashMap<AnswerKey, RequestInProgress>>);

impl RequestsInProgress {
    fn open(&self) -> MutexGuard<'_, HashMap<AnswerKey, RequestInProgress>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Idempotency {
    pub(crate) fn new(store: Arc<dyn AnswerStore>) -> Self {
        Self { in_progress: Arc::default(), unstored: Arc::default(), store }
    }

    /// Does the work of a request with a key once: if it is in progress or done, this returns that
    /// answer. The work continues if the client disconnects, which may repeat the request for the
    /// answer. A request without a key just runs.
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

    /// The same for a request that has a key.
    pub(crate) async fn once(
        &self,
        api: &Api,
        request: Request,
        work: BoxFuture<'static, Response>,
    ) -> Result<Response, Problem> {
        let Request { key, content } = request;
        let (mut answer, first) = {
            let mut in_progress = self.in_progress.open();
            match in_progress.get(&key) {
                Some(known) if known.content != content => return Err(another_request()),
                Some(known) => (known.answer.clone(), None),
                None => {
                    let (sender, answer) = watch::channel(None);
                    let flight =
                        RequestInProgress { content: content.clone(), answer: answer.clone() };
                    in_progress.insert(key.clone(), flight);
                    let landing = InProgressGuard {
                        in_progress: Arc::clone(&self.in_progress),
                        key: key.clone(),
                    };
                    (answer, Some((sender, landing)))
                }
            }
        };
        let is_first = first.is_some();
        if let Some((sender, landing)) = first {
            let (store, unstored) = (Arc::clone(&self.store), Arc::clone(&self.unstored));
            let answered = api.run_to_completion(async move {
                let settled = once(&*store, &unstored, &key, &content, work).await;
                // From now on the answer comes from the store.
                drop(landing);
                // All receivers may be gone.
                let _ = sender.send(Some(settled));
            });
            answered.await?;
        }
        let settled =
            answer.wait_for(Option::is_some).await.map_err(|_| outcome_unknown(None))?.clone();
        Ok(settled.map(|settled| settled.into_response(is_first)).unwrap_or_default())
    }
}

impl Idempotency {
    /// Notes the run that a request with a key has begun. If the answer is lost, a repeated request is told the run.
    pub(crate) async fn note_run(&self, key: &AnswerKey, run: &RunId) {
        if let Err(error) = self.store.note_run(key, run).await {
            tracing::warn!(%run, %error, "the run of a request with an Idempotency-Key could not be noted with the key");
        }
    }
}

/// Removes a request in progress when dropped, however it ended.
struct InProgressGuard {
    in_progress: Arc<RequestsInProgress>,
    key: AnswerKey,
}

impl Drop for InProgressGuard {
    fn drop(&mut self) {
        self.in_progress.open().remove(&self.key);
    }
}

/// Does the work if nobody has started it, and stores the outcome.
async fn once(
    store: &dyn AnswerStore,
    unstored: &UnstoredAnswers,
    key: &AnswerKey,
    content: &str,
    work: impl Future<Output = Response>,
) -> RequestOutcome {
    let refuse =
        |problem: Problem| RequestOutcome::of(problem.into_response(), OutcomeOrigin::Refused);
    if let Some(known) = unstored.find(key) {
        if known.content != content {
            return refuse(another_request()).await;
        }
        let is_stored = known.store(store, key).await.is_ok();
        if is_stored {
            unstored.remove(key);
        }
        match known.answer {
            Some(answer) => return RequestOutcome::before(answer),
            None if is_stored => {}
            None => return refuse(not_stored()).await,
        }
    }
    let refused = match store.claim(key, content).await {
        Ok(Claim::New) => None,
        Ok(
            Claim::Answered { request, .. }
            | Claim::Working { request }
            | Claim::Lost { request, .. },
        ) if request != content => Some(another_request()),
        Ok(Claim::Answered { answer, .. }) => return RequestOutcome::before(answer),
        Ok(Claim::Working { .. }) => Some(busy()),
        Ok(Claim::Lost { run, .. }) => Some(outcome_unknown(run)),
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
        // Without the store, running it only once cannot be guaranteed.
        Err(AnswerError::Unavailable(problem)) => {
            tracing::warn!(%problem, "a request was refused: its Idempotency-Key could not be stored");
            Some(not_stored())
        }
        Err(error) => Some(Problem::internal("the Idempotency-Key could not be stored", &error)),
    };
    if let Some(problem) = refused {
        return refuse(problem).await;
    }
    let settled = RequestOutcome::of(work.await, OutcomeOrigin::Now).await;
    let answer = settled.to_kept().filter(|_| !settled.nothing_done);
    let answer = UnstoredAnswer { content: content.to_owned(), answer };
    if let Err(error) = answer.store(store, key).await {
        // The claim stays: after this server's end a repeated request gets `outcome_unknown`.
        unstored.keep(key.clone(), answer);
        tracing::warn!(%error, "the answer to a request with an Idempotency-Key could not be stored");
    }
    settled
}

fn another_request() -> Problem {
    Problem::unprocessable("this Idempotency-Key was used for another request: use a new one")
}

fn not_stored() -> Problem {
    let detail = "the Idempotency-Key could not be stored at present, so nothing was run: send the \
                  request again later";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).retry_after(STORE_RETRY)
}

fn busy() -> Problem {
    let detail = "another server is working on the request with this Idempotency-Key: send it again \
                  for its answer";
    Problem::new(StatusCode::CONFLICT, detail).retry_after(Duration::from_secs(1))
}

fn outcome_unknown(run: Option<String>) -> Problem {
    if let Some(run) = run {
        let detail = format!(
            "the first request with this Idempotency-Key began the run {run}, and no answer of it was stored, because its \
             server ended or its disk was full: look at the run, and resume or cancel it"
        );
        return Problem::new(StatusCode::FAILED_DEPENDENCY, detail)
            .kind("outcome_unknown")
            .of_run(run);
    }
    let detail = "the first request with this Idempotency-Key was begun, and no answer of it was stored, \
                  because its server ended or its disk was full: it may have had its effect. Look before you send it again under a \
                  new key";
    Problem::new(StatusCode::FAILED_DEPENDENCY, detail).kind("outcome_unknown")
}

impl RequestOutcome {
    async fn of(response: Response, origin: OutcomeOrigin) -> Self {
        let (parts, body) = response.into_parts();
        let headers = parts.headers.iter().map(|(name, value)| (name.clone(), value.clone()));
        // Response bodies are in memory, so reading them cannot fail.
        let body = axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default();
        let nothing_done = parts.extensions.get::<NothingDone>().is_some();
        Self { status: parts.status, headers: headers.collect(), body, origin, nothing_done }
    }

    fn before(answer: StoredResponse) -> Self {
        let header = |(name, value): (String, String)| {
            Some((name.parse().ok()?, HeaderValue::from_str(&value).ok()?))
        };
        Self {
            status: StatusCode::from_u16(answer.status).unwrap_or_default(),
            headers: answer.headers.into_iter().filter_map(header).collect(),
            body: answer.body.into(),
            origin: OutcomeOrigin::Before,
            nothing_done: false,
        }
    }

    fn to_kept(&self) -> Option<StoredResponse> {
        let header = |(name, value): &(HeaderName, HeaderValue)| {
            Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
        };
        Some(StoredResponse {
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
            OutcomeOrigin::Now => !is_first,
            OutcomeOrigin::Before => true,
            OutcomeOrigin::Refused => false,
        };
        if is_replayed {
            response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
        }
        response
    }
}
