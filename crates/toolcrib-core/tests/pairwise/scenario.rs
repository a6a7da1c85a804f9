//! Runs a row: earlier calls, the call with its twin, concurrent events, and the same call
//! afterwards. Time advances in small steps, so that every run of a row takes the same course.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use futures_util::FutureExt;
use serde_json::json;
use tokio::task::{JoinHandle, yield_now};
use toolcrib_core::audit::AuditRecord;
use toolcrib_core::events::Event;
use toolcrib_core::policy::Policy;
use toolcrib_core::suspension::{Suspension, SuspensionStore};
use toolcrib_core::{Executor, ShutdownReport, TurnOptions};
use toolcrib_tool::{ContextValues, Identity, ToolCall, ToolResult};

use crate::bodies::{MAKE, SECRET};
use crate::calls::{Answers, Events};
use crate::factors::{
    Barrier, Body, Breaker, Door, Instance, Interruption, Meanwhile, Pool, Rate, Rights, Row,
    Second, Secret, Sent, Servers, Slots, Twin,
};
use crate::resume::Parked;
use crate::setup::{Records, SHARED_CALLS, Setup, THINKING};
use crate::witness::{Moment, Seen, lock};

/// The length of a step, in milliseconds.
const STEP: u64 = 25;

/// The number of problems in arguments that have many.
const WRONG: usize = 1_000;

/// The maximum duration of a call: more than any row has reasons to wait.
pub(crate) const LONGEST: u64 = 45_000;

/// Who makes a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) user: &'static str,
    pub(crate) project: &'static str,
    pub(crate) session: &'static str,
    pub(crate) trace: &'static str,
}

/// The caller of the first calls.
pub(crate) const ADA: Caller = Caller { user: "ada", project: "alpha", session: "s1", trace: "t1" };

/// The caller of the same call afterwards, if there is one.
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
    /// An outcome that no call may have.
    Lost(String),
}

/// A call and its outcome.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) caller: Caller,
    pub(crate) end: End,
    pub(crate) at: u64,
}

/// Everything that was observed in a row.
#[derive(Debug)]
pub(crate) struct Story {
    pub(crate) told: BTreeMap<&'static str, Vec<Told>>,
    pub(crate) moments: Vec<Moment>,
    pub(crate) texts: Vec<(&'static str, String)>,
    /// What a client that watches the first calls received.
    pub(crate) reported: Vec<Event>,
    /// The records of each executor.
    pub(crate) logs: Vec<Log>,
    /// How often each call entered the pipeline.
    pub(crate) passes: BTreeMap<&'static str, usize>,
    /// Instances that were not closed.
    pub(crate) open: i64,
    pub(crate) waiting: usize,
    pub(crate) report: Vec<ShutdownReport>,
}

/// The records of an executor.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    pub(crate) audit: Vec<AuditRecord>,
    pub(crate) counted: Counted,
    /// Calls that are reported as running when none is.
    pub(crate) in_flight: u64,
}

/// The statistics of the tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) successes: u64,
    pub(crate) failures: u64,
    pub(crate) cache_hits: u64,
    pub(crate) timeouts: u64,
}

/// Runs a row in its own runtime.
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

pub(crate) struct Stage {
    pub(crate) row: Row,
    pub(crate) setup: Setup,
    pub(crate) executor: Executor,
    pub(crate) audit: Arc<Records>,
    /// Executors of processes that were killed, and their records until then.
    pub(crate) former: Vec<(Executor, Log)>,
    /// Another server over the same tools and the same store.
    pub(crate) beside: Option<(Executor, Arc<Records>)>,
    pub(crate) baseline: Counted,
    pub(crate) told: BTreeMap<&'static str, Vec<Told>>,
    pub(crate) passes: BTreeMap<&'static str, usize>,
    pub(crate) parked: VecDeque<Parked>,
    pub(crate) is_changed: bool,
    pub(crate) is_interrupted: bool,
    pub(crate) shutdowns: Vec<JoinHandle<ShutdownReport>>,
    /// Occupies the only thread of the pool until it is dropped.
    pub(crate) hog: Option<mpsc::Sender<()>>,
    pub(crate) holder: Option<JoinHandle<Answers>>,
}

impl Stage {
    fn new(row: Row) -> Self {
        let hangs = if row.breaker == Breaker::Closed { 0 } else { 3 };
        let holders = row.holders();
        let quick = u32::from(row.rate == Rate::Exhausted && hangs + holders == 0);
        let setup = Setup::new(row, hangs + holders + quick);
        let (executor, audit) = setup.executor(Policy::default(), None);
        let is_beside = row.servers == Servers::Two;
        let beside = is_beside.then(|| setup.executor(setup.policy(), Some(&executor)));
        Self {
            row,
            setup,
            executor,
            audit,
            former: Vec::new(),
            beside,
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
        if self.row.has_one_slot() && self.holder.is_none() {
            self.hold(&self.executor.clone());
        }
        self.let_the_holder_end().await;
        if !self.is_changed && self.row.meanwhile == Meanwhile::Stopped {
            self.stop(None).await.expect("nothing waits");
        } else if !self.is_changed {
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
        // Instances are closed on a separate thread.
        for _ in 0..2_000 {
            if self.setup.witness.open() <= 0 {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        // Everything that can be read is ready.
        while let Some(Some(event)) = watching.next().now_or_never() {
            self.setup.witness.text("event", event.to_value().to_string());
        }
        Story {
            told: self.told,
            moments: self.setup.witness.moments(),
            texts: self.setup.witness.texts(),
            reported: self.setup.witness.reported(),
            logs,
            passes: self.passes,
            open: self.setup.witness.open(),
            waiting: self.setup.suspensions.all().await.map_or(usize::MAX, |all| all.len()),
            report,
        }
    }

    /// Calls before the row: they open the breaker and use up the rate.
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
        if row.rate == Rate::TakenByAnother {
            self.earlier(ADA, json!({"mode": "quick", "n": 0})).await;
            let zoe = Caller { user: "zoe", ..ADA };
            for number in 1..=SHARED_CALLS {
                self.earlier(zoe, json!({"mode": "quick", "n": number})).await;
            }
        }
        // Cancelled bodies have ended.
        for _ in 0..8 {
            self.step().await;
        }
        self.baseline = counted(&self.executor).0;
        self.setup.witness.forget();
        lock(&self.audit.all).clear();
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

    pub(crate) fn options(&self, caller: Caller) -> TurnOptions {
        let values =
            ContextValues::new().with("project_id", caller.project).with("trace", caller.trace);
        let options = TurnOptions::default()
            .identity(Identity::user(caller.user))
            .values(values)
            .session(caller.session)
            .client("desk")
            .client_key("key")
            .may_approve(self.row.rights == Rights::May);
        self.setup.clients.narrowed(options)
    }

    pub(crate) fn arguments(&self) -> serde_json::Value {
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
            self.hold(&self.executor.clone());
            self.step().await;
        }
        let mut jobs = Vec::new();
        match (row.door, row.twin) {
            (Door::Batch | Door::Run, Twin::SameBatch) => {
                jobs.push(self.launch(&["first", "twin"], ADA, true));
            }
            (Door::Batch | Door::Run | Door::Meta, _) => {
                jobs.push(self.launch(&["first"], ADA, true));
            }
            _ => jobs.push(self.launch(&["first"], ADA, false)),
        }
        // A call that runs alone has to wait for the previous one, but still precedes its twin.
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

    /// When another call takes the slot, so that the call finds it occupied.
    fn holder_at(&self, thinking: u64) -> Option<u64> {
        let wanted = self.row.has_one_slot() && !self.row.is_stored();
        wanted.then(|| self.now() + thinking.saturating_sub(300))
    }

    /// The same call, made later.
    async fn follow(&mut self, id: &'static str, caller: Caller) {
        let job = self.launch(&[id], caller, false);
        let events = Events { are_due: false, holder_at: None, hog_until: None };
        self.drive(vec![job], events).await;
        self.resume_all(false).await;
    }

    /// When the caller of the first call wants its answer, counted from when it is made or
    /// continues.
    pub(crate) fn deadline(&self, goes_on: bool) -> Option<Duration> {
        let row = self.row;
        let is_late = row.barrier == Barrier::Barrier && row.has_neighbors();
        let before = if is_late && !goes_on { 150 } else { 0 };
        let thinking = if row.has_approver() && !goes_on { THINKING } else { 0 };
        let millis = match row.interruption {
            Interruption::DeadlineWaiting if !goes_on => 300,
            // The clock does not move between two steps.
            Interruption::DeadlineRunning if row.is_stored() == goes_on => {
                before + thinking + 100 + STEP
            }
            _ => return None,
        };
        Some(Duration::from_millis(millis))
    }

    pub(crate) fn change(&mut self) {
        self.is_changed = true;
        if self.row.meanwhile == Meanwhile::Restarted {
            self.setup.witness.see(Seen::Restarted);
            let log = Log { in_flight: 0, ..self.log(&self.executor, &self.audit) };
            self.audit.kill();
            if let Some(holder) = &self.holder {
                holder.abort();
            }
            self.start_again(log);
        } else {
            self.setup.change(&self.executor);
            if let Some((executor, _)) = &self.beside {
                self.setup.change(executor);
            }
        }
    }

    /// The server stops in good order, which no call that waits in the store notices.
    pub(crate) async fn stop(&mut self, waiting: Option<&Suspension>) -> Result<(), String> {
        self.is_changed = true;
        self.begin_shutdown(Duration::ZERO);
        self.step().await;
        if let Some(waiting) = waiting {
            self.decide_too_late(waiting).await?;
        }
        self.setup.witness.see(Seen::Restarted);
        if let Some(holder) = &self.holder {
            holder.abort();
        }
        let log = self.log(&self.executor, &self.audit);
        self.start_again(log);
        Ok(())
    }

    /// Another process goes on where the last one has ended.
    fn start_again(&mut self, log: Log) {
        let (next, audit) = self.setup.executor(self.setup.policy(), Some(&self.executor));
        self.former.push((std::mem::replace(&mut self.executor, next), log));
        self.audit = audit;
        self.baseline = Counted::default();
    }

    pub(crate) fn now(&self) -> u64 {
        self.setup.witness.now()
    }

    /// Advances time by a small step, and lets everything run until it is idle.
    pub(crate) async fn step(&self) {
        self.setup.witness.pass(STEP);
        tokio::time::advance(Duration::from_millis(STEP)).await;
        self.settle().await;
        if self.row.body == Body::Blocking {
            if self.hog.is_some() {
                std::thread::sleep(Duration::from_micros(100));
            } else if self.row.pool == Pool::Full {
                // The only thread is occupied by a body, or is idle.
                let idle = tokio::task::spawn_blocking(|| ());
                for _ in 0..100_000 {
                    if idle.is_finished() || self.setup.witness.has_blocking() {
                        break;
                    }
                    std::thread::sleep(Duration::from_micros(50));
                }
            } else {
                // The pool starts jobs in order: earlier jobs have begun.
                let _ = tokio::task::spawn_blocking(|| ()).await;
                std::thread::sleep(Duration::from_micros(30));
            }
            self.setup.witness.step();
            self.settle().await;
        }
    }

    pub(crate) async fn settle(&self) {
        for _ in 0..25 {
            yield_now().await;
        }
    }

    /// The records of each process. Waiting calls continue in the other server, after they started in this one.
    fn logs(&self) -> Vec<Log> {
        let former = self.former.iter().map(|(_, log)| log.clone());
        let beside = self.beside.iter().map(|(executor, audit)| {
            let (counted, in_flight) = counted(executor);
            Log { audit: lock(&audit.all).clone(), counted, in_flight }
        });
        former.chain([self.log(&self.executor, &self.audit)]).chain(beside).collect()
    }

    /// The records of the process that has this executor now.
    fn log(&self, executor: &Executor, audit: &Records) -> Log {
        let (counted, in_flight) = counted(executor);
        let before = &self.baseline;
        let counted = Counted {
            successes: counted.successes - before.successes,
            failures: counted.failures - before.failures,
            cache_hits: counted.cache_hits - before.cache_hits,
            timeouts: counted.timeouts - before.timeouts,
        };
        Log { audit: lock(&audit.all).clone(), counted, in_flight }
    }

    async fn shut_down(&mut self) -> Vec<ShutdownReport> {
        let interrupted = std::mem::take(&mut self.shutdowns);
        if !self.row.is_shut_down() {
            self.begin_shutdown(Duration::from_secs(1));
        }
        // A killed process is not shut down, and calls that it was making go on in this one for ever.
        let is_quiet = !self.row.keeps_its_maker();
        let former = self.former.drain(..).filter(|_| is_quiet).map(|(executor, _)| executor);
        for executor in former.chain(self.beside.take().map(|(executor, _)| executor)) {
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

/// The statistics of the tool, and the number of running calls.
fn counted(executor: &Executor) -> (Counted, u64) {
    let (mut all, mut in_flight) = (Counted::default(), 0);
    for tool in executor.statistics().snapshot() {
        in_flight += tool.in_flight;
        if tool.tool == "subject" {
            all = Counted {
                successes: tool.successes,
                failures: tool.failures + tool.refused + tool.denied,
                cache_hits: tool.cache_hits,
                timeouts: tool.timeouts,
            };
        }
    }
    (all, in_flight)
}
