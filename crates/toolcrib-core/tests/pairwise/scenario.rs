//! Runs a row: earlier calls, the call with its twin, what happens meanwhile, and the same call
//! afterwards. Time passes in small steps, so that every row takes the same course at each run.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use futures_util::FutureExt;
use serde_json::json;
use tokio::task::{JoinHandle, yield_now};
use toolcrib_core::approval::Decision;
use toolcrib_core::audit::AuditRecord;
use toolcrib_core::policy::Policy;
use toolcrib_core::suspension::{Outcome, Resolution, Suspension, SuspensionStore, Waiting};
use toolcrib_core::{Answer, Executor, ShutdownReport, Turn, TurnOptions};
use toolcrib_tool::{ContextValues, ToolCall, ToolResult};

use crate::bodies::{MAKE, SECRET, fill};
use crate::factors::{
    Barrier, Body, Breaker, Consent, Door, Instance, Interruption, Meanwhile, Pool, Rate, Rights,
    Row, Second, Secret, Sent, Slots, Twin,
};
use crate::setup::{Records, Setup, THINKING};
use crate::witness::{Deed, Moment, Seen, lock};

/// Milliseconds of a step.
const STEP: u64 = 25;

/// Wrong arguments of a call that has many.
const WRONG: usize = 1_000;

/// How long a call may take: more than the row has reasons to wait for.
const LONGEST: u64 = 45_000;

/// Who makes a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) user: &'static str,
    pub(crate) project: &'static str,
    pub(crate) session: &'static str,
    trace: &'static str,
}

/// Who makes the first calls.
pub(crate) const ADA: Caller = Caller { user: "ada", project: "alpha", session: "s1", trace: "t1" };

/// Who makes the same call afterwards, if anybody does.
pub(crate) fn second_caller(row: &Row) -> Option<Caller> {
    Some(match row.second {
        Second::Nobody => return None,
        Second::OtherUser => Caller { user: "bob", ..ADA },
        Second::OtherProject => Caller { project: "beta", ..ADA },
        Second::OtherSession => Caller { session: "s2", ..ADA },
        Second::OtherTrace => Caller { trace: "t2", ..ADA },
    })
}

/// How a call ended.
#[derive(Debug)]
pub(crate) enum End {
    Done(Box<ToolResult>),
    /// Its future was dropped.
    Dropped,
    /// Something that no call may come to.
    Lost(String),
}

/// A call, and what became of it.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) caller: Caller,
    pub(crate) end: End,
    pub(crate) at: u64,
}

/// All that was seen of a row.
#[derive(Debug)]
pub(crate) struct Story {
    pub(crate) told: BTreeMap<&'static str, Vec<Told>>,
    pub(crate) moments: Vec<Moment>,
    pub(crate) texts: Vec<(&'static str, String)>,
    /// What each executor has written down.
    pub(crate) logs: Vec<Log>,
    /// How often each call entered the pipeline.
    pub(crate) passes: BTreeMap<&'static str, usize>,
    /// Instances that were not closed.
    pub(crate) open: i64,
    pub(crate) waiting: usize,
    pub(crate) report: Vec<ShutdownReport>,
}

/// What an executor has written down.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) audit: Vec<AuditRecord>,
    pub(crate) counted: Counted,
    /// Calls that are said to be under way when nothing is.
    pub(crate) in_flight: u64,
}

/// What the statistics say of the tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) successes: u64,
    pub(crate) failures: u64,
    pub(crate) cache_hits: u64,
    pub(crate) timeouts: u64,
}

/// Runs a row on a runtime of its own.
pub(crate) fn run(row: &Row) -> Story {
    let threads = if row.pool == Pool::Full { 1 } else { 16 };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .max_blocking_threads(threads)
        .build()
        .expect("a runtime");
    let story = runtime.block_on(async { Stage::new(*row).play().await });
    runtime.shutdown_timeout(Duration::from_millis(200));
    story
}

/// The answers of calls by their ids; the error says why there is none.
type Answers = Vec<(String, Result<Answer, String>)>;

/// Calls that were started together, until they have an answer.
struct Job {
    ids: Vec<&'static str>,
    caller: Caller,
    turn: Turn,
    task: JoinHandle<Answers>,
}

/// A call that waits in the store.
struct Parked {
    id: &'static str,
    caller: Caller,
    suspension: Suspension,
}

struct Stage {
    row: Row,
    setup: Setup,
    executor: Executor,
    audit: Arc<Records>,
    /// Executors of processes that have ended.
    former: Vec<(Executor, Arc<Records>)>,
    baseline: Counted,
    told: BTreeMap<&'static str, Vec<Told>>,
    passes: BTreeMap<&'static str, usize>,
    parked: VecDeque<Parked>,
    is_changed: bool,
    is_interrupted: bool,
    shutdowns: Vec<JoinHandle<ShutdownReport>>,
    /// Holds the only thread of the pool until it is dropped.
    hog: Option<mpsc::Sender<()>>,
    holder: Option<JoinHandle<Answers>>,
}

/// What may happen while calls are under way.
#[derive(Clone, Copy)]
struct Events {
    /// Whether the row's interruption and change may come now.
    are_due: bool,
    /// When the slot is taken by another call.
    holder_at: Option<u64>,
    /// When the pool has a thread again.
    hog_until: Option<u64>,
}

impl Stage {
    fn new(row: Row) -> Self {
        let hangs = if row.breaker == Breaker::Closed { 0 } else { 3 };
        let holders = u32::from(row.slots == Slots::Contended);
        let quick = u32::from(row.rate == Rate::Exhausted && hangs + holders == 0);
        let setup = Setup::new(row, hangs + holders + quick);
        let (executor, audit) = setup.executor(Policy::default(), None);
        Self {
            row,
            setup,
            executor,
            audit,
            former: Vec::new(),
            baseline: Counted::default(),
            told: BTreeMap::new(),
            passes: BTreeMap::new(),
            parked: VecDeque::new(),
            is_changed: false,
            is_interrupted: false,
            shutdowns: Vec::new(),
            hog: None,
            holder: None,
        }
    }

    async fn play(mut self) -> Story {
        self.prepare().await;
        let mut watching = self.setup.bus.subscribe();
        if self.row.pool == Pool::Full {
            let (hog, ends) = mpsc::channel::<()>();
            tokio::task::spawn_blocking(move || ends.recv());
            self.hog = Some(hog);
        }
        self.first().await;
        if self.row.slots == Slots::Contended && self.holder.is_none() {
            self.hold();
        }
        self.let_the_holder_end().await;
        if !self.is_changed {
            self.change();
        }
        self.hog = None;
        self.follow("again", ADA).await;
        if let Some(caller) = second_caller(&self.row) {
            self.follow("second", caller).await;
        }
        for _ in 0..80 {
            self.step().await;
        }
        let logs = self.logs();
        let report = self.shut_down().await;
        // Instances are closed on a thread of their own.
        for _ in 0..2_000 {
            if self.setup.witness.open() <= 0 {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        // What there is to read is ready.
        while let Some(Some(event)) = watching.next().now_or_never() {
            self.setup.witness.text("event", event.to_value().to_string());
        }
        Story {
            told: self.told,
            moments: self.setup.witness.moments(),
            texts: self.setup.witness.texts(),
            logs,
            passes: self.passes,
            open: self.setup.witness.open(),
            waiting: self.setup.suspensions.all().await.map_or(usize::MAX, |all| all.len()),
            report,
        }
    }

    /// Calls before the row: the breaker opens, the rate is used up.
    async fn prepare(&mut self) {
        let row = self.row;
        let (hangs, caller) = match row.breaker {
            Breaker::Closed => (0, ADA),
            Breaker::Open => (3, ADA),
            Breaker::OpenForOther => (3, Caller { user: "bob", ..ADA }),
        };
        for number in 0..hangs {
            self.earlier(caller, json!({"mode": "hang", "n": number})).await;
        }
        if hangs == 0 && row.rate == Rate::Exhausted && row.slots == Slots::Unlimited {
            self.earlier(Caller { user: "zoe", ..ADA }, json!({"mode": "quick", "n": 0})).await;
        }
        // Bodies that were told to end have ended.
        for _ in 0..8 {
            self.step().await;
        }
        self.baseline = counted(&self.executor).0;
        self.setup.witness.forget();
        lock(&self.audit.0).clear();
        self.executor.replace_policy(self.setup.policy());
    }

    async fn earlier(&mut self, caller: Caller, arguments: serde_json::Value) {
        let turn = self.executor.turn(self.options(caller));
        let task =
            tokio::spawn(
                async move { turn.call(ToolCall::new("earlier", "subject", arguments)).await },
            );
        while !task.is_finished() {
            self.step().await;
        }
    }

    fn options(&self, caller: Caller) -> TurnOptions {
        let values = ContextValues::new()
            .with("user", caller.user)
            .with("project_id", caller.project)
            .with("trace", caller.trace);
        TurnOptions::default()
            .values(values)
            .session(caller.session)
            .client("desk")
            .client_key("key")
            .may_approve(self.row.rights == Rights::May)
    }

    fn arguments(&self) -> serde_json::Value {
        let mut arguments = json!({"mode": "work", "n": 1});
        if self.row.secret != Secret::Nowhere {
            arguments["note"] = SECRET.into();
        }
        match self.row.sent {
            Sent::Right => {}
            Sent::Coerced => arguments["n"] = "1".into(),
            Sent::Wrong => {
                for number in 0..WRONG {
                    arguments[format!("unknown_{number:05}")] = number.into();
                }
            }
        }
        arguments
    }

    /// The call of the row, and its twin.
    async fn first(&mut self) {
        let row = self.row;
        let thinking = if row.has_approver() { THINKING } else { 0 };
        let making = if row.instance == Instance::PerUse { MAKE } else { 0 };
        let events = Events {
            are_due: true,
            holder_at: self.holder_at(thinking),
            hog_until: Some(self.now() + thinking + making + 1_500),
        };
        if events.holder_at == Some(self.now()) {
            self.hold();
            self.step().await;
        }
        let mut jobs = Vec::new();
        match (row.door, row.twin) {
            (Door::Batch, Twin::SameBatch) => jobs.push(self.launch(&["first", "twin"], ADA, true)),
            (Door::Batch | Door::Meta, _) => jobs.push(self.launch(&["first"], ADA, true)),
            _ => jobs.push(self.launch(&["first"], ADA, false)),
        }
        // A call that runs alone has to wait for the one before it, and yet comes before its twin.
        if row.twin == Twin::Beside && row.has_neighbors() {
            for _ in 0..8 {
                self.step().await;
            }
        }
        if row.twin == Twin::Beside {
            jobs.push(self.launch(&["twin"], ADA, false));
        }
        self.drive(jobs, events).await;
        self.resume_all(true).await;
    }

    /// When another call takes the slot so that it is taken when the call wants it.
    fn holder_at(&self, thinking: u64) -> Option<u64> {
        let wanted = self.row.slots == Slots::Contended && !self.row.is_stored();
        wanted.then(|| self.now() + thinking.saturating_sub(300))
    }

    /// The same call, made later.
    async fn follow(&mut self, id: &'static str, caller: Caller) {
        let job = self.launch(&[id], caller, false);
        let events = Events { are_due: false, holder_at: None, hog_until: None };
        self.drive(vec![job], events).await;
        self.resume_all(false).await;
    }

    /// When the caller of the first call wants its answer, from when it is made or goes on.
    fn deadline(&self, goes_on: bool) -> Option<Duration> {
        let row = self.row;
        let is_late = row.barrier == Barrier::Barrier && row.has_neighbors();
        let before = if is_late && !goes_on { 150 } else { 0 };
        let thinking = if row.has_approver() && !goes_on { THINKING } else { 0 };
        let millis = match row.interruption {
            Interruption::DeadlineWaiting if !goes_on => 300,
            // The clock stands between two steps.
            Interruption::DeadlineRunning if row.is_stored() == goes_on => {
                before + thinking + 100 + STEP
            }
            _ => return None,
        };
        Some(Duration::from_millis(millis))
    }

    /// Starts calls through the door of the row.
    fn launch(&mut self, ids: &[&'static str], caller: Caller, has_neighbors: bool) -> Job {
        let mut options = self.options(caller);
        if let Some(deadline) = self.deadline(false).filter(|_| ids.contains(&"first")) {
            options = options.deadline(deadline);
        }
        let turn = self.executor.turn(options);
        let arguments = self.arguments();
        let call = |id: &str| match self.row.door {
            Door::Direct | Door::Batch => ToolCall::new(id, "subject", arguments.clone()),
            Door::Nested => ToolCall::new(id, "outer", json!({"arguments": arguments})),
            Door::Meta => {
                ToolCall::new(id, "tool_call", json!({"name": "subject", "arguments": arguments}))
            }
        };
        let mut calls: Vec<_> = ids.iter().map(|id| call(id)).collect();
        if has_neighbors {
            calls.insert(0, ToolCall::new("left", "neighbor", "{}"));
            calls.push(ToolCall::new("right", "neighbor", "{}"));
        }
        for id in ids {
            *self.passes.entry(id).or_default() += 1;
        }
        let (door, caller_turn) = (self.row.door, turn.clone());
        let task = tokio::spawn(async move {
            if door == Door::Batch || has_neighbors {
                let names: Vec<_> =
                    calls.iter().map(|call| call.id().as_str().to_owned()).collect();
                let answers = caller_turn.start_batch(calls).await;
                assert_eq!(answers.len(), names.len(), "an answer for each call");
                return names.into_iter().zip(answers.into_iter().map(Ok)).collect();
            }
            let mut answers = Vec::new();
            for call in calls {
                let id = call.id().as_str().to_owned();
                answers.push((id, Ok(caller_turn.start(call).await)));
            }
            answers
        });
        Job { ids: ids.to_vec(), caller, turn, task }
    }

    /// Another call takes the slot.
    fn hold(&mut self) {
        let turn = self.executor.turn(self.options(Caller { user: "eve", ..ADA }));
        self.holder = Some(tokio::spawn(async move {
            let call = ToolCall::new("holder", "subject", json!({"mode": "hold", "n": 99}));
            vec![("holder".to_owned(), Ok(turn.start(call).await))]
        }));
    }

    async fn let_the_holder_end(&mut self) {
        while self.holder.as_ref().is_some_and(|holder| !holder.is_finished()) {
            self.step().await;
        }
    }

    /// Lets time pass until all of these calls are answered.
    async fn drive(&mut self, mut jobs: Vec<Job>, events: Events) {
        let begun = self.now();
        while !jobs.is_empty() && self.now() - begun < LONGEST {
            self.step().await;
            let passed = self.now() - begun;
            if events.holder_at.is_some_and(|at| at <= self.now()) && self.holder.is_none() {
                self.hold();
            }
            if events.hog_until.is_some_and(|until| until <= self.now()) && self.hog.is_some() {
                self.hog = None;
            }
            if events.are_due {
                self.interrupt_if_due(&jobs, passed);
                let waits = !self.row.is_stored() && self.row.meanwhile != Meanwhile::Restarted;
                if passed >= 150 && waits && !self.is_changed {
                    self.change();
                }
            }
            let mut left = Vec::new();
            for job in jobs {
                if job.task.is_finished() { self.ended(job).await } else { left.push(job) }
            }
            jobs = left;
        }
        for job in jobs {
            for id in &job.ids {
                let end = End::Lost("it was not answered in time".into());
                self.tell(id, job.caller, end);
            }
            job.task.abort();
        }
    }

    fn interrupt_if_due(&mut self, jobs: &[Job], passed: u64) {
        let due = if self.row.is_interrupted_waiting() {
            passed >= 300
        } else if self.row.is_interrupted_running() {
            let began = self.setup.witness.began_at(self.subject_id());
            began.is_some_and(|began| self.now() >= began + 100)
        } else {
            false
        };
        let Some(job) = jobs.iter().find(|job| job.ids.contains(&"first")) else { return };
        if !due || self.is_interrupted {
            return;
        }
        self.is_interrupted = true;
        self.setup.witness.see(Seen::Interrupted);
        match self.row.interruption {
            // A deadline was set before.
            Interruption::Nothing
            | Interruption::DeadlineWaiting
            | Interruption::DeadlineRunning => {}
            Interruption::CancelWaiting | Interruption::CancelRunning => job.turn.cancel(),
            Interruption::DropWaiting | Interruption::DropRunning => job.task.abort(),
            Interruption::ShutdownWaiting | Interruption::ShutdownRunning => {
                self.begin_shutdown(Duration::ZERO);
            }
        }
    }

    /// The id of the call of the tool itself.
    fn subject_id(&self) -> &'static str {
        if self.row.is_nested() { "first.1" } else { "first" }
    }

    fn begin_shutdown(&mut self, grace: Duration) {
        let executor = self.executor.clone();
        self.shutdowns.push(tokio::spawn(async move { executor.shutdown(grace).await }));
    }

    fn change(&mut self) {
        self.is_changed = true;
        if self.row.meanwhile == Meanwhile::Restarted {
            let (next, audit) = self.setup.executor(self.setup.policy(), Some(&self.executor));
            let former = std::mem::replace(&mut self.executor, next);
            self.former.push((former, std::mem::replace(&mut self.audit, audit)));
        } else {
            self.setup.change(&self.executor);
        }
    }

    async fn ended(&mut self, job: Job) {
        let Job { ids, caller, task, .. } = job;
        let answers = match task.await {
            Ok(answers) => answers,
            Err(error) if error.is_cancelled() => {
                for id in ids {
                    self.tell(id, caller, End::Dropped);
                }
                return;
            }
            Err(error) => vec![("first".to_owned(), Err(format!("it panicked: {error}")))],
        };
        for (name, answer) in answers {
            let Some(id) = ids.iter().find(|id| **id == name) else {
                if let Ok(Answer::Done(result)) = answer {
                    self.setup.witness.text("answer", result.to_value().to_string());
                }
                continue;
            };
            match answer {
                Ok(Answer::Done(result)) => {
                    self.setup.witness.text("answer", result.to_value().to_string());
                    self.tell(id, caller, End::Done(Box::new(result)));
                }
                Ok(Answer::Suspended(suspension)) => {
                    let shown = serde_json::to_string(suspension.shown()).unwrap_or_default();
                    self.setup.witness.text("question", shown);
                    self.parked.push_back(Parked { id, caller, suspension: *suspension });
                }
                Err(problem) => self.tell(id, caller, End::Lost(problem)),
            }
        }
    }

    fn tell(&mut self, id: &'static str, caller: Caller, end: End) {
        let at = self.now();
        self.told.entry(id).or_default().push(Told { caller, end, at });
    }

    /// Resolves calls that wait in the store, until none waits any more.
    async fn resume_all(&mut self, are_due: bool) {
        for _ in 0..8 {
            let Some(parked) = self.parked.pop_front() else { return };
            if !self.is_changed && are_due {
                self.change();
            }
            let is_consent = matches!(parked.suspension.waiting(), Waiting::Approval { .. });
            if is_consent && self.row.consent == Consent::Expires {
                tokio::time::advance(Duration::from_secs(601)).await;
                self.setup.witness.pass(601_000);
                self.settle().await;
            }
            let contended = are_due && self.row.slots == Slots::Contended && self.holder.is_none();
            if contended && is_consent {
                self.hold();
                self.step().await;
            }
            let job = self.resume(parked);
            let hog_until = Some(self.now() + 1_500);
            self.drive(vec![job], Events { are_due, holder_at: None, hog_until }).await;
        }
        for parked in std::mem::take(&mut self.parked) {
            self.tell(parked.id, parked.caller, End::Lost("it never stopped waiting".into()));
        }
    }

    fn resume(&mut self, parked: Parked) -> Job {
        let Parked { id, caller, suspension } = parked;
        *self.passes.entry(id).or_default() += 1;
        let (row, witness) = (self.row, self.setup.witness.clone());
        let mut options = self.options(caller);
        if let Some(deadline) = self.deadline(true).filter(|_| id == "first") {
            options = options.deadline(deadline);
        }
        let turn = self.executor.turn(options);
        let operator = self.executor.turn(
            TurnOptions::default()
                .values(ContextValues::new().with("user", "root"))
                .may_approve(true),
        );
        let approved = Seen::Approved {
            call: suspension.call_id().to_owned(),
            deed: self.deed_of(&suspension),
            remembered: false,
        };
        let resumed = turn.clone();
        let task = tokio::spawn(async move {
            let waiting = suspension.waiting().clone();
            let answer = match (waiting, row.consent) {
                (Waiting::Approval { .. }, Consent::Expires) => {
                    resumed.resolve(suspension.id(), Resolution::Expire).await
                }
                (Waiting::Approval { .. }, Consent::Decided) => {
                    witness.see(approved);
                    return vec![(id.to_owned(), decided(&operator, &resumed, &suspension).await)];
                }
                (Waiting::Approval { .. }, _) => {
                    witness.see(approved);
                    resumed.resolve(suspension.id(), Decision::approve().into()).await
                }
                (Waiting::Client, _) => {
                    let mut text = "delivered ".to_owned();
                    fill(&mut text, &row);
                    resumed.resolve(suspension.id(), Resolution::Output(text.into())).await
                }
                _ => resumed.resolve(suspension.id(), Resolution::Answer(json!(7))).await,
            };
            vec![(id.to_owned(), answer.map_err(|error| format!("not resolved: {error}")))]
        });
        Job { ids: vec![id], caller, turn, task }
    }

    /// What a call that waits would do, as it was shown.
    fn deed_of(&self, suspension: &Suspension) -> Deed {
        let now = self.executor.registry().snapshot().fingerprint("subject");
        let is_current = now.is_some_and(|now| now == suspension.definition_hash());
        let is_second = self.is_changed && self.row.meanwhile == Meanwhile::Changed && is_current;
        let text = |value: Option<&serde_json::Value>| {
            value.and_then(serde_json::Value::as_str).map(str::to_owned)
        };
        Deed {
            version: if is_second { 2 } else { 1 },
            arguments: suspension.arguments().to_owned(),
            project: text(suspension.shown().injected.get("project")),
            user: text(suspension.caller().value("user")).unwrap_or_default(),
        }
    }

    fn now(&self) -> u64 {
        self.setup.witness.now()
    }

    /// A small step of time, after which everything has done what it can.
    async fn step(&self) {
        self.setup.witness.pass(STEP);
        tokio::time::advance(Duration::from_millis(STEP)).await;
        self.settle().await;
        if self.row.body == Body::Blocking {
            if self.row.pool == Pool::Full {
                std::thread::sleep(Duration::from_micros(500));
            } else {
                // The pool begins work in its order: what was sent there before has begun.
                let _ = tokio::task::spawn_blocking(|| ()).await;
                std::thread::sleep(Duration::from_micros(30));
            }
            self.setup.witness.step();
            self.settle().await;
        }
    }

    async fn settle(&self) {
        for _ in 0..25 {
            yield_now().await;
        }
    }

    fn logs(&self) -> Vec<Log> {
        let mut before = self.baseline;
        let current = (self.executor.clone(), Arc::clone(&self.audit));
        let all = self.former.iter().cloned().chain([current]);
        all.map(|(executor, audit)| {
            let (counted, in_flight) = counted(&executor);
            let Counted { successes, failures, cache_hits, timeouts } = std::mem::take(&mut before);
            let counted = Counted {
                successes: counted.successes - successes,
                failures: counted.failures - failures,
                cache_hits: counted.cache_hits - cache_hits,
                timeouts: counted.timeouts - timeouts,
            };
            Log { audit: lock(&audit.0).clone(), counted, in_flight }
        })
        .collect()
    }

    async fn shut_down(&mut self) -> Vec<ShutdownReport> {
        let interrupted = std::mem::take(&mut self.shutdowns);
        if !self.row.is_shut_down() {
            self.begin_shutdown(Duration::from_secs(1));
        }
        for (executor, _) in std::mem::take(&mut self.former) {
            let task = tokio::spawn(async move { executor.shutdown(Duration::from_secs(1)).await });
            self.shutdowns.push(task);
        }
        for _ in 0..400 {
            let all = || interrupted.iter().chain(&self.shutdowns);
            if all().all(JoinHandle::is_finished) {
                break;
            }
            self.step().await;
        }
        let mut reports = Vec::new();
        for task in std::mem::take(&mut self.shutdowns) {
            if task.is_finished() {
                reports.extend(task.await);
            }
        }
        reports
    }
}

/// What an executor says of the tool, and how many calls it says are under way.
fn counted(executor: &Executor) -> (Counted, u64) {
    let (mut all, mut in_flight) = (Counted::default(), 0);
    for tool in executor.statistics().snapshot() {
        in_flight += tool.in_flight;
        if tool.tool == "subject" {
            all = Counted {
                successes: tool.successes,
                failures: tool.failures,
                cache_hits: tool.cache_hits,
                timeouts: tool.timeouts,
            };
        }
    }
    (all, in_flight)
}

/// Somebody else decides on a call, and the caller waits for what becomes of it.
async fn decided(
    operator: &Turn,
    caller: &Turn,
    suspension: &Suspension,
) -> Result<Answer, String> {
    let approvals = operator.approvals().ok_or("the operator may not approve")?.of_all_tenants();
    // A client that was revoked is told of here, and its call is denied.
    let _ = approvals.decide(suspension.id(), Decision::approve()).await;
    let waited = caller.wait_for_outcome(suspension.id(), Duration::from_secs(40)).await;
    let settled = waited.map_err(|error| error.to_string())?.ok_or("it has no outcome")?;
    let taken = caller.take_outcome(suspension.id()).await.map_err(|error| error.to_string())?;
    if taken.is_none() {
        return Err("its outcome is gone".into());
    }
    match settled.outcome() {
        Outcome::Waits(next) => Ok(Answer::Suspended(next.clone())),
        _ => settled.result().map(Answer::Done).ok_or_else(|| "it still runs".into()),
    }
}
