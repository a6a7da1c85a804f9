//! A call that a running tool makes and that has to wait suspends that tool: what happens to its
//! time, its permit and its place, and how it goes on or ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_core::approval::{CallerRights, Decision, Standing};
use toolcrib_core::clock::{Clock, Timestamp};
use toolcrib_core::masking::Mask;
use toolcrib_core::meta::meta_entries;
use toolcrib_core::run::{Run, RunState};
use toolcrib_core::suspension::{
    Caller, MemorySuspensions, Outcome, RedeemError, Resolution, Submission, Suspension,
    SuspensionStore,
};
use toolcrib_core::{Answer, Executor, ExecutorBuilder, ExecutorConfig, Turn, TurnOptions};
use toolcrib_tool::{
    Approval, CachePolicy, CallContext, ContextValues, ErrorKind, InputRequest, ToolCall,
    ToolDefinitionBuilder, ToolEntry, ToolOutcome, ToolOutput, ToolResult, tool_fn,
};

use crate::harness::{define, entry, registry, source};

/// How often something has happened.
#[derive(Default)]
struct Counts {
    /// `note` ran.
    noted: AtomicUsize,
    /// `remove` ran.
    removed: AtomicUsize,
    /// Parents began.
    begun: AtomicUsize,
    /// Parents were ended or have ended.
    over: AtomicUsize,
    /// Parents at work outside their nested calls, and the most of them.
    working: AtomicUsize,
    most_working: AtomicUsize,
}

impl Counts {
    fn of(count: &AtomicUsize) -> usize {
        count.load(Ordering::SeqCst)
    }
}

/// Counts a parent's end, however it ends.
struct Over(Arc<Counts>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.over.fetch_add(1, Ordering::SeqCst);
    }
}

fn remove_call(path: &str) -> ToolCall {
    ToolCall::new(format!("n-{path}"), "remove", json!({"path": path, "password": "hunter2"}))
}

/// Notes something, removes `build`, and says what came of both.
async fn cleans(counts: Arc<Counts>, cx: CallContext) -> Result<String, toolcrib_tool::ToolError> {
    counts.begun.fetch_add(1, Ordering::SeqCst);
    let _over = Over(Arc::clone(&counts));
    let noted = cx.call(ToolCall::new("n-note", "note", "{}")).await.text().into_owned();
    let removed = cx.call(remove_call("build")).await;
    Ok(format!("{noted}; {}", removed.text()))
}

fn numbers() -> Value {
    json!({"additionalProperties": {"type": "integer"}})
}

/// The time of the runtime, which tests let stand still.
struct RuntimeClock(tokio::time::Instant);

impl Clock for RuntimeClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_millis(0).after(self.0.elapsed())
    }
}

fn host_tools(counts: &Arc<Counts>) -> Vec<ToolEntry> {
    let parent = |definition: ToolDefinitionBuilder| {
        let counts = Arc::clone(counts);
        entry(definition, tool_fn(move |_: Value, cx| cleans(Arc::clone(&counts), cx)))
    };
    let schema = json!({"properties": {
        "path": {"type": "string"},
        "password": {"type": "string", "x-sensitive": true},
    }, "required": ["path"]});
    let (for_remove, for_note) = (Arc::clone(counts), Arc::clone(counts));
    let remove = tool_fn(move |arguments: Value, _| {
        for_remove.removed.fetch_add(1, Ordering::SeqCst);
        async move { format!("removed {}", arguments["path"].as_str().unwrap_or_default()) }
    });
    let note = tool_fn(move |_: Value, _| {
        let count = for_note.noted.fetch_add(1, Ordering::SeqCst) + 1;
        async move { format!("noted {count}") }
    });
    let greet = tool_fn(|_: Value, cx: CallContext| async move {
        match cx.answer().and_then(|answer| answer["name"].as_str()) {
            Some(name) => ToolOutcome::Done(ToolOutput::from(format!("Hello, {name}!"))),
            None => ToolOutcome::needs_input(InputRequest::new(
                "Who is there?",
                json!({"properties": {"name": {"type": "string"}}}),
            )),
        }
    });
    let visits = tool_fn(|_: Value, cx: CallContext| async move {
        let name = cx.call(ToolCall::new("g", "greet", "{}")).await.text().into_owned();
        let file = cx.call(ToolCall::new("p", "pick", "{}")).await.text().into_owned();
        format!("{name} {file}")
    });
    let counted = Arc::clone(counts);
    let works = tool_fn(move |arguments: Value, cx: CallContext| {
        let counts = Arc::clone(&counted);
        async move {
            let work = async |seconds: &Value| {
                let now = counts.working.fetch_add(1, Ordering::SeqCst) + 1;
                counts.most_working.fetch_max(now, Ordering::SeqCst);
                let seconds = seconds.as_u64().unwrap_or_default();
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                counts.working.fetch_sub(1, Ordering::SeqCst);
            };
            work(&arguments["before"]).await;
            let removed = cx.call(remove_call("build")).await.text().into_owned();
            work(&arguments["after"]).await;
            removed
        }
    });
    let both = tool_fn(|_: Value, cx: CallContext| async move {
        let calls = [remove_call("one"), remove_call("two")].map(|call| cx.call(call));
        let results = futures_util::future::join_all(calls).await;
        results.iter().map(|result| result.text().into_owned()).collect::<Vec<_>>().join(", ")
    });
    let gives_up = tool_fn(|_: Value, cx: CallContext| async move {
        let limit = Duration::from_secs(5);
        match tokio::time::timeout(limit, cx.call(remove_call("build"))).await {
            Ok(result) => result.text().into_owned(),
            Err(_) => "gave up".to_owned(),
        }
    });
    let calls = |tool: &'static str| {
        tool_fn(move |_: Value, cx: CallContext| async move {
            cx.call(ToolCall::new("d", tool, "{}")).await.into_result()
        })
    };
    let through_meta = tool_fn(|_: Value, cx: CallContext| async move {
        let arguments = json!({"name": "remove", "arguments": {"path": "deep"}});
        cx.call(ToolCall::new("t", "tool_call", arguments)).await.into_result()
    });
    let mut tools = vec![
        entry(define("remove").approval(Approval::Always).input_schema(schema), remove),
        entry(define("note"), note),
        entry(define("greet"), greet),
        entry(define("visit"), visits),
        ToolEntry::client(define("pick").build().expect("a definition"), source()),
        parent(define("clean").input_schema(numbers())),
        parent(define("clean_again").idempotent(true)),
        parent(
            define("clean_kept")
                .read_only(true)
                .idempotent(true)
                .cache(CachePolicy::new().with_shared(true)),
        ),
        entry(
            define("work")
                .input_schema(numbers())
                .timeout(Duration::from_secs(10))
                .max_concurrent(1),
            works,
        ),
        entry(define("alone").parallel(false), calls("clean")),
        entry(define("outer"), calls("middle")),
        entry(define("middle"), through_meta),
        entry(define("wraps_alone"), calls("alone")),
        entry(define("both"), both),
        entry(define("gives_up"), gives_up),
    ];
    tools.extend(meta_entries());
    tools
}

struct Host {
    store: Arc<MemorySuspensions>,
    counts: Arc<Counts>,
    executor: Executor,
}

impl Host {
    fn new() -> Self {
        Self::with(|builder| builder)
    }

    fn with(options: impl FnOnce(ExecutorBuilder) -> ExecutorBuilder) -> Self {
        let (store, counts) = (Arc::new(MemorySuspensions::new()), Arc::default());
        Self::over(store, counts, options)
    }

    fn over(
        store: Arc<MemorySuspensions>,
        counts: Arc<Counts>,
        options: impl FnOnce(ExecutorBuilder) -> ExecutorBuilder,
    ) -> Self {
        let builder = Executor::builder(registry(host_tools(&counts)))
            .suspensions(store.clone())
            .clock(Arc::new(RuntimeClock(tokio::time::Instant::now())));
        Self { store, counts, executor: options(builder).build() }
    }

    /// The same tools over the same store after the process has ended.
    fn restarted(self) -> Self {
        let Self { store, counts, executor } = self;
        drop(executor);
        Self::over(store, counts, |builder| builder)
    }

    fn turn(&self) -> Turn {
        self.turn_with(TurnOptions::default())
    }

    fn turn_with(&self, options: TurnOptions) -> Turn {
        let values = ContextValues::new().with("user", "ada");
        self.executor.turn(options.values(values).may_approve(true))
    }

    async fn kept(&self) -> Vec<Suspension> {
        self.store.all().await.expect("it is in memory")
    }

    /// Nothing is left of any call that waited.
    async fn settles(&self) {
        for _ in 0..100 {
            if self.kept().await.is_empty() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("still kept: {:?}", self.kept().await);
    }
}

fn call(tool: &str) -> ToolCall {
    ToolCall::new("call_1", tool, "{}")
}

async fn suspended(turn: &Turn, call: ToolCall) -> Suspension {
    waits(turn.start(call).await)
}

fn waits(answer: Answer) -> Suspension {
    match answer {
        Answer::Suspended(suspension) => *suspension,
        Answer::Done(result) => panic!("it does not wait: {}", result.text()),
    }
}

fn done(answer: Answer) -> ToolResult {
    match answer {
        Answer::Done(result) => result,
        Answer::Suspended(suspension) => panic!("it still waits: {suspension:?}"),
    }
}

async fn resolve(turn: &Turn, waiting: &Suspension, resolution: impl Into<Resolution>) -> Answer {
    turn.resolve(waiting.id(), resolution.into()).await.expect("it waits")
}

async fn approve(turn: &Turn, waiting: &Suspension) -> Answer {
    resolve(turn, waiting, Decision::approve()).await
}

async fn outcome(turn: &Turn, waiting: &Suspension) -> ToolResult {
    let settled = turn.wait_for_outcome(waiting.id(), Duration::from_secs(60)).await;
    let settled = settled.expect("it is in memory").expect("it has an outcome");
    settled.result().expect("it is done")
}

#[tokio::test]
async fn a_tool_whose_call_needs_approval_waits_with_it_and_goes_on_where_it_was() {
    let host = Host::new();
    let turn = host.turn();
    let waiting = suspended(&turn, call("clean")).await;
    assert_eq!((waiting.call_id(), waiting.tool()), ("call_1", "remove"));
    assert_eq!((waiting.called_tool(), waiting.made_by()), ("clean", Some("clean")));
    assert_eq!(host.kept().await.len(), 1);
    assert_eq!(Counts::of(&host.counts.removed), 0);

    let result = done(approve(&turn, &waiting).await);
    assert_eq!((result.call_id().as_str(), result.tool()), ("call_1", "clean"));
    assert_eq!(result.text(), "noted 1; removed build");
    assert_eq!(Counts::of(&host.counts.noted), 1, "what it did before is not done again");
    assert_eq!(Counts::of(&host.counts.begun), 1);
    assert!(host.kept().await.is_empty());
    let again = turn.resolve(waiting.id(), Decision::approve().into()).await;
    assert!(matches!(again, Err(RedeemError::AlreadyResolved(_))), "{again:?}");
    assert_eq!(Counts::of(&host.counts.removed), 1);
}

#[tokio::test]
async fn a_plain_call_says_that_it_waits_and_its_answer_is_there_later() {
    let host = Host::new();
    let turn = host.turn();
    let result = turn.call(call("clean")).await;
    assert_eq!((result.error_kind(), result.tool()), (Some(ErrorKind::RequiresApproval), "clean"));
    let waiting = &host.kept().await[0];
    assert_eq!(done(approve(&turn, waiting).await).text(), "noted 1; removed build");
}

#[tokio::test]
async fn whoever_approves_sees_which_tools_ask_and_no_secret() {
    let host =
        Host::with(|builder| builder.mask(Mask::new(["build".to_owned()]).expect("one word")));
    let waiting = suspended(&host.turn(), call("clean")).await;
    let approvals = host.executor.approvals(TurnOptions::default());
    let [request] = &approvals.list().await.expect("it is in memory")[..] else {
        panic!("one call waits")
    };
    assert_eq!(request.tool, "remove");
    assert_eq!(request.shown.called_by, ["clean"]);
    let (text, value) = (request.text(), request.to_value());
    assert!(text.contains("called by: clean"), "{text}");
    assert_eq!(value["called_by"], json!(["clean"]));
    for secret in ["hunter2", "build"] {
        assert!(!text.contains(secret) && !value.to_string().contains(secret), "{value}");
    }
    // The digest of what was shown tells who asks.
    let direct = suspended(&host.turn(), remove_call("build")).await;
    let direct = approvals.find(direct.id()).await.expect("in memory").expect("it waits");
    assert_ne!(direct.digest(), request.digest());

    approvals.decide(waiting.id(), Decision::approve()).await.expect("it holds");
    let result = outcome(&host.turn(), &waiting).await;
    assert_eq!((result.call_id().as_str(), result.tool()), ("call_1", "clean"));
}

#[tokio::test]
async fn a_denied_call_is_the_tools_to_deal_with() {
    let host = Host::new();
    let turn = host.turn();
    let waiting = suspended(&turn, call("clean")).await;
    let result = done(resolve(&turn, &waiting, Decision::deny("not today")).await);
    assert!(result.is_success() && result.text().contains("noted 1; "), "{}", result.text());
    assert!(result.text().contains("not today"), "{}", result.text());
    let waiting = suspended(&turn, call("clean")).await;
    let changed = Decision::approve_changed(r#"{"path":"dist"}"#);
    assert_eq!(done(resolve(&turn, &waiting, changed).await).text(), "noted 2; removed dist");
}

#[tokio::test]
async fn nobody_else_resolves_it() {
    let host = Host::new();
    let waiting = suspended(&host.turn(), call("clean")).await;
    let values = ContextValues::new().with("user", "bob");
    let bob = host.executor.turn(TurnOptions::default().values(values).may_approve(true));
    let stolen = bob.resolve(waiting.id(), Decision::approve().into()).await;
    assert!(matches!(stolen, Err(RedeemError::Unknown)), "{stolen:?}");
    assert_eq!(done(approve(&host.turn(), &waiting).await).text(), "noted 1; removed build");
}

#[tokio::test]
async fn questions_and_client_tools_within_a_call_wait_one_after_the_other() {
    let host = Host::new();
    let turn = host.turn();
    let question = suspended(&turn, call("visit")).await;
    assert_eq!(question.waiting().as_str(), "input");
    let answer = Resolution::Answer(json!({"name": "Ada"}));
    let client = waits(resolve(&turn, &question, answer).await);
    assert_eq!((client.call_id(), client.tool()), ("call_1", "pick"));
    let result = done(resolve(&turn, &client, Resolution::Output("a.txt".into())).await);
    assert_eq!(result.text(), "Hello, Ada! a.txt");
}

#[tokio::test]
async fn the_other_calls_of_a_batch_are_answered_and_the_run_ends_with_the_decision() {
    let host = Host::new();
    let turn = host.turn();
    let calls =
        vec![call("clean"), ToolCall::new("2", "note", "{}"), ToolCall::new("3", "visit", "{}")];
    let mut run = Run::start(&turn, calls).await.expect("there is randomness");
    assert_eq!(run.answered().count(), 1);
    let waiting: Vec<_> = run.outstanding().cloned().collect();
    run.resolve(&turn, waiting[0].id(), Decision::approve().into()).await.expect("it waits");
    let answer = Resolution::Answer(json!({"name": "Ada"}));
    run.resolve(&turn, waiting[1].id(), answer).await.expect("it waits");
    run.submit(&turn, vec![Submission::new("3", "b.txt")]).await.expect("it waits for that");
    let results = run.results().expect("all are answered");
    assert!(results[0].text().ends_with("removed build"), "{}", results[0].text());
    assert_eq!(results[2].text(), "Hello, Ada! b.txt");
}

#[tokio::test]
async fn a_decision_from_elsewhere_ends_the_run_too() {
    let host = Host::new();
    let turn = host.turn();
    let mut run = Run::start(&turn, vec![call("both")]).await.expect("there is randomness");
    let approvals = host.executor.approvals(TurnOptions::default());
    for _ in 0..2 {
        let [request] = &approvals.list().await.expect("in memory")[..] else { panic!("one") };
        let id = request.id.clone().expect("it is suspended");
        let decided = approvals.decide(&id, Decision::approve()).await.expect("it holds");
        decided.outcome(Duration::from_secs(5)).await.expect("it goes on");
    }
    run.settle(&turn).await.expect("in memory");
    assert_eq!(run.state(), RunState::Completed);
    assert_eq!(run.results().expect("over")[0].text(), "removed one, removed two");
}

#[tokio::test]
async fn two_calls_at_once_within_one_are_asked_about_one_after_the_other() {
    let host = Host::new();
    let turn = host.turn();
    let first = suspended(&turn, call("both")).await;
    assert_eq!(host.kept().await.len(), 1);
    let second = waits(approve(&turn, &first).await);
    assert_ne!(first.arguments(), second.arguments());
    let result = done(approve(&turn, &second).await);
    assert_eq!(result.text(), "removed one, removed two");
}

#[tokio::test]
async fn a_call_three_levels_down_suspends_all_of_them() {
    let host = Host::new();
    let turn = host.turn();
    let waiting = suspended(&turn, call("outer")).await;
    assert_eq!(waiting.callers().collect::<Vec<_>>(), ["outer", "middle", "tool_call"]);
    assert_eq!(waiting.shown().called_by, ["outer", "middle", "tool_call"]);
    let result = done(approve(&turn, &waiting).await);
    assert_eq!((result.tool(), result.text().as_ref()), ("outer", "removed deep"));
}

#[tokio::test(start_paused = true)]
async fn the_limit_of_a_tool_stands_still_while_its_call_waits() {
    let host = Host::new();
    let turn = host.turn();
    let works = |after: u64| {
        let arguments = json!({"before": 6, "after": after});
        ToolCall::new("call_1", "work", arguments)
    };
    let waiting = suspended(&turn, works(3)).await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(done(approve(&turn, &waiting).await).text(), "removed build");

    let waiting = suspended(&turn, works(5)).await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    let result = done(approve(&turn, &waiting).await);
    assert_eq!(result.error_kind(), Some(ErrorKind::Timeout), "11 s of work are more than 10 s");
    assert!(result.text().contains("limit of 10s"), "{}", result.text());
}

#[tokio::test(start_paused = true)]
async fn the_callers_deadline_ends_with_its_answer_and_the_resolvers_holds() {
    let host = Host::new();
    let hurried = host.turn_with(TurnOptions::default().deadline(Duration::from_secs(2)));
    let works = || ToolCall::new("call_1", "work", json!({"after": 5}));
    let waiting = suspended(&hurried, works()).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(done(approve(&host.turn(), &waiting).await).text(), "removed build");

    let waiting = suspended(&host.turn(), works()).await;
    let hurried = host.turn_with(TurnOptions::default().deadline(Duration::from_secs(2)));
    let result = done(approve(&hurried, &waiting).await);
    assert_eq!(result.error_kind(), Some(ErrorKind::Timeout));
    assert!(result.text().contains("deadline"), "{}", result.text());
}

#[tokio::test(start_paused = true)]
async fn a_waiting_tool_lends_its_permit_and_waits_until_it_has_it_back() {
    let host = Host::new();
    let turn = host.turn();
    let works = |id: &str| ToolCall::new(id, "work", json!({"before": 3, "after": 3}));
    let first = suspended(&turn, works("1")).await;
    // The only permit is free: the second one comes as far as the first.
    let second = suspended(&turn, works("2")).await;
    let one = Box::pin(approve(&turn, &first));
    let two = Box::pin(approve(&turn, &second));
    let both = futures_util::future::join(one, two).await;
    assert_eq!(done(both.0).text(), "removed build");
    assert_eq!(done(both.1).text(), "removed build");
    assert_eq!(Counts::of(&host.counts.most_working), 1);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_runs_alone_holds_up_nobody_while_it_waits() {
    let host = Host::new();
    let turn = host.turn();
    let calls = vec![
        ToolCall::new("1", "wraps_alone", "{}"),
        ToolCall::new("2", "note", "{}"),
        ToolCall::new("3", "gives_up", "{}"),
    ];
    let answers = tokio::time::timeout(Duration::from_secs(60), turn.start_batch(calls)).await;
    let mut answers = answers.expect("nobody waits for a decision").into_iter();
    let waiting = waits(answers.next().expect("three"));
    assert!(done(answers.next().expect("three")).is_success());
    assert!(done(approve(&turn, &waiting).await).text().ends_with("removed build"));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_decides_on_is_denied_in_time_and_its_tool_goes_on() {
    let host = Host::new();
    let turn = host.turn();
    let waiting = suspended(&turn, call("clean")).await;
    tokio::time::sleep(Duration::from_secs(700)).await;
    let result = outcome(&turn, &waiting).await;
    assert!(result.is_success());
    assert!(result.text().contains("nobody approved the call"), "{}", result.text());
    host.settles().await;
}

#[tokio::test]
async fn a_cancelled_call_ends_the_tools_that_led_to_it() {
    let host = Host::new();
    let turn = host.turn();
    let waiting = suspended(&turn, call("clean")).await;
    let result = done(resolve(&turn, &waiting, Resolution::Cancel).await);
    assert_eq!(result.error_kind(), Some(ErrorKind::Cancelled), "{}", result.text());
    assert_eq!(Counts::of(&host.counts.over), 1);
    assert!(host.kept().await.is_empty());
}

#[tokio::test]
async fn a_turn_that_is_cancelled_leaves_nothing_that_waits() {
    let host = Host::new();
    let turn = host.turn();
    let waiting = suspended(&turn, call("clean")).await;
    turn.cancel();
    let result = outcome(&host.turn(), &waiting).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::Cancelled));
    host.settles().await;
    assert_eq!(Counts::of(&host.counts.over), 1);
    assert_eq!(Counts::of(&host.counts.removed), 0);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_waits_no_longer_takes_its_question_back() {
    let host = Host::new();
    let turn = host.turn();
    let waiting = suspended(&turn, call("gives_up")).await;
    let result = outcome(&turn, &waiting).await;
    assert_eq!(result.text(), "gave up");
    host.settles().await;
    let late = turn.resolve(waiting.id(), Decision::approve().into()).await;
    assert!(matches!(late, Err(RedeemError::AlreadyResolved(_))), "{late:?}");
}

#[tokio::test]
async fn whoever_resolves_and_goes_away_ends_the_call() {
    let host = Host::new();
    let turn = host.turn();
    let arguments = json!({"after": 3600});
    let waiting = suspended(&turn, ToolCall::new("call_1", "work", arguments)).await;
    let limit = Duration::from_millis(100);
    let gone = tokio::time::timeout(limit, approve(&turn, &waiting)).await;
    assert!(gone.is_err(), "it works for an hour");
    while turn.outcome(waiting.id()).await.expect("it is in memory").is_none() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let result = outcome(&turn, &waiting).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::Cancelled));
    let statistics = host.executor.statistics().snapshot();
    assert!(statistics.iter().all(|one| one.in_flight == 0), "{statistics:?}");
}

#[tokio::test]
async fn a_tool_that_changes_while_its_call_waits_is_not_run() {
    let host = Host::new();
    let turn = host.turn();
    let waiting = suspended(&turn, call("clean")).await;
    let mut next = toolcrib_core::RegistryBuilder::new();
    let body = tool_fn(|_: Value, _| async { "something else" });
    let _ = next.register(entry(define("remove").approval(Approval::Always), body));
    host.executor.registry().publish(next.build());
    let result = done(approve(&host.turn(), &waiting).await);
    assert!(result.text().contains("the tool changed"), "{}", result.text());
    assert_eq!(Counts::of(&host.counts.removed), 0);
}

#[tokio::test]
async fn shutting_down_ends_a_waiting_call_at_once_and_its_tool_can_say_so() {
    let host = Host::new();
    let waiting = suspended(&host.turn(), call("clean")).await;
    let grace = Duration::from_secs(60);
    let report = tokio::time::timeout(Duration::from_secs(5), host.executor.shutdown(grace)).await;
    assert_eq!(report.expect("nobody waits for a decision").cancelled, 0);
    let result = outcome(&host.turn(), &waiting).await;
    assert!(result.text().contains("noted 1; "), "{}", result.text());
    assert!(result.text().contains("shutting down"), "{}", result.text());
    host.settles().await;
}

#[tokio::test]
async fn a_call_that_can_be_made_again_waits_over_a_restart() {
    let host = Host::new();
    let waiting = suspended(&host.turn(), call("clean_again")).await;
    host.executor.shutdown(Duration::from_secs(60)).await;
    let host = host.restarted();
    assert_eq!(host.kept().await.len(), 1);
    let result = done(approve(&host.turn(), &waiting).await);
    assert_eq!(result.text(), "noted 1; removed build", "what it had noted is not noted again");
    assert_eq!(Counts::of(&host.counts.noted), 1);
    assert_eq!((Counts::of(&host.counts.begun), Counts::of(&host.counts.removed)), (2, 1));
}

#[tokio::test]
async fn a_record_of_a_call_within_others_is_written_and_read() {
    let host = Host::new();
    let waiting = suspended(&host.turn(), call("clean_again")).await;
    let text = serde_json::to_string(&waiting).expect("JSON");
    assert_eq!(serde_json::from_str::<Suspension>(&text).expect("it was written"), waiting);
}

/// A host whose process was killed while a call waited.
async fn killed(tool: &str) -> (Host, Suspension) {
    let host = Host::new();
    let waiting = suspended(&host.turn(), call(tool)).await;
    // Nothing of the first process goes on; its row is all that there is.
    let store = Arc::new(MemorySuspensions::new());
    store.put(&waiting).await.expect("there is room");
    (Host::over(store, Arc::default(), |builder| builder), waiting)
}

#[tokio::test]
async fn after_a_restart_nobody_knows_what_a_tool_had_done_that_cannot_be_run_again() {
    let (host, waiting) = killed("clean").await;
    let approvals = host.executor.approvals(TurnOptions::default());
    assert!(approvals.list().await.expect("in memory").is_empty(), "nobody is asked for nothing");
    let result = done(approve(&host.turn(), &waiting).await);
    assert_eq!((result.call_id().as_str(), result.tool()), ("call_1", "clean"));
    assert_eq!(result.error_kind(), Some(ErrorKind::OutcomeUnknown));
    assert!(result.text().contains("`remove` was not run"), "{}", result.text());
    assert_eq!((Counts::of(&host.counts.begun), Counts::of(&host.counts.removed)), (0, 0));
}

#[tokio::test]
async fn a_run_says_after_a_restart_what_is_not_known() {
    let host = Host::new();
    let run = Run::start(&host.turn(), vec![call("clean")]).await.expect("randomness");
    let (record, waiting) = (run.record().clone(), run.outstanding().next().cloned());
    let store = Arc::new(MemorySuspensions::new());
    store.put(&waiting.expect("one waits")).await.expect("there is room");
    let host = Host::over(store, Arc::default(), |builder| builder);
    let mut run = Run::from_record(record);
    run.expire(&host.turn()).await.expect("in memory");
    let results = run.results().expect("it is over");
    assert_eq!(results[0].error_kind(), Some(ErrorKind::OutcomeUnknown));
    assert_eq!(results[0].tool(), "clean");
    assert!(host.kept().await.is_empty());
}

#[tokio::test]
async fn two_equal_calls_that_share_an_answer_do_not_wait_for_each_others_decision() {
    let host = Host::new();
    let turn = host.turn();
    let starts = [turn.start(call("clean_kept")), turn.start(call("clean_kept"))];
    let both = futures_util::future::join_all(starts);
    let both = tokio::time::timeout(Duration::from_secs(5), both).await.expect("both are told");
    for answer in both {
        assert!(done(approve(&turn, &waits(answer)).await).text().ends_with("removed build"));
    }
    assert_eq!(Counts::of(&host.counts.removed), 2);
    // An answer that a person had to let through is not kept for others.
    suspended(&turn, call("clean_kept")).await;
}

#[tokio::test]
async fn the_same_call_made_again_joins_the_one_at_work() {
    let host = Host::new();
    let turn = || host.turn_with(TurnOptions::default().joinable(true).client("mobile"));
    let waiting = suspended(&turn(), call("clean")).await;
    let again = turn();
    let joined = suspended(&again, ToolCall::new("call_2", "clean", "{}")).await;
    assert_eq!(joined.id(), waiting.id());
    assert_eq!(again.same_call(&joined).await.expect("in memory"), Some(waiting.clone()));
    let other = suspended(&turn(), ToolCall::new("call_3", "clean", json!({"x": 1}))).await;
    assert_ne!(other.id(), waiting.id());
    assert_eq!(Counts::of(&host.counts.begun), 2);

    let approvals = host.executor.approvals(TurnOptions::default());
    let decided = approvals.decide(waiting.id(), Decision::approve()).await.expect("it holds");
    decided.outcome(Duration::from_secs(5)).await.expect("it is done");
    let result = done(turn().start(call("clean")).await);
    assert_eq!(result.text(), "noted 1; removed build");
    assert_eq!(Counts::of(&host.counts.begun), 2, "it was not begun again");
    // Its answer was taken: from now on it is a call of its own.
    suspended(&turn(), call("clean")).await;
    assert_eq!(Counts::of(&host.counts.begun), 3);
}

#[tokio::test]
async fn a_client_that_was_revoked_has_its_waiting_tools_ended() {
    struct Revoked;
    impl CallerRights for Revoked {
        fn standing(&self, _: &Caller) -> Standing {
            Standing::Revoked { reason: "its token is gone".to_owned() }
        }
    }
    let host = Host::new();
    let waiting =
        suspended(&host.turn_with(TurnOptions::default().client("mobile")), call("clean")).await;
    let rights = Arc::new(Revoked);
    host.executor.add_caller_rights(&rights);
    let result = done(approve(&host.turn(), &waiting).await);
    assert_eq!(result.error_kind(), Some(ErrorKind::Denied));
    assert!(result.text().contains("its token is gone"), "{}", result.text());
    assert_eq!((Counts::of(&host.counts.over), Counts::of(&host.counts.removed)), (1, 0));
}

#[tokio::test]
async fn one_identity_holds_no_more_than_its_share_of_waiting_tools() {
    let host = Host::with(|builder| builder.config(ExecutorConfig::default()));
    let turn = host.turn();
    for _ in 0..100 {
        suspended(&turn, call("clean")).await;
    }
    let result = done(turn.start(call("clean")).await);
    assert!(result.text().contains("at work and wait"), "{}", result.text());
    let values = ContextValues::new().with("user", "bob");
    let bob = host.executor.turn(TurnOptions::default().values(values));
    suspended(&bob, call("clean")).await;
}

#[tokio::test]
async fn what_became_of_a_call_that_waits_again_is_found_by_whoever_waits() {
    let host = Host::new();
    let turn = host.turn();
    let first = suspended(&turn, call("both")).await;
    let approvals = host.executor.approvals(TurnOptions::default());
    let decided = approvals.decide(first.id(), Decision::approve()).await.expect("it holds");
    let settled = decided.outcome(Duration::from_secs(5)).await.expect("it waits again");
    let Outcome::Waits(second) = settled.outcome() else { panic!("{settled:?}") };
    assert_eq!(done(approve(&turn, second).await).text(), "removed one, removed two");
}
