//! The tasks of one client: what each has come to, what it asks, and how long it is kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{
    DetailedTask, ErrorData, InputRequests, InputResponses, Task, TaskPayload, TaskStatus,
};
use rmcp::task_manager::current_timestamp;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::TaskOptions;
use crate::asking::Questions;

/// How often clients are asked to look, in milliseconds.
const LOOK_EVERY_MS: u64 = 1_000;

/// The tasks of one client. Cloning it is cheap; clones are the same tasks.
#[derive(Clone)]
pub(crate) struct Tasks(Arc<Inner>);

struct Inner {
    options: TaskOptions,
    kept: Mutex<HashMap<String, Kept>>,
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
    pub(crate) fn new(options: TaskOptions) -> Self {
        Self(Arc::new(Inner { options, kept: Mutex::default() }))
    }

    pub(crate) fn options(&self) -> &TaskOptions {
        &self.0.options
    }

    /// A new task, which can be asked after from now on; `None` where there are as many as there may
    /// be, or ids that nobody can guess cannot be made.
    pub(crate) fn open(&self) -> Option<NewTask> {
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

    /// What a task has come to.
    pub(crate) fn get(&self, id: &str) -> Result<DetailedTask, ErrorData> {
        let kept = self.kept();
        let task = kept.get(id).ok_or_else(unknown)?;
        let payload = match &task.state {
            State::Working => TaskPayload::Working,
            State::Asking(asking) => {
                TaskPayload::InputRequired { input_requests: asking.requests()? }
            }
            State::Ended(payload) => payload.clone(),
        };
        Ok(DetailedTask::new(self.shown(id, task), payload))
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
    pub(crate) fn cancel(&self, id: &str) -> Result<(), ErrorData> {
        let mut kept = self.kept();
        let task = kept.get_mut(id).ok_or_else(unknown)?;
        if !matches!(task.state, State::Ended(_)) {
            task.end(TaskPayload::Cancelled);
            task.withdrawn.cancel();
        }
        Ok(())
    }

    fn shown(&self, id: &str, kept: &Kept) -> Task {
        let (created, updated) = (kept.created_at.as_str(), kept.updated_at.as_str());
        let mut task = Task::new(id, TaskStatus::Working, created, updated)
            .with_poll_interval_ms(LOOK_EVERY_MS);
        task.status_message.clone_from(&kept.said);
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
        if !self.begun {
            self.task.forget();
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
    pub(crate) fn end(&self, payload: TaskPayload) {
        self.change(|kept| kept.end(payload));
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
        match tasks.get(id).unwrap().payload {
            TaskPayload::InputRequired { input_requests } => input_requests.into_keys().collect(),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_task_asks_until_all_is_answered_and_takes_nothing_else_for_an_answer() {
        let tasks = Tasks::new(TaskOptions::default());
        let (task, seed) = tasks.open().unwrap().begin();
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
        assert_eq!(tasks.get(&task.id).unwrap().status(), TaskStatus::Working);
        let answers = answers.await.unwrap();
        assert_eq!((&answers["a"], &answers["b"]), (&said("one"), &said("two")));
    }

    #[test]
    fn there_are_never_more_than_may_be_and_whoever_ends_one_first_has_ended_it() {
        let tasks = Tasks::new(TaskOptions { max: 2, ..TaskOptions::default() });
        let (one, _) = tasks.open().unwrap().begin();
        let (other, _) = tasks.open().unwrap().begin();
        assert_ne!(one.id, other.id);
        assert!(tasks.open().is_none());
        tasks.cancel(&one.id).unwrap();
        one.end(TaskPayload::Completed { result: serde_json::Map::new() });
        one.say("too late");
        let ended = tasks.get(&one.id).unwrap();
        assert_eq!((ended.status(), ended.task.status_message), (TaskStatus::Cancelled, None));
        // What is done counts as long as it is kept.
        assert!(tasks.open().is_none());
        one.forget();
        assert!(tasks.open().is_some() && tasks.get(&one.id).is_err());
        // That one began nothing.
        assert!(tasks.open().is_some());
    }
}
