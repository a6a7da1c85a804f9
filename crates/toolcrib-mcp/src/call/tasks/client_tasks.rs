//! The tasks of one client: their state, their open questions, and how long they are kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{
    DetailedTask, ErrorData, InputRequests, InputResponses, Task, TaskPayload, TaskStatus,
};
use rmcp::task_manager::current_timestamp;
use serde_json::{Map, Value, json};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolcrib_core::clock::{Clock as _, SystemClock};
use toolcrib_tool::ErrorKind;

use super::TaskOptions;
use super::store::{EndedTask, FoundTask, FoundTaskState, StoredTask, TaskStore, TaskStoreError};
use crate::call::questions::Questions;

/// The poll interval that clients are told, in milliseconds.
const POLL_INTERVAL_MS: u64 = 1_000;

/// The tasks of one client. Clones are cheap and share the tasks.
#[derive(Clone)]
pub(crate) struct Tasks(Arc<Inner>);

struct Inner {
    options: TaskOptions,
    kept: Mutex<HashMap<String, TaskEntry>>,
    persistence: Option<TaskPersistence>,
}

/// The store in which tasks survive a restart, and the owner of these tasks.
pub(crate) struct TaskPersistence {
    pub(crate) store: Arc<dyn TaskStore>,
    pub(crate) owner: String,
}

struct TaskEntry {
    created_at: String,
    updated_at: String,
    /// The latest status message of the tool.
    status_message: Option<String>,
    state: TaskState,
    cancelled: CancellationToken,
    /// False while the call is suspended: whoever cancels the task waits until it is true. By then the
    /// driver has withdrawn the call, or found that it was decided on before.
    withdrawal_tried: watch::Sender<bool>,
}

enum TaskState {
    Working,
    OpenQuestions(OpenQuestions),
    /// The call waits for the decision of somebody else, or goes on where that decision was made.
    AwaitingDecision,
    Ended(TaskPayload),
}

/// Questions of which some are unanswered.
struct OpenQuestions {
    questions: Arc<Questions>,
    /// The round of questions of this task: keys of another round are not accepted.
    round: usize,
    given: InputResponses,
    answered: oneshot::Sender<InputResponses>,
}

impl Tasks {
    pub(crate) fn new(options: TaskOptions, persistence: Option<TaskPersistence>) -> Self {
        Self(Arc::new(Inner { options, kept: Mutex::default(), persistence }))
    }

    pub(crate) fn options(&self) -> &TaskOptions {
        &self.0.options
    }

    /// Opens a new task, which can be polled from now on. `None` if the client has too many tasks,
    /// the task cannot be stored, or no random id can be generated.
    pub(crate) async fn open(&self) -> Option<NewTask> {
        let new = self.insert_new()?;
        let Some(TaskPersistence { store, owner }) = &self.0.persistence else { return Some(new) };
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
                tracing::warn!(%error, "a call does not become a task because the task could not be stored");
                None
            }
        }
    }

    fn insert_new(&self) -> Option<NewTask> {
        let id = format!("task_{}", toolcrib_core::unguessable::<16>().ok()?);
        let cancelled = CancellationToken::new();
        let now = current_timestamp();
        let task = TaskEntry {
            created_at: now.clone(),
            updated_at: now,
            status_message: None,
            state: TaskState::Working,
            cancelled: cancelled.clone(),
            withdrawal_tried: watch::Sender::new(true),
        };
        let mut kept = self.kept();
        if kept.len() >= self.0.options.max {
            return None;
        }
        let seed = self.shown(&id, &task);
        kept.insert(id.clone(), task);
        let expires = Instant::now().checked_add(self.0.options.ttl);
        let task = TaskHandle { tasks: self.clone(), id, cancelled, expires };
        Some(NewTask { task, seed, begun: false })
    }

    /// The state of a task, including one from before a restart.
    pub(crate) async fn get(&self, id: &str) -> Result<DetailedTask, ErrorData> {
        if let Some(found) = self.get_own(id) {
            return found;
        }
        let TaskPersistence { store, owner } = self.0.persistence.as_ref().ok_or_else(unknown)?;
        let found = store.find(owner, id).await.map_err(|error| {
            tracing::error!(%error, "a task could not be looked up");
            ErrorData::internal_error("the task could not be looked up", None)
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
            TaskState::Working | TaskState::AwaitingDecision => TaskPayload::Working,
            TaskState::OpenQuestions(asking) => match asking.requests() {
                Ok(input_requests) => TaskPayload::InputRequired { input_requests },
                Err(error) => return Some(Err(error)),
            },
            TaskState::Ended(payload) => payload.clone(),
        };
        Some(Ok(DetailedTask::new(self.shown(id, task), payload)))
    }

    /// Stores how a task ended.
    async fn store_end(&self, id: &str, payload: &TaskPayload) {
        let Some(TaskPersistence { store, owner }) = &self.0.persistence else { return };
        let ended = EndedTask { at: current_timestamp(), outcome: outcome(payload) };
        if let Err(error) = store.end(owner, id, &ended).await {
            tracing::warn!(%error, "the outcome of a task could not be stored and is lost when this server ends");
        }
    }

    /// Accepts responses to the open questions of a task; others are ignored.
    pub(crate) fn update(&self, id: &str, responses: InputResponses) -> Result<(), ErrorData> {
        let mut kept = self.kept();
        let task = kept.get_mut(id).ok_or_else(unknown)?;
        let TaskState::OpenQuestions(asking) = &mut task.state else { return Ok(()) };
        for (key, response) in responses {
            if let Some(key) = asking.own_key(&key)
                && asking.questions.is_answer(key, &response)
            {
                asking.given.insert(key.to_owned(), response);
            }
        }
        task.updated_at = current_timestamp();
        if asking.questions.keys().all(|key| asking.given.contains_key(key)) {
            let state = task.work();
            if let TaskState::OpenQuestions(OpenQuestions { given, answered, .. }) = state {
                // If the receiver is gone, the task has ended.
                let _ = answered.send(given);
            }
        }
        Ok(())
    }

    /// Cancels a task and its work. A task that has ended stays unchanged, and so does one whose call
    /// somebody else has decided on: that call goes on where the decision was made.
    pub(crate) async fn cancel(&self, id: &str) -> Result<(), ErrorData> {
        let withdrawal = {
            let mut kept = self.kept();
            let task = kept.get_mut(id).ok_or_else(unknown)?;
            let withdrawal = match &task.state {
                TaskState::Ended(_) => return Ok(()),
                TaskState::OpenQuestions(_) | TaskState::AwaitingDecision => {
                    Some(task.withdrawal_tried.subscribe())
                }
                TaskState::Working => {
                    task.end(TaskPayload::Cancelled);
                    None
                }
            };
            task.cancelled.cancel();
            withdrawal
        };
        match withdrawal {
            // It fails if the task is gone, and its call with it.
            Some(mut tried) => drop(tried.wait_for(|tried| *tried).await),
            None => self.store_end(id, &TaskPayload::Cancelled).await,
        }
        Ok(())
    }

    fn shown(&self, id: &str, kept: &TaskEntry) -> Task {
        let mut task = self.described(id, &kept.created_at, &kept.updated_at);
        task.status_message.clone_from(&kept.status_message);
        task
    }

    fn described(&self, id: &str, created: &str, updated: &str) -> Task {
        let mut task = Task::new(id, TaskStatus::Working, created, updated)
            .with_poll_interval_ms(POLL_INTERVAL_MS);
        task.ttl_ms = millis(self.0.options.ttl);
        task
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<String, TaskEntry>> {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A duration as the protocol expresses it; `None` if it is too long to express.
fn millis(time: Duration) -> Option<u64> {
    u64::try_from(time.as_millis()).ok()
}

impl TaskEntry {
    fn end(&mut self, payload: TaskPayload) {
        self.state = TaskState::Ended(payload);
        self.updated_at = current_timestamp();
        self.withdrawal_tried.send_replace(true);
    }

    fn suspend(&mut self, state: TaskState) {
        self.state = state;
        self.withdrawal_tried.send_replace(false);
    }

    fn work(&mut self) -> TaskState {
        self.withdrawal_tried.send_replace(true);
        std::mem::replace(&mut self.state, TaskState::Working)
    }
}

impl OpenQuestions {
    /// The questions that are still to be answered.
    fn requests(&self) -> Result<InputRequests, ErrorData> {
        let requests = self.questions.requests()?.into_iter();
        let open = requests.filter(|(key, _)| !self.given.contains_key(key));
        Ok(open.map(|(key, request)| (format!("{}.{key}", self.round), request)).collect())
    }

    /// The question's own key, from the key that a client was told.
    fn own_key<'a>(&self, key: &'a str) -> Option<&'a str> {
        let (round, key) = key.split_once('.')?;
        (round == self.round.to_string()).then_some(key)
    }
}

/// A task that no client knows of yet. Dropping it removes it without a trace.
pub(crate) struct NewTask {
    task: TaskHandle,
    seed: Task,
    begun: bool,
}

impl NewTask {
    /// Returns the handle for whoever does the work, and the task as the client is told of it.
    pub(crate) fn begin(mut self) -> (TaskHandle, Task) {
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
        // Without a runtime the server is ending, and the task with it.
        if tasks.0.persistence.is_some()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let id = self.task.id.clone();
            runtime.spawn(async move {
                let Some(TaskPersistence { store, owner }) = &tasks.0.persistence else { return };
                // A record that stays becomes a lost task when the server ends; no client knows its
                // id.
                let _ = store.forget(owner, &id).await;
            });
        }
    }
}

/// A handle to one task, for whoever does its work.
#[derive(Clone)]
pub(crate) struct TaskHandle {
    tasks: Tasks,
    id: String,
    cancelled: CancellationToken,
    /// When its time to live is over; `None` for never.
    expires: Option<Instant>,
}

impl TaskHandle {
    /// Sets the status message of the tool.
    pub(crate) fn say(&self, text: &str) {
        self.change(|kept| {
            kept.status_message = Some(text.to_owned());
            kept.updated_at = current_timestamp();
        });
    }

    /// Asks questions; the receiver completes when all are answered, and fails if the task has
    /// ended.
    pub(crate) fn ask(
        &self,
        round: usize,
        questions: Arc<Questions>,
    ) -> oneshot::Receiver<InputResponses> {
        let (answered, answers) = oneshot::channel();
        let given = InputResponses::new();
        self.change(|kept| {
            let questions = OpenQuestions { questions, round, given, answered };
            kept.suspend(TaskState::OpenQuestions(questions));
            kept.updated_at = current_timestamp();
        });
        answers
    }

    /// The call waits for the decision of somebody else.
    pub(crate) fn await_decision(&self) {
        self.change(|kept| kept.suspend(TaskState::AwaitingDecision));
    }

    /// The call could not be withdrawn because it was decided on before: the task goes on.
    pub(crate) fn withdrawal_failed(&self) {
        self.change(|kept| {
            kept.withdrawal_tried.send_replace(true);
            let text = "The call was decided on before it was cancelled, so it goes on.";
            kept.status_message = Some(text.to_owned());
            kept.updated_at = current_timestamp();
        });
    }

    /// The decision was made, and the call has an answer.
    pub(crate) fn decided(&self) {
        self.change(|kept| drop(kept.work()));
    }

    /// Ends the task with this outcome.
    pub(crate) async fn end(&self, payload: TaskPayload) {
        let mut ended = false;
        self.change(|kept| {
            kept.end(payload.clone());
            ended = true;
        });
        if ended {
            self.tasks.store_end(&self.id, &payload).await;
        }
    }

    /// Completes when the task is cancelled or has expired.
    pub(crate) async fn ended(&self) {
        tokio::select! {
            () = self.cancelled.cancelled() => {}
            () = self.expired() => {}
        }
    }

    /// Completes when the task has expired.
    pub(crate) async fn expired(&self) {
        match self.expires {
            Some(expires) => tokio::time::sleep_until(expires).await,
            None => std::future::pending().await,
        }
    }

    /// Forgets the task.
    pub(crate) fn forget(&self) {
        self.tasks.kept().remove(&self.id);
    }

    /// Changes the task unless it has ended: the first end wins.
    fn change(&self, change: impl FnOnce(&mut TaskEntry)) {
        let mut kept = self.tasks.kept();
        if let Some(kept) = kept.get_mut(&self.id)
            && !matches!(kept.state, TaskState::Ended(_))
        {
            change(kept);
        }
    }
}

/// The outcome of a task as it is stored.
fn outcome(payload: &TaskPayload) -> Value {
    match payload {
        TaskPayload::Completed { result } => json!({"result": result}),
        TaskPayload::Failed { error } => json!({"error": error}),
        _ => json!({}),
    }
}

/// The outcome of a task as the protocol expresses it.
fn payload(outcome: Value) -> TaskPayload {
    let Value::Object(mut outcome) = outcome else { return TaskPayload::Cancelled };
    match (outcome.remove("result"), outcome.remove("error")) {
        (Some(Value::Object(result)), _) => TaskPayload::Completed { result },
        (None, Some(Value::Object(error))) => TaskPayload::Failed { error },
        _ => TaskPayload::Cancelled,
    }
}

/// The outcome of a task whose server ended first.
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
        "this client has no task with this id: the task has expired, or the id is wrong",
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

    fn form_answer(text: &str) -> Value {
        json!({"action": "accept", "content": {"x": text}})
    }

    fn open_keys(tasks: &Tasks, id: &str) -> Vec<String> {
        match tasks.get_own(id).unwrap().unwrap().payload {
            TaskPayload::InputRequired { input_requests } => input_requests.into_keys().collect(),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_task_asks_until_all_questions_have_valid_answers() {
        let tasks = Tasks::new(TaskOptions::default(), None);
        let (task, seed) = tasks.open().await.unwrap().begin();
        assert_eq!((seed.task_id.as_str(), seed.ttl_ms), (task.id.as_str(), Some(3_600_000)));
        let answers = task.ask(2, questions());
        assert_eq!(open_keys(&tasks, &task.id), ["2.a", "2.b"]);
        // Responses for an earlier round, without a round, and not matching the form.
        let wrong =
            [("1.a", form_answer("x")), ("a", form_answer("x")), ("2.b", json!({"ignored": true}))];
        tasks.update(&task.id, wrong.map(|(key, one)| (key.to_owned(), one)).into()).unwrap();
        assert_eq!(open_keys(&tasks, &task.id), ["2.a", "2.b"]);
        tasks.update(&task.id, [("2.a".to_owned(), form_answer("one"))].into()).unwrap();
        assert_eq!(open_keys(&tasks, &task.id), ["2.b"]);
        tasks.update(&task.id, [("2.b".to_owned(), form_answer("two"))].into()).unwrap();
        assert_eq!(tasks.get(&task.id).await.unwrap().status(), TaskStatus::Working);
        let answers = answers.await.unwrap();
        assert_eq!((&answers["a"], &answers["b"]), (&form_answer("one"), &form_answer("two")));
    }

    #[tokio::test]
    async fn tasks_are_bounded_and_the_first_end_wins() {
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
        // A finished task counts as long as it is kept.
        assert!(tasks.open().await.is_none());
        one.forget();
        assert!(tasks.open().await.is_some() && tasks.get(&one.id).await.is_err());
        // The dropped task was never begun.
        assert!(tasks.open().await.is_some());
    }
}
