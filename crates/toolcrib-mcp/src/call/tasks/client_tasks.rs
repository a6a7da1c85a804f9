//! The tasks of one client: what each has come to, what it asks, and how long it is kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{
    DetailedTask, ErrorData, InputRequests, InputResponses, Task, TaskPayload, TaskStatus,
};
use rmcp::task_manager::current_timestamp;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolcrib_core::clock::{Clock as _, SystemClock};
use toolcrib_tool::ErrorKind;

use super::TaskOptions;
use super::store::{EndedTask, FoundTask, FoundTaskState, StoredTask, TaskStore, TaskStoreError};
use crate::call::questions::Questions;

/// How often clients are asked to look, in milliseconds.
const LOOK_EVERY_MS: u64 = 1_000;

/// The tasks of one client. Cloning it is cheap; clones are the same tasks.
#[derive(Clone)]
pub(crate) struct Tasks(Arc<Inner>);

struct Inner {
    options: TaskOptions,
    kept: Mutex<HashMap<String, Kept>>,
    keeping: Option<Keeping>,
}

/// Where tasks outlive the server, and whose these are.
pub(crate) struct Keeping {
    pub(crate) store: Arc<dyn TaskStore>,
    pub(crate) owner: String,
}

struct Kept {
    created_at: String,
    updated_at: String,
    /// What the tool said last of how far it is.
    said: Option<String>,
    state: State,
    withdrawn: CancellationToken,
}

enum State {
    Working,
    Asking(Asking),
    Ended(TaskPayload),
}

/// Questions that are not all answered.
struct Asking {
    questions: Arc<Questions>,
    /// Which questions of the task these are: keys of a later round are others.
    round: usize,
    given: InputResponses,
    answered: oneshot::Sender<InputResponses>,
}

impl Tasks {
    pub(crate) fn new(options: TaskOptions, keeping: Option<Keeping>) -> Self {
        Self(Arc::new(Inner { options, kept: Mutex::default(), keeping }))
    }

    pub(crate) fn options(&self) -> &TaskOptions {
        &self.0.options
    }

    /// A new task, which can be asked after from now on; `None` where there are as many as there may
    /// be, it cannot be kept, or ids that nobody can guess cannot be made.
    pub(crate) async fn open(&self) -> Option<NewTask> {
        let new = self.noted()?;
        let Some(Keeping { store, owner }) = &self.0.keeping else { return Some(new) };
        let stored = StoredTask {
            id: new.task.id.clone(),
            owner: owner.clone(),
            created_at: new.seed.created_at.clone(),
            expires_at: SystemClock.now().after(self.0.options.ttl),
        };
        match store.begin(&stored, self.0.options.max).await {
            Ok(()) => Some(new),
            Err(TaskStoreError::Full) => None,
            Err(error) => {
                tracing::warn!(%error, "a call becomes no task, which could not be kept");
                None
            }
        }
    }

    fn noted(&self) -> Option<NewTask> {
        let id = format!("task_{}", toolcrib_core::unguessable::<16>().ok()?);
        let withdrawn = CancellationToken::new();
        let now = current_timestamp();
        let task = Kept {
            created_at: now.clone(),
            updated_at: now,
            said: None,
            state: State::Working,
            withdrawn: withdrawn.clone(),
        };
        let mut kept = self.kept();
        if kept.len() >= self.0.options.max {
            return None;
        }
        let seed = self.shown(&id, &task);
        kept.insert(id.clone(), task);
        let expires = Instant::now().checked_add(self.0.options.ttl);
        let task = KeptTask { tasks: self.clone(), id, withdrawn, expires };
        Some(NewTask { task, seed, begun: false })
    }

    /// What a task has come to, also one of before a restart.
    pub(crate) async fn get(&self, id: &str) -> Result<DetailedTask, ErrorData> {
        if let Some(found) = self.get_own(id) {
            return found;
        }
        let Keeping { store, owner } = self.0.keeping.as_ref().ok_or_else(unknown)?;
        let found = store.find(owner, id).await.map_err(|error| {
            tracing::error!(%error, "a task could not be looked for");
            ErrorData::internal_error("the task could not be looked for", None)
        })?;
        let FoundTask { created_at, state } = found.ok_or_else(unknown)?;
        let (updated, payload) = match state {
            FoundTaskState::Ended(EndedTask { at, outcome }) => (at, payload(outcome)),
            FoundTaskState::Working => (created_at.clone(), TaskPayload::Working),
            FoundTaskState::Lost => (created_at.clone(), lost()),
        };
        Ok(DetailedTask::new(self.described(id, &created_at, &updated), payload))
    }

    fn get_own(&self, id: &str) -> Option<Result<DetailedTask, ErrorData>> {
        let kept = self.kept();
        let task = kept.get(id)?;
        let payload = match &task.state {
            State::Working => TaskPayload::Working,
            State::Asking(asking) => match asking.requests() {
                Ok(input_requests) => TaskPayload::InputRequired { input_requests },
                Err(error) => return Some(Err(error)),
            },
            State::Ended(payload) => payload.clone(),
        };
        Some(Ok(DetailedTask::new(self.shown(id, task), payload)))
    }

    /// Keeps how a task ended.
    async fn keep_end(&self, id: &str, payload: &TaskPayload) {
        let Some(Keeping { store, owner }) = &self.0.keeping else { return };
        let ended = EndedTask { at: current_timestamp(), outcome: outcome(payload) };
        if let Err(error) = store.end(owner, id, &ended).await {
            tracing::warn!(%error, "what came of a task will not outlive this server");
        }
    }

    /// Answers what a task asks, as far as these are answers to it.
    pub(crate) fn update(&self, id: &str, responses: InputResponses) -> Result<(), ErrorData> {
        let mut kept = self.kept();
        let task = kept.get_mut(id).ok_or_else(unknown)?;
        let State::Asking(asking) = &mut task.state else { return Ok(()) };
        for (key, response) in responses {
            if let Some(key) = asking.own_key(&key)
                && asking.questions.is_answer(key, &response)
            {
                asking.given.insert(key.to_owned(), response);
            }
        }
        task.updated_at = current_timestamp();
        if asking.questions.keys().all(|key| asking.given.contains_key(key)) {
            let state = std::mem::replace(&mut task.state, State::Working);
            if let State::Asking(Asking { given, answered, .. }) = state {
                // Nobody who waits any more has a task that goes on.
                let _ = answered.send(given);
            }
        }
        Ok(())
    }

    /// Withdraws a task: its work is ended. One that has ended stays as it is.
    pub(crate) async fn cancel(&self, id: &str) -> Result<(), ErrorData> {
        {
            let mut kept = self.kept();
            let task = kept.get_mut(id).ok_or_else(unknown)?;
            if matches!(task.state, State::Ended(_)) {
                return Ok(());
            }
            task.end(TaskPayload::Cancelled);
            task.withdrawn.cancel();
        }
        self.keep_end(id, &TaskPayload::Cancelled).await;
        Ok(())
    }

    fn shown(&self, id: &str, kept: &Kept) -> Task {
        let mut task = self.described(id, &kept.created_at, &kept.updated_at);
        task.status_message.clone_from(&kept.said);
        task
    }

    fn described(&self, id: &str, created: &str, updated: &str) -> Task {
        let mut task = Task::new(id, TaskStatus::Working, created, updated)
            .with_poll_interval_ms(LOOK_EVERY_MS);
        task.ttl_ms = millis(self.0.options.ttl);
        task
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<String, Kept>> {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A time as the protocol says it; `None` for as good as ever.
fn millis(time: Duration) -> Option<u64> {
    u64::try_from(time.as_millis()).ok()
}

impl Kept {
    fn end(&mut self, payload: TaskPayload) {
        self.state = State::Ended(payload);
        self.updated_at = current_timestamp();
    }
}

impl Asking {
    /// What is still to be answered.
    fn requests(&self) -> Result<InputRequests, ErrorData> {
        let requests = self.questions.requests()?.into_iter();
        let open = requests.filter(|(key, _)| !self.given.contains_key(key));
        Ok(open.map(|(key, request)| (format!("{}.{key}", self.round), request)).collect())
    }

    /// The question's own key, of one that a client was told.
    fn own_key<'a>(&self, key: &'a str) -> Option<&'a str> {
        let (round, key) = key.split_once('.')?;
        (round == self.round.to_string()).then_some(key)
    }
}

/// A task of which nobody was told yet. Dropped, it has never been.
pub(crate) struct NewTask {
    task: KeptTask,
    seed: Task,
    begun: bool,
}

impl NewTask {
    /// For whoever does its work, and as the client is told of it.
    pub(crate) fn begin(mut self) -> (KeptTask, Task) {
        self.begun = true;
        (self.task.clone(), self.seed.clone())
    }
}

impl Drop for NewTask {
    fn drop(&mut self) {
        if self.begun {
            return;
        }
        self.task.forget();
        let tasks = self.task.tasks.clone();
        // Without a runtime the server ends, and the task with it.
        if tasks.0.keeping.is_some()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let id = self.task.id.clone();
            runtime.spawn(async move {
                let Some(Keeping { store, owner }) = &tasks.0.keeping else { return };
                // One that stays is lost once the server ends, and nobody asks after it.
                let _ = store.forget(owner, &id).await;
            });
        }
    }
}

/// One task, for whoever does its work.
#[derive(Clone)]
pub(crate) struct KeptTask {
    tasks: Tasks,
    id: String,
    withdrawn: CancellationToken,
    /// When its time is over; `None` for never.
    expires: Option<Instant>,
}

impl KeptTask {
    /// Notes what the tool says of how far it is.
    pub(crate) fn say(&self, text: &str) {
        self.change(|kept| {
            kept.said = Some(text.to_owned());
            kept.updated_at = current_timestamp();
        });
    }

    /// Asks; what comes back completes once all is answered. It fails where the task is over.
    pub(crate) fn ask(
        &self,
        round: usize,
        questions: Arc<Questions>,
    ) -> oneshot::Receiver<InputResponses> {
        let (answered, answers) = oneshot::channel();
        let given = InputResponses::new();
        self.change(|kept| {
            kept.state = State::Asking(Asking { questions, round, given, answered });
            kept.updated_at = current_timestamp();
        });
        answers
    }

    /// Says what has come of it.
    pub(crate) async fn end(&self, payload: TaskPayload) {
        let mut ended = false;
        self.change(|kept| {
            kept.end(payload.clone());
            ended = true;
        });
        if ended {
            self.tasks.keep_end(&self.id, &payload).await;
        }
    }

    /// Withdrawn, or its time is over.
    pub(crate) async fn over(&self) {
        tokio::select! {
            () = self.withdrawn.cancelled() => {}
            () = self.expired() => {}
        }
    }

    /// Its time is over.
    pub(crate) async fn expired(&self) {
        match self.expires {
            Some(expires) => tokio::time::sleep_until(expires).await,
            None => std::future::pending().await,
        }
    }

    /// Forgets it.
    pub(crate) fn forget(&self) {
        self.tasks.kept().remove(&self.id);
    }

    /// Changes it unless it has ended: of two who end it, the first does.
    fn change(&self, change: impl FnOnce(&mut Kept)) {
        let mut kept = self.tasks.kept();
        if let Some(kept) = kept.get_mut(&self.id)
            && !matches!(kept.state, State::Ended(_))
        {
            change(kept);
        }
    }
}

/// How a task ended, as it is kept.
fn outcome(payload: &TaskPayload) -> Value {
    match payload {
        TaskPayload::Completed { result } => json!({"result": result}),
        TaskPayload::Failed { error } => json!({"error": error}),
        _ => json!({}),
    }
}

/// The same as the protocol has it.
fn payload(outcome: Value) -> TaskPayload {
    let Value::Object(mut outcome) = outcome else { return TaskPayload::Cancelled };
    match (outcome.remove("result"), outcome.remove("error")) {
        (Some(Value::Object(result)), _) => TaskPayload::Completed { result },
        (None, Some(Value::Object(error))) => TaskPayload::Failed { error },
        _ => TaskPayload::Cancelled,
    }
}

/// What is known of a task whose server ended before it did.
fn lost() -> TaskPayload {
    let kind = ErrorKind::OutcomeUnknown.as_str();
    let error = ErrorData::internal_error(
        format!(
            "{kind}: the server that worked on this task ended before it did, so whether the call had \
             its effect is not known: look before you call it again"
        ),
        Some(json!({"kind": kind})),
    );
    match serde_json::to_value(error) {
        Ok(Value::Object(error)) => TaskPayload::Failed { error },
        _ => TaskPayload::Failed { error: Map::new() },
    }
}

fn unknown() -> ErrorData {
    ErrorData::invalid_params(
        "no task of this client has this id: its time is over, or this server never gave it out",
        None,
    )
}

#[cfg(test)]
mod tests {
    use rmcp::model::ClientCapabilities;
    use serde_json::{Value, json};
    use toolcrib_core::clock::Timestamp;
    use toolcrib_core::suspension::Suspension;
    use toolcrib_tool::{
        Arguments, CallId, InputPart, InputRequest, Layer, Source, ToolDefinition, ToolEntry,
    };

    use super::*;

    fn questions() -> Arc<Questions> {
        let client: ClientCapabilities =
            serde_json::from_value(json!({"elicitation": {}})).unwrap();
        let schema =
            json!({"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]});
        let parts = ["a", "b"].map(|key| InputPart::form(key, "Say it.", schema.clone()));
        let definition = ToolDefinition::builder("t").description("Ask.").build().unwrap();
        let entry = ToolEntry::client(definition, Source::new(Layer::Host, "test"));
        let arguments = Arguments::from_validated("{}".to_owned());
        let waiting = InputRequest::of(parts).into();
        let (now, never) = (Timestamp::from_unix_millis(0), Timestamp::NEVER);
        let suspension =
            Suspension::new(&CallId::new("1"), &entry, &arguments, waiting, now, never).unwrap();
        Arc::new(Questions::of(&suspension, None, &client).unwrap().ok().unwrap())
    }

    fn said(text: &str) -> Value {
        json!({"action": "accept", "content": {"x": text}})
    }

    fn open_keys(tasks: &Tasks, id: &str) -> Vec<String> {
        match tasks.get_own(id).unwrap().unwrap().payload {
            TaskPayload::InputRequired { input_requests } => input_requests.into_keys().collect(),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_task_asks_until_all_is_answered_and_takes_nothing_else_for_an_answer() {
        let tasks = Tasks::new(TaskOptions::default(), None);
        let (task, seed) = tasks.open().await.unwrap().begin();
        assert_eq!((seed.task_id.as_str(), seed.ttl_ms), (task.id.as_str(), Some(3_600_000)));
        let answers = task.ask(2, questions());
        assert_eq!(open_keys(&tasks, &task.id), ["2.a", "2.b"]);
        // Of an earlier round, of no round, and no answer to a form.
        let wrong = [("1.a", said("x")), ("a", said("x")), ("2.b", json!({"ignored": true}))];
        tasks.update(&task.id, wrong.map(|(key, one)| (key.to_owned(), one)).into()).unwrap();
        assert_eq!(open_keys(&tasks, &task.id), ["2.a", "2.b"]);
        tasks.update(&task.id, [("2.a".to_owned(), said("one"))].into()).unwrap();
        assert_eq!(open_keys(&tasks, &task.id), ["2.b"]);
        tasks.update(&task.id, [("2.b".to_owned(), said("two"))].into()).unwrap();
        assert_eq!(tasks.get(&task.id).await.unwrap().status(), TaskStatus::Working);
        let answers = answers.await.unwrap();
        assert_eq!((&answers["a"], &answers["b"]), (&said("one"), &said("two")));
    }

    #[tokio::test]
    async fn there_are_never_more_than_may_be_and_whoever_ends_one_first_has_ended_it() {
        let tasks = Tasks::new(TaskOptions { max: 2, ..TaskOptions::default() }, None);
        let (one, _) = tasks.open().await.unwrap().begin();
        let (other, _) = tasks.open().await.unwrap().begin();
        assert_ne!(one.id, other.id);
        assert!(tasks.open().await.is_none());
        tasks.cancel(&one.id).await.unwrap();
        one.end(TaskPayload::Completed { result: serde_json::Map::new() }).await;
        one.say("too late");
        let ended = tasks.get(&one.id).await.unwrap();
        assert_eq!((ended.status(), ended.task.status_message), (TaskStatus::Cancelled, None));
        // What is done counts as long as it is kept.
        assert!(tasks.open().await.is_none());
        one.forget();
        assert!(tasks.open().await.is_some() && tasks.get(&one.id).await.is_err());
        // That one began nothing.
        assert!(tasks.open().await.is_some());
    }
}
