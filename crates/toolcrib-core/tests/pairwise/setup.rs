//! The executor of a row: its tools, its stores, and its listeners.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use toolcrib_core::approval::{
    ApprovalRequest, Approver, CallerRights, CallerStatus, Decision, Remember,
};
use toolcrib_core::audit::{AuditArguments, AuditRecord, AuditSink, AuditTrail};
use toolcrib_core::clock::Timestamp;
use toolcrib_core::events::EventBus;
use toolcrib_core::masking::Mask;
use toolcrib_core::meta::meta_entries;
use toolcrib_core::policy::{ArgumentPattern, OnAsk, Policy, PolicyRule};
use toolcrib_core::run::{MemoryRuns, RunId};
use toolcrib_core::spill::{
    Handle, MemorySpill, Owner, Page, SpillError, SpillLimits, SpillStore, Spilled,
    read_output_entry,
};
use toolcrib_core::suspension::{Caller, MemorySuspensions};
use toolcrib_core::{
    Change, Executor, ExecutorConfig, Registry, RegistryBuilder, RegistrySnapshot, SourceUnit,
    ToolFilter, Toolset, TurnOptions, after,
};
use toolcrib_tool::{
    Arguments, BoxFuture, CachePolicy, CallContext, Constraint, ContextValues, Dedupe, Injection,
    Layer, RateLimit, RetryPolicy, Source, ToolCall, ToolDefinition, ToolDefinitionBuilder,
    ToolEntry, ToolError, ToolOutcome, ToolResult, tool_fn,
};

use crate::bodies::{BUDGET, CLIENT_LIMIT, LIMIT, Maker, Neighbor, SECRET, Subject};
use crate::factors::{
    Barrier, Body, Consent, Edit, Injected, Instance, Meanwhile, Middleware, Rate, Retry, Reuse,
    Rights, Row, Secret, Shown,
};
use crate::process_store::ProcessStore;
use crate::witness::{ObservedCall, Seen, Witness, lock};

/// What outlives an executor, and what all executors of a row share.
pub(crate) struct Setup {
    pub(crate) row: Row,
    pub(crate) witness: Arc<Witness>,
    pub(crate) suspensions: Arc<MemorySuspensions>,
    /// The store of runs, and the run of each call.
    pub(crate) runs: Arc<MemoryRuns>,
    pub(crate) runs_of: Arc<Mutex<HashMap<&'static str, RunId>>>,
    pub(crate) bus: EventBus,
    pub(crate) clients: Arc<Clients>,
    /// Calls before the row, which the rate limit must let pass.
    pub(crate) earlier: u32,
    /// The body and, for bodies made per call, the factory: they stay the same after a reload.
    subject: ToolEntry,
}

/// How many calls may start of a tool for which another call uses up the rest.
pub(crate) const SHARED_CALLS: u32 = 40;

/// The unit that declares the tool.
fn unit() -> SourceUnit {
    SourceUnit::new(Layer::Manifest, "subject.yaml")
}

fn source() -> Source {
    Source::new(Layer::Manifest, "subject.yaml")
}

impl Setup {
    pub(crate) fn new(row: Row, earlier: u32) -> Self {
        let witness = Arc::new(Witness::default());
        Self {
            row,
            subject: subject(&row, &witness, 1, earlier),
            witness,
            suspensions: Arc::default(),
            runs: Arc::default(),
            runs_of: Arc::default(),
            bus: EventBus::new(10_000),
            clients: Arc::new(Clients::new(row.shown)),
            earlier,
        }
    }

    /// The tools as they are when the program starts.
    pub(crate) fn tools(&self, spill: &Arc<WatchedSpill>) -> RegistrySnapshot {
        let mut builder = RegistryBuilder::new();
        // Declared as a reload declares it, so that only the row's change differs.
        builder.declare(&unit(), vec![self.subject.clone()]).expect("an entry of the unit");
        let mut entries = vec![outer(), neighbor(&self.witness)];
        entries.push(charge(&self.witness));
        entries.push(read_output_entry(Arc::clone(spill) as Arc<dyn SpillStore>));
        entries.extend(meta_entries());
        for entry in entries {
            let _ = builder.register(entry);
        }
        builder.build()
    }

    /// An executor and its audit log: over the tools of another one, or over the initial ones.
    pub(crate) fn executor(
        &self,
        policy: Policy,
        over: Option<&Executor>,
    ) -> (Executor, Arc<Records>) {
        let row = self.row;
        let spill = Arc::new(WatchedSpill {
            store: MemorySpill::new(SpillLimits::default()),
            witness: Arc::clone(&self.witness),
        });
        let tools = match over {
            None => self.tools(&spill),
            Some(other) => other.registry().snapshot().evolve([]).expect("no change").0,
        };
        let audit = Arc::new(Records::default());
        let mut config = ExecutorConfig::default();
        config.data_bytes = 4_096;
        let start = (tokio::time::Instant::now(), 1_000_000 + self.witness.now());
        let now = move || {
            let passed = u64::try_from(start.0.elapsed().as_millis()).unwrap_or(u64::MAX);
            Timestamp::from_unix_millis(start.1.saturating_add(passed))
        };
        let trail = AuditTrail::new(Arc::clone(&audit) as Arc<dyn AuditSink>)
            .with_arguments(AuditArguments::Redacted)
            .with_clock(|| SystemTime::UNIX_EPOCH);
        let mut executor = Executor::builder(Registry::new(tools))
            .config(config)
            .policy(policy)
            .spill(spill)
            .audit(trail)
            .events(self.bus.clone())
            .clock(Arc::new(now))
            .suspensions(Arc::new(ProcessStore::new(&self.suspensions, &audit)));
        if row.secret != Secret::Nowhere {
            executor = executor.mask(Mask::new([SECRET.to_owned()]).expect("a mask"));
        }
        executor = match row.middleware {
            Middleware::Nothing => executor,
            Middleware::Passes => executor.middleware(after(|_, _| {})),
            Middleware::Tags => executor.middleware(after(|_, result| *result = tagged(result))),
        };
        // If the caller may not approve, nobody may ask on its behalf.
        if row.has_approver() || row.is_stored() && row.rights == Rights::MayNot {
            let person = Person { row, witness: Arc::clone(&self.witness) };
            executor = executor.approver(Arc::new(person));
        }
        let executor = executor.build();
        executor.add_caller_rights(&self.clients);
        (executor, audit)
    }

    /// What happens to the tool while the call waits.
    pub(crate) fn change(&self, executor: &Executor) {
        let replaced = |entry| Change::Replace { unit: unit(), entries: vec![entry] };
        let change = match self.row.meanwhile {
            Meanwhile::Nothing | Meanwhile::Restarted | Meanwhile::Stopped => return,
            Meanwhile::Revoked => return self.clients.revoked.store(true, Ordering::SeqCst),
            Meanwhile::Hidden => return self.clients.hidden.store(true, Ordering::SeqCst),
            Meanwhile::Reloaded => replaced(self.subject.clone()),
            Meanwhile::Changed => replaced(subject(&self.row, &self.witness, 2, self.earlier)),
            Meanwhile::Constrained => {
                replaced(self.subject.clone().with_constraint(Arc::new(Never)))
            }
            Meanwhile::Blocked => replaced(self.subject.clone().blocked("its trust is withdrawn")),
            Meanwhile::Removed => Change::Remove { unit: unit() },
        };
        executor.registry().apply([change]).expect("a change of one unit");
    }

    /// The policy of the row.
    pub(crate) fn policy(&self) -> Policy {
        if self.row.consent == Consent::Free {
            return Policy::default();
        }
        let of = |rule: PolicyRule, mode: &str| {
            rule.tool("subject").argument("mode", ArgumentPattern::equals(mode))
        };
        let rules = [of(PolicyRule::deny(), "never"), of(PolicyRule::ask(), "work")];
        Policy::new(OnAsk::Wait, rules).expect("a policy")
    }
}

/// The called tool, in its first or second version.
fn subject(row: &Row, witness: &Arc<Witness>, version: u32, earlier: u32) -> ToolEntry {
    let definition = definition(row, version, earlier).build().expect("a definition");
    if row.body == Body::Client {
        return ToolEntry::client(definition, source());
    }
    let (witness, row) = (Arc::clone(witness), *row);
    match row.instance {
        Instance::Shared => {
            let body = Subject { witness, row, version, is_own: false };
            ToolEntry::new(definition, Arc::new(body), source())
        }
        Instance::PerUse => {
            let factory = Maker { witness, row, version };
            ToolEntry::per_use(definition, Arc::new(factory), source())
        }
    }
}

fn definition(row: &Row, version: u32, earlier: u32) -> ToolDefinitionBuilder {
    let reuses = matches!(row.reuse, Reuse::Cache | Reuse::Session);
    let schema = json!({
        "properties": {
            "mode": {"type": "string"}, "n": {"type": "integer"}, "note": {"type": "string"},
            "project": {"type": "string"},
        },
        "required": ["mode", "n"],
        "additionalProperties": false,
    });
    let limit = if row.body == Body::Client { CLIENT_LIMIT } else { LIMIT };
    let mut definition = ToolDefinition::builder("subject")
        .description(format!("Do the work, in version {version}."))
        .version(version.to_string())
        .input_schema(schema)
        .timeout(Duration::from_millis(limit))
        .output_chars(BUDGET)
        .blocking(row.body == Body::Blocking)
        .parallel(row.barrier == Barrier::Parallel)
        .read_only(reuses)
        .idempotent(reuses || row.retry == Retry::Once);
    if row.injected == Injected::Project {
        definition = definition.injections(vec![Injection::new("project", "project_id")]);
    }
    definition = match row.reuse {
        Reuse::Nothing => definition,
        Reuse::Cache => definition.cache(CachePolicy::new()),
        Reuse::Session => definition.dedupe(Dedupe::Session),
        Reuse::Batch => definition.dedupe(Dedupe::Batch),
    };
    if row.has_one_slot() {
        definition = definition.max_concurrent(1);
    }
    if row.retry == Retry::Once {
        definition = definition.retry(RetryPolicy::new(1).with_backoff(Duration::from_millis(50)));
    }
    let calls = match row.rate {
        Rate::Unlimited => return definition,
        Rate::Enough => 1_000,
        Rate::TakenByAnother => SHARED_CALLS,
        Rate::Exhausted => earlier,
    };
    // So long that no call is admitted again during a row.
    let per = Duration::from_secs(1_000_000_000);
    let calls = NonZeroU32::new(calls).expect("there is an earlier call");
    definition.rate(RateLimit::new(calls, per).expect("a time"))
}

/// A rule that lets no call pass.
#[derive(Debug)]
struct Never;

impl Constraint for Never {
    fn check(&self, _: &Arguments, _: &ContextValues) -> Result<(), ToolError> {
        Err(ToolError::execution("not any more"))
    }
}

fn host(
    name: &str,
    schema: Value,
    body: impl toolcrib_tool::Tool,
    timeout: Option<Duration>,
) -> ToolEntry {
    let mut definition = ToolDefinition::builder(name).description("Help.").input_schema(schema);
    if let Some(timeout) = timeout {
        definition = definition.timeout(timeout);
    }
    let definition = definition.build().expect("a definition");
    ToolEntry::new(definition, Arc::new(body), Source::new(Layer::Host, "test"))
}

/// Calls the tool as part of its own work.
fn outer() -> ToolEntry {
    let body = tool_fn(|arguments: Value, cx: CallContext| async move {
        let id = format!("{}.1", cx.call_id().as_str());
        let call = ToolCall::new(id, "subject", arguments["arguments"].clone());
        cx.call(call).await.into_result().map(ToolOutcome::Done)
    });
    let schema = json!({"properties": {"arguments": {"type": "object"}}});
    host("outer", schema, body, Some(Duration::MAX))
}

fn neighbor(witness: &Arc<Witness>) -> ToolEntry {
    host("neighbor", json!({"properties": {}}), Neighbor(Arc::clone(witness)), None)
}

/// A tool that a cancelled call must never reach.
fn charge(witness: &Arc<Witness>) -> ToolEntry {
    let witness = Arc::clone(witness);
    let body = tool_fn(move |_: Value, _| {
        witness.see(Seen::Charged);
        async { "charged" }
    });
    host("charge", json!({"properties": {}}), body, None)
}

/// The same result with one more part.
fn tagged(result: &ToolResult) -> ToolResult {
    let Some(output) = result.output().filter(|_| result.is_success()) else {
        return result.clone();
    };
    let output = output.clone().with_content("tagged");
    let id = result.call_id().clone();
    ToolResult::success(id, result.tool(), output, result.duration())
        .with_cached(result.cached())
        .with_skipped(result.skipped())
        .with_truncated(result.truncated())
}

/// The audit log of a process, until it is killed.
#[derive(Default)]
pub(crate) struct Records {
    pub(crate) all: Mutex<Vec<AuditRecord>>,
    is_killed: AtomicBool,
}

impl Records {
    /// From now on the process records nothing, and its store does not answer.
    pub(crate) fn kill(&self) {
        self.is_killed.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_killed(&self) -> bool {
        self.is_killed.load(Ordering::SeqCst)
    }
}

impl AuditSink for Records {
    fn record(&self, record: &AuditRecord) {
        if !self.is_killed() {
            lock(&self.all).push(record.clone());
        }
    }
}

/// The current rights of the clients.
pub(crate) struct Clients {
    shown: Shown,
    revoked: AtomicBool,
    /// Whether the tool is no longer in the client's toolset.
    hidden: AtomicBool,
}

impl Clients {
    fn new(shown: Shown) -> Self {
        Self { shown, revoked: AtomicBool::default(), hidden: AtomicBool::default() }
    }

    /// The options with the tools that the client sees now.
    pub(crate) fn shown(&self, options: TurnOptions) -> TurnOptions {
        if self.shown == Shown::Everything {
            return options;
        }
        let without = |name| Toolset::new().exclude(ToolFilter::new().name(name));
        let is_hidden = self.hidden.load(Ordering::SeqCst);
        options.toolset(if is_hidden { without("subject") } else { Toolset::new() })
    }

    /// As [`shown`](Self::shown), for the calls of the row.
    pub(crate) fn narrowed(&self, options: TurnOptions) -> TurnOptions {
        let options = self.shown(options);
        if self.shown != Shown::Narrowed {
            return options;
        }
        options.narrow(&Toolset::new().exclude(ToolFilter::new().name("charge")))
    }
}

impl CallerRights for Clients {
    fn caller_status(&self, caller: &Caller) -> CallerStatus {
        match caller.client_name() {
            Some("desk") if self.revoked.load(Ordering::SeqCst) => {
                CallerStatus::Revoked { reason: "its token was revoked".into() }
            }
            Some("desk") if self.shown != Shown::Everything => {
                let options = TurnOptions::default().values(caller.values());
                CallerStatus::Current(Box::new(
                    self.shown(options).may_approve(caller.may_approve()),
                ))
            }
            _ => CallerStatus::Unmanaged,
        }
    }
}

/// Decides after two seconds, and records what it was shown.
struct Person {
    row: Row,
    witness: Arc<Witness>,
}

/// How long a person takes to decide, in milliseconds: longer than the tool's limit.
pub(crate) const THINKING: u64 = 2_000;

/// The arguments with which a person replaces the model's, if it does.
pub(crate) fn changed_arguments(row: &Row) -> Option<String> {
    let mut arguments = match row.edit {
        Edit::Nothing => return None,
        Edit::Fits => json!({"mode": "work", "n": 2}),
        Edit::Misfit => json!({"mode": "work", "n": "many"}),
        Edit::Forbidden => json!({"mode": "never", "n": 1}),
    };
    if row.secret != Secret::Nowhere {
        arguments["note"] = SECRET.into();
    }
    Some(arguments.to_string())
}

impl Approver for Person {
    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Decision> {
        self.witness.text("question", request.text());
        self.witness.text("question", request.to_value().to_string());
        let (call, observed) = (request.call_id.as_str().to_owned(), observed_call(request));
        self.witness.see(Seen::Asked { call: call.clone(), observed: observed.clone() });
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(THINKING)).await;
            let remembered = self.row.consent == Consent::Remembers;
            if self.row.consent == Consent::Denies {
                return Decision::deny("not today");
            }
            if let Some(changed) = changed_arguments(&self.row) {
                // Changed arguments are never remembered.
                let decision = Decision::approve_changed(changed.clone());
                let (observed, remembered) =
                    (ObservedCall { arguments: changed, ..observed }, false);
                self.witness.see(Seen::Approved { call, observed, remembered });
                return decision.remembered(Remember::Tool);
            }
            let decision = match self.row.consent {
                Consent::Remembers => Decision::approve().remembered(Remember::SameCall),
                _ => Decision::approve(),
            };
            self.witness.see(Seen::Approved { call, observed, remembered });
            decision
        })
    }
}

/// What a question shows of the call. The arguments are taken from the unmasked part.
pub(crate) fn observed_call(request: &ApprovalRequest) -> ObservedCall {
    let version = request.definition.as_ref().and_then(|definition| definition.version());
    ObservedCall {
        version: version.and_then(|version| version.parse().ok()).unwrap_or(0),
        arguments: request.arguments.as_str().to_owned(),
        project: request.shown.injected.get("project").and_then(Value::as_str).map(str::to_owned),
        user: request.asker.user.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned(),
    }
}

/// Stores outputs, and exposes what was stored.
pub(crate) struct WatchedSpill {
    store: MemorySpill,
    witness: Arc<Witness>,
}

impl SpillStore for WatchedSpill {
    fn put<'a>(
        &'a self,
        owner: &'a Owner,
        spilled: Spilled,
    ) -> BoxFuture<'a, Result<Handle, SpillError>> {
        self.witness.text("spill", spilled.text.clone());
        self.store.put(owner, spilled)
    }

    fn read<'a>(
        &'a self,
        owner: &'a Owner,
        handle: &'a Handle,
        offset: usize,
        limit: usize,
    ) -> BoxFuture<'a, Result<Page, SpillError>> {
        self.store.read(owner, handle, offset, limit)
    }
}
