//! A tool's nested call waits in one of two servers over one database. The tool resumes where it is running or, once
//! that server has ended, where it is started again; and it ends once.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;
use toolcrib_core::approval::{Approvals, DecideError, Decision};
use toolcrib_core::suspension::{Answer, RedeemError, Resolution, Suspension};
use toolcrib_core::{Executor, Registration, Registry, RegistryBuilder, Turn, TurnOptions};
use toolcrib_store::{Database, Suspensions};
use toolcrib_tool::{
    Approval, CallContext, ErrorKind, Layer, Source, ToolCall, ToolDefinition, ToolEntry, tool_fn,
};

/// Counts of events in all servers.
#[derive(Default)]
struct Counts {
    begun: AtomicUsize,
    ended: AtomicUsize,
    removed: AtomicUsize,
}

impl Counts {
    /// Started and finished parents, and nested calls that ran.
    fn all(&self) -> (usize, usize, usize) {
        let count = |count: &AtomicUsize| count.load(Ordering::SeqCst);
        (count(&self.begun), count(&self.ended), count(&self.removed))
    }
}

fn server(home: &Path, counts: &Arc<Counts>) -> Executor {
    let database = Database::open(home).expect("it is ours");
    let define = |name: &str| ToolDefinition::builder(name).description("A tool.");
    let source = || Source::new(Layer::Host, "test");
    let counted = Arc::clone(counts);
    let remove = tool_fn(move |_: Value, _| {
        counted.removed.fetch_add(1, Ordering::SeqCst);
        async { "removed" }
    });
    let parent = |definition: toolcrib_tool::ToolDefinitionBuilder| {
        let counts = Arc::clone(counts);
        let body = tool_fn(move |_: Value, cx: CallContext| {
            let counts = Arc::clone(&counts);
            async move {
                counts.begun.fetch_add(1, Ordering::SeqCst);
                let removed = cx.call(ToolCall::new("n", "remove", "{}")).await;
                counts.ended.fetch_add(1, Ordering::SeqCst);
                format!("cleaned: {}", removed.text())
            }
        });
        ToolEntry::new(definition.build().expect("a definition"), Arc::new(body), source())
    };
    let remove_definition = define("remove").approval(Approval::Always).build();
    let tools = [
        ToolEntry::new(remove_definition.expect("a definition"), Arc::new(remove), source()),
        parent(define("clean")),
        parent(define("clean_again").idempotent(true)),
    ];
    let mut registry = RegistryBuilder::new();
    for tool in tools {
        assert_eq!(registry.register(tool), Registration::Registered);
    }
    Executor::builder(Registry::new(registry.build()))
        .suspensions(Arc::new(Suspensions::new(&database)))
        .build()
}

fn turn(server: &Executor) -> Turn {
    server.turn(TurnOptions::default().may_approve(true))
}

fn approvals(server: &Executor) -> Approvals {
    turn(server).approvals().expect("it has the right")
}

async fn waiting(server: &Executor, tool: &str) -> Suspension {
    match turn(server).start(ToolCall::new("1", tool, "{}")).await {
        Answer::Suspended(waiting) => *waiting,
        Answer::Done(result) => panic!("it waits: {}", result.text()),
    }
}

#[tokio::test]
async fn a_tool_with_a_waiting_call_resumes_where_it_runs_and_ends_once() {
    for tool in ["clean", "clean_again"] {
        let home = tempfile::tempdir().expect("there is room");
        let counts = Arc::new(Counts::default());
        let (own, other) = (server(home.path(), &counts), server(home.path(), &counts));
        let call = waiting(&own, tool).await;

        // While its server lives, nobody else can resume, end or deny it.
        for decision in [Decision::approve(), Decision::Deny { message: "no".to_owned() }] {
            let refused = approvals(&other).decide(call.id(), decision).await;
            let Err(DecideError::Elsewhere { process }) = refused else { panic!("{refused:?}") };
            assert_eq!(process, std::process::id());
        }
        for resolution in [Decision::approve().into(), Resolution::Cancel] {
            let refused = turn(&other).resolve(call.id(), resolution).await;
            assert!(matches!(refused, Err(RedeemError::Elsewhere { .. })), "{refused:?}");
        }
        assert_eq!(counts.all(), (1, 0, 0), "{tool}");

        let decided = approvals(&own).decide(call.id(), Decision::approve()).await;
        // A caller that waits at the other server finds the outcome there.
        let awaited = turn(&other).wait_for_outcome(call.id(), Duration::from_secs(20)).await;
        let result = awaited.expect("it works").and_then(|settled| settled.result());
        assert_eq!(result.expect("it is done").text(), "cleaned: removed", "{tool}");
        decided.expect("it is its own").outcome(Duration::from_secs(20)).await;
        let late = approvals(&other).decide(call.id(), Decision::approve()).await;
        assert!(late.is_err(), "{late:?}");
        assert_eq!(counts.all(), (1, 1, 1), "{tool}");
    }
}

/// Approves a call of a server that has just ended, as soon as the other server has noticed that.
async fn approved_after(other: &Executor, call: &Suspension) -> toolcrib_tool::ToolResult {
    for _ in 0..500 {
        match turn(other).resolve(call.id(), Decision::approve().into()).await {
            Ok(Answer::Done(result)) => return result,
            Ok(Answer::Suspended(next)) => panic!("it waits again: {next:?}"),
            // The database's thread ends by itself.
            Err(RedeemError::Elsewhere { .. }) => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
    panic!("its server has not ended")
}

#[test]
fn a_tool_of_a_killed_server_restarts_elsewhere_if_allowed_and_ends_once() {
    for (tool, begun) in [("clean", 0), ("clean_again", 1)] {
        let home = tempfile::tempdir().expect("there is room");
        let counts = Arc::new(Counts::default());
        let killed = tokio::runtime::Runtime::new().expect("a runtime");
        let call = killed.block_on(async {
            let own = server(home.path(), &Arc::default());
            waiting(&own, tool).await
        });
        // When the runtime ends, everything that ran in it ends.
        killed.shutdown_timeout(Duration::from_secs(10));

        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let other = server(home.path(), &counts);
            let result = approved_after(&other, &call).await;
            if begun == 1 {
                assert_eq!(result.text(), "cleaned: removed");
            } else {
                assert_eq!(result.error_kind(), Some(ErrorKind::OutcomeUnknown));
                assert!(result.text().contains("`remove` was not run"), "{}", result.text());
            }
            assert_eq!(counts.all(), (begun, begun, begun), "{tool}");
            let late = turn(&other).resolve(call.id(), Decision::approve().into()).await;
            assert!(late.is_err(), "{late:?}");
            assert_eq!(counts.all(), (begun, begun, begun), "{tool}");
        });
    }
}
