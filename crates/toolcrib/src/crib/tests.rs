//! Tests of cribs: what a crib does with the parts that its host gives it.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use toolcrib_core::approval::{ApprovalRequest, Decision};
use toolcrib_core::audit::{AuditRecord, AuditSink, AuditTrail};
use toolcrib_core::masking::Mask;
use toolcrib_core::policy::{OnAsk, Policy, PolicyRule};
use toolcrib_core::{
    Change, ExecutorConfig, OnDuplicate, RegistryError, SourceUnit, ToolFilter, Toolset, after,
    before,
};
use toolcrib_tool::{
    CallContext, ErrorKind, Layer, Services, Source, Tool, ToolCall, ToolDefinition, ToolEntry,
    ToolResult, tool_fn,
};

use super::{BuildError, Toolcrib};

fn from(layer: Layer, unit: &str, name: &str, body: impl Tool) -> ToolEntry {
    let definition = ToolDefinition::builder(name).description("A tool for a test.").build();
    ToolEntry::new(definition.expect("valid"), Arc::new(body), Source::new(layer, unit))
}

fn host(name: &str, body: impl Tool) -> ToolEntry {
    from(Layer::Host, "test", name, body)
}

fn says(text: &'static str) -> impl Tool {
    tool_fn(move |_: Value, _| async move { text })
}

async fn call(crib: &Toolcrib, name: &str) -> ToolResult {
    crib.turn().call(ToolCall::new("1", name, "{}")).await
}

fn names(crib: &Toolcrib) -> Vec<String> {
    crib.turn().definitions().iter().map(|definition| definition.name().to_owned()).collect()
}

fn short_outputs() -> ExecutorConfig {
    let mut config = ExecutorConfig::default();
    config.output_chars = 10;
    config
}

#[tokio::test]
async fn what_is_cut_can_be_read_unless_the_host_wants_none_of_it() {
    let story = || host("story", says("a story that is longer than ten"));
    let builder = || Toolcrib::builder().executor(short_outputs()).entry(story());

    let crib = builder().build().expect("a crib");
    assert_eq!(names(&crib), ["read_output", "story"]);
    assert!(call(&crib, "story").await.text().contains("read_output"));

    let without = builder().no_spill().build().expect("a crib");
    assert_eq!(names(&without), ["story"]);
    let cut = call(&without, "story").await;
    assert!(cut.truncated() && !cut.text().contains("read_output"), "{}", cut.text());
}

#[tokio::test]
async fn a_host_that_owns_read_output_keeps_it_and_nobody_else_can_have_it() {
    let own = || host("read_output", says("the host's"));
    let strict = Toolcrib::builder().on_duplicate(OnDuplicate::Error);
    let crib = strict.entry(own()).build().expect("nothing is declared twice");
    assert_eq!(call(&crib, "read_output").await.text(), "the host's");

    let thief = from(Layer::Manifest, "tools.d/a.yaml", "read_output", says("mine now"));
    let crib = Toolcrib::builder().entry(thief).build().expect("a crib");
    assert_eq!(crib.executor().registry().snapshot().conflicts().len(), 1);
    assert_ne!(call(&crib, "read_output").await.text(), "mine now");
}

#[test]
fn a_name_that_is_declared_twice_is_an_error_where_that_is_wanted() {
    let two = || {
        let one = from(Layer::Manifest, "a.yaml", "t", says("one"));
        Toolcrib::builder().entry(one).entry(from(Layer::Manifest, "b.yaml", "t", says("two")))
    };
    assert!(two().build().is_ok());
    let error = two().on_duplicate(OnDuplicate::Error).build().expect_err("it is refused");
    assert!(matches!(error, BuildError::Registry(_)));
    let said = error.to_string();
    assert!(said.contains("a.yaml") && said.contains("b.yaml"), "{said}");

    // The setting applies to later changes too.
    let strict = Toolcrib::builder().on_duplicate(OnDuplicate::Error);
    let crib = strict.entry(host("t", says("one"))).build().expect("nothing is declared twice");
    let unit = SourceUnit::new(Layer::Manifest, "b.yaml");
    let entries = vec![from(Layer::Manifest, "b.yaml", "t", says("two"))];
    let applied = crib.executor().registry().apply([Change::Replace { unit, entries }]);
    assert!(matches!(applied, Err(RegistryError::Duplicates { .. })), "{applied:?}");
}

#[tokio::test]
async fn only_who_is_named_takes_the_place_of_a_fallback() {
    let builder = || {
        Toolcrib::builder()
            .entry(from(Layer::Fallback, "system", "new_task", says("the system's")))
            .entry(from(Layer::Manifest, "own.yaml", "new_task", says("my own")))
    };
    let crib = builder().build().expect("a crib");
    assert_eq!(call(&crib, "new_task").await.text(), "the system's");
    let crib = builder().allow_override(["own.yaml:new_task"]).build().expect("a crib");
    assert_eq!(call(&crib, "new_task").await.text(), "my own");

    let other = from(Layer::Fallback, "system", "bash", says("no"));
    let error = Toolcrib::builder().entry(other).build().expect_err("it is no fallback");
    assert!(matches!(error, BuildError::Refused { .. }), "{error}");
}

#[tokio::test]
async fn policy_and_approver_decide_and_without_anybody_to_ask_it_is_denied() {
    let policy = || {
        let rules = [PolicyRule::deny().tool("rm").message("never"), PolicyRule::ask().tool("mv")];
        Policy::new(OnAsk::Wait, rules).expect("valid")
    };
    let builder = || {
        let tools = ["rm", "mv", "ls"].map(|name| host(name, says("done")));
        Toolcrib::builder().policy(policy()).entries(tools)
    };
    let alone = builder().build().expect("a crib");
    assert_eq!(call(&alone, "mv").await.error_kind(), Some(ErrorKind::Denied));

    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let approver = Arc::new(move |_: &ApprovalRequest| {
        count.fetch_add(1, Ordering::SeqCst);
        Decision::approve()
    });
    let crib = builder().approver(approver).build().expect("a crib");
    assert_eq!(call(&crib, "mv").await.text(), "done");
    assert_eq!(call(&crib, "ls").await.text(), "done");
    assert!(call(&crib, "rm").await.text().contains("never"));
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_toolset_is_all_there_is_in_its_turns() {
    let reader = Toolset::new().include(ToolFilter::new().name("read_*"));
    let crib = Toolcrib::builder()
        .entries(["read_file", "remove_file"].map(|name| host(name, says("done"))))
        .toolset("reader", reader)
        .build()
        .expect("a crib");
    let turn = crib.turn_in("reader").expect("it is there");
    let refused = turn.call(ToolCall::new("1", "remove_file", "{}")).await;
    assert_eq!(refused.error_kind(), Some(ErrorKind::NotFound));
    assert_eq!(turn.call(ToolCall::new("2", "read_file", "{}")).await.text(), "done");
    assert_eq!(crib.toolsets().into_keys().collect::<Vec<_>>(), ["reader"]);
    assert!(crib.turn_in("writer").is_err());
}

#[tokio::test]
async fn services_reach_the_tools_of_every_turn() {
    struct NameArguments(&'static str);

    let greet = tool_fn(|_: Value, cx: CallContext| async move {
        cx.service::<NameArguments>().map_or("nobody", |name| name.0)
    });
    let crib = Toolcrib::builder()
        .services(Services::new().with(Arc::new(NameArguments("Ada"))))
        .toolset("all", Toolset::new())
        .entry(host("greet", greet))
        .build()
        .expect("a crib");
    assert_eq!(call(&crib, "greet").await.text(), "Ada");
    let turn = crib.turn_in("all").expect("it is there");
    assert_eq!(turn.call(ToolCall::new("1", "greet", "{}")).await.text(), "Ada");
}

#[tokio::test]
async fn secrets_are_masked_and_every_call_is_audited() {
    #[derive(Default)]
    struct RecordingSink(Mutex<Vec<AuditRecord>>);

    impl AuditSink for RecordingSink {
        fn record(&self, record: &AuditRecord) {
            self.0.lock().expect("nobody panicked").push(record.clone());
        }
    }

    let kept = Arc::new(RecordingSink::default());
    let crib = Toolcrib::builder()
        .mask(Mask::new(["hunter2-secret".to_owned()]).expect("one secret"))
        .audit(AuditTrail::new(Arc::clone(&kept) as _))
        .entry(host("leak", says("the password is hunter2-secret")))
        .build()
        .expect("a crib");
    assert_eq!(call(&crib, "leak").await.text(), "the password is [masked]");
    call(&crib, "absent").await;
    let records = kept.0.lock().expect("nobody panicked");
    let outcomes: Vec<_> = records.iter().map(|record| record.outcome.as_str()).collect();
    assert_eq!(outcomes, ["success", "not_found"]);
}

#[tokio::test]
async fn the_first_middleware_is_the_outermost() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let note = |name: &'static str| {
        let seen = Arc::clone(&seen);
        move || seen.lock().expect("nobody panicked").push(name)
    };
    let (outer, inner, last) = (note("outer"), note("inner"), note("last"));
    let crib = Toolcrib::builder()
        .middleware(after(move |_, _: &mut ToolResult| last()))
        .middleware(before(move |_, _| {
            outer();
            ControlFlow::Continue(())
        }))
        .middleware(before(move |_, _| {
            inner();
            ControlFlow::Continue(())
        }))
        .entry(host("t", says("done")))
        .build()
        .expect("a crib");
    assert_eq!(call(&crib, "t").await.text(), "done");
    assert_eq!(*seen.lock().expect("nobody panicked"), ["outer", "inner", "last"]);
}

#[cfg(all(unix, feature = "store"))]
mod waiting {
    use toolcrib_core::clock::{Clock, Timestamp};
    use toolcrib_core::run::{Run, RunState, RunStore as _};
    use toolcrib_core::suspension::{RedeemError, Suspension};
    use toolcrib_core::{Answer, Turn};
    use toolcrib_tool::ContextValues;

    use super::*;
    use crate::stores::StateDir;

    /// A clock that never advances.
    struct FixedClock(u64);

    impl Clock for FixedClock {
        fn now(&self) -> Timestamp {
            Timestamp::from_unix_millis(self.0)
        }
    }

    /// A second crib over the same directory, like that of another process.
    fn process(dir: &std::path::Path, runs: &Arc<AtomicUsize>, now: u64) -> Toolcrib {
        let state = StateDir::open(dir).expect("it is ours");
        let runs = Arc::clone(runs);
        let remove = tool_fn(move |_: Value, _| {
            runs.fetch_add(1, Ordering::SeqCst);
            async { "removed" }
        });
        let ask = Policy::new(OnAsk::Wait, [PolicyRule::ask().tool("remove")]);
        Toolcrib::builder()
            .policy(ask.expect("valid"))
            .suspensions(Arc::new(state.suspensions().expect("it is ours")))
            .runs(Arc::new(state.runs().expect("it is ours")))
            .clock(Arc::new(FixedClock(now)))
            .context(ContextValues::new().with("user", "ada"))
            .entry(host("remove", remove))
            .build()
            .expect("a crib")
    }

    async fn suspended(turn: &Turn) -> Suspension {
        match turn.start(ToolCall::new("1", "remove", "{}")).await {
            Answer::Suspended(suspension) => *suspension,
            Answer::Done(result) => panic!("it does not wait: {}", result.text()),
        }
    }

    /// A turn with the right to approve.
    fn approving(crib: &Toolcrib) -> Turn {
        crib.executor().turn(crib.turn_options().may_approve(true))
    }

    #[tokio::test]
    async fn a_call_that_waits_in_a_file_goes_on_in_another_process_once() {
        let home = tempfile::tempdir().expect("there is room");
        let dir = home.path().join("state");
        let runs = Arc::new(AtomicUsize::new(0));
        let suspension = suspended(&process(&dir, &runs, 0).turn()).await;
        assert_eq!(runs.load(Ordering::SeqCst), 0);

        let other = process(&dir, &runs, 1000);
        let answer = approving(&other).resolve(suspension.id(), Decision::approve().into()).await;
        let Ok(Answer::Done(result)) = answer else { panic!("it is not done: {answer:?}") };
        assert_eq!(result.text(), "removed");
        let again = approving(&process(&dir, &runs, 2000));
        let again = again.resolve(suspension.id(), Decision::approve().into()).await;
        assert!(matches!(again, Err(RedeemError::AlreadyResolved(_))), "{again:?}");
        assert_eq!(runs.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn a_decision_that_comes_too_late_runs_nothing() {
        let home = tempfile::tempdir().expect("there is room");
        let dir = home.path().join("state");
        let runs = Arc::new(AtomicUsize::new(0));
        let suspension = suspended(&process(&dir, &runs, 0).turn()).await;
        let late = approving(&process(&dir, &runs, 600_001));
        let answer = late.resolve(suspension.id(), Decision::approve().into()).await;
        assert!(
            !matches!(answer, Ok(Answer::Done(ref result)) if result.is_success()),
            "{answer:?}"
        );
        assert_eq!(runs.load(Ordering::SeqCst), 0);
    }

    #[tokio::test]
    async fn a_run_that_was_saved_is_finished_by_another_process() {
        let home = tempfile::tempdir().expect("there is room");
        let dir = home.path().join("state");
        let runs = Arc::new(AtomicUsize::new(0));
        let first = process(&dir, &runs, 0);
        let calls = vec![ToolCall::new("1", "remove", "{}")];
        let mut run = Run::start(&first.turn(), calls).await.expect("there is randomness");
        assert_eq!(run.state(), RunState::RequiresAction);
        run.save(first.runs().expect("it has some").as_ref()).await.expect("there is room");

        let other = process(&dir, &runs, 1000);
        let record = other.runs().expect("it has some").load(run.id()).await.expect("it works");
        let mut run = Run::from_record(record.expect("it was saved"));
        let waiting = run.outstanding().next().expect("one waits").id().clone();
        let approve = Decision::approve().into();
        run.resolve(&approving(&other), &waiting, approve).await.expect("it waits");
        assert_eq!(run.results().expect("all are answered")[0].text(), "removed");
    }
}

/// A tool whose description counts how often it was requested.
struct CountingStore(Arc<AtomicUsize>);

impl Tool for CountingStore {
    fn call<'a>(
        &'a self,
        _: toolcrib_tool::Arguments,
        _: &'a CallContext,
    ) -> toolcrib_tool::BoxFuture<'a, Result<toolcrib_tool::ToolOutcome, toolcrib_tool::ToolError>>
    {
        Box::pin(async { Ok("done".into()) })
    }

    fn refresh<'a>(
        &'a self,
        current: &'a ToolDefinition,
    ) -> toolcrib_tool::BoxFuture<'a, Result<Option<ToolDefinition>, toolcrib_tool::ToolError>>
    {
        let asked = self.0.fetch_add(1, Ordering::SeqCst) + 1;
        Box::pin(async move {
            let description = format!("Asked {asked} times.");
            Ok(Some(current.to_builder().description(description).build()?))
        })
    }
}

fn counting() -> (Arc<AtomicUsize>, ToolEntry) {
    let asked = Arc::<AtomicUsize>::default();
    let definition = ToolDefinition::builder("counting")
        .description("Never asked.")
        .refresh_every(std::time::Duration::from_millis(200))
        .build()
        .expect("valid");
    let body = Arc::new(CountingStore(Arc::clone(&asked)));
    (asked, ToolEntry::new(definition, body, Source::new(Layer::Host, "test")))
}

#[tokio::test(start_paused = true)]
async fn tools_are_refreshed_from_the_first_moment_to_the_end_of_the_crib() {
    let (asked, entry) = counting();
    let crib = Toolcrib::builder().entry(entry).build().expect("a crib");
    tokio::time::sleep(std::time::Duration::from_millis(1_500)).await;
    let so_far = asked.load(Ordering::SeqCst);
    assert!((5..=8).contains(&so_far), "{so_far}");
    let described = crib.turn().describe("counting").expect("it is there").description().to_owned();
    assert_eq!(described, format!("Asked {so_far} times."));

    crib.shutdown(std::time::Duration::ZERO).await;
    drop(crib.turn_options());
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    assert_eq!(asked.load(Ordering::SeqCst), so_far);
}

#[test]
fn a_crib_that_was_built_outside_a_runtime_refreshes_from_its_first_turn_on() {
    let (asked, entry) = counting();
    let crib = Toolcrib::builder().entry(entry).build().expect("a crib");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        drop(crib.turn());
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        assert!(asked.load(Ordering::SeqCst) > 2);
        drop(crib);
        let so_far = asked.load(Ordering::SeqCst);
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        assert_eq!(asked.load(Ordering::SeqCst), so_far);
    });
}

#[tokio::test(start_paused = true)]
async fn watchers_hear_of_calls_and_of_tools_that_pause() {
    use toolcrib_core::events::Payload;

    let slow = tool_fn(|_: Value, _| std::future::pending::<String>());
    let crib = Toolcrib::builder()
        .entry(host("quick", says("done")))
        .entry(host("slow", slow))
        .build()
        .expect("a crib");
    let mut events = crib.executor().events().expect("a bus").subscribe();
    call(&crib, "quick").await;
    for _ in 0..3 {
        call(&crib, "slow").await;
    }
    let mut results = Vec::new();
    let paused = loop {
        match events.next().await.expect("an event").payload() {
            Payload::Completed(completion) => results.push(completion.result.clone()),
            Payload::Paused { tool, .. } => break tool.clone(),
            _ => {}
        }
    };
    assert_eq!(paused, "slow");
    assert_eq!(results[0].as_deref(), Some(&serde_json::json!({"output": "done"})));
}
