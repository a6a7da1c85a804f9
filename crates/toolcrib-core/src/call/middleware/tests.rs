//! What middleware may do to a call, and what it cannot.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use toolcrib_tool::{
    BoxFuture, CallId, ErrorKind, Layer, Source, ToolCall, ToolDefinition, ToolEntry, ToolError,
    ToolResult, tool_fn,
};

use super::{Middleware, Next, Stack, after, before};
use crate::admission::Lineage;
use crate::call::pipeline;
use crate::call::pipeline::Origin;
use crate::{Executor, ExecutorConfig, Registry, RegistryBuilder, Turn, TurnOptions};

type Log = Arc<Mutex<Vec<String>>>;

fn turn() -> Turn {
    let definition = ToolDefinition::builder("double")
        .description("Double a number.")
        .input_schema(serde_json::json!({
            "properties": {"n": {"type": "integer"}},
            "required": ["n"],
        }))
        .build()
        .unwrap();
    let body =
        tool_fn(|args: Value, _| async move { (args["n"].as_i64().unwrap() * 2).to_string() });
    let mut builder = RegistryBuilder::new();
    let _ = builder.register(ToolEntry::new(
        definition,
        Arc::new(body),
        Source::new(Layer::Host, "test"),
    ));
    Executor::new(Registry::new(builder.build()), ExecutorConfig::default())
        .turn(TurnOptions::default())
}

/// A call as the pipeline will make it.
async fn through(stack: &Stack, turn: &Turn, call: ToolCall) -> ToolResult {
    let lineage = Lineage::root(Arc::default(), Arc::default());
    let origin = Origin::alone(&lineage);
    let innermost = |call| -> BoxFuture<'_, ToolResult> {
        Box::pin(async move { pipeline::run(turn, call, origin).await.result })
    };
    stack.run(turn, call, &innermost).await
}

fn with(middleware: impl Middleware) -> Stack {
    let mut stack = Stack::default();
    stack.push(middleware);
    stack
}

fn four() -> ToolCall {
    ToolCall::new("c1", "double", r#"{"n": 4}"#)
}

/// Writes down when it is passed, inwards and outwards.
struct Noted(&'static str, Log);

impl Middleware for Noted {
    fn around<'a>(
        &'a self,
        _: &'a Turn,
        call: ToolCall,
        next: Next<'a>,
    ) -> BoxFuture<'a, ToolResult> {
        Box::pin(async move {
            self.1.lock().unwrap().push(format!("into {}", self.0));
            let result = next.run(call).await;
            self.1.lock().unwrap().push(format!("out of {}", self.0));
            result
        })
    }
}

#[tokio::test]
async fn answers_pass_in_reverse_order() {
    let log = Log::default();
    let (a, b) = (Noted("a", Arc::clone(&log)), Noted("b", Arc::clone(&log)));
    let mut stack = with(a);
    stack.push(b);
    assert_eq!(through(&stack, &turn(), four()).await.text(), "8");
    assert_eq!(*log.lock().unwrap(), ["into a", "into b", "out of b", "out of a"]);
}

#[tokio::test]
async fn rewritten_arguments_are_validated_like_any_other() {
    let rewritten = |arguments: &'static str| {
        with(before(move |_, call| {
            *call = call.clone().with_arguments(arguments);
            ControlFlow::Continue(())
        }))
    };
    let turn = turn();
    assert_eq!(through(&rewritten(r#"{"n": 5}"#), &turn, four()).await.text(), "10");
    let refused = through(&rewritten(r#"{"n": "many"}"#), &turn, four()).await;
    assert_eq!(refused.error_kind(), Some(ErrorKind::InvalidArgs));
}

#[tokio::test]
async fn a_call_can_be_answered_or_refused_without_running() {
    let turn = turn();
    let answered = with(before(|_, _| ControlFlow::Break(Ok("from elsewhere".into()))));
    let result = through(&answered, &turn, four()).await;
    assert_eq!((result.text().as_ref(), result.call_id().as_str()), ("from elsewhere", "c1"));

    let refused = with(before(|_, _| ControlFlow::Break(Err(ToolError::denied("not today")))));
    let result = through(&refused, &turn, four()).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::Denied));
}

#[tokio::test]
async fn answers_can_be_changed() {
    let shouted = with(after(|_, result| {
        let (id, name) = (result.call_id().clone(), result.tool().to_owned());
        let text = format!("{}!", result.text());
        *result = ToolResult::success(id, name, text.into(), result.duration());
    }));
    assert_eq!(through(&shouted, &turn(), four()).await.text(), "8!");
}

/// Does with ids what must not be done.
struct Confused;

impl Middleware for Confused {
    fn around<'a>(
        &'a self,
        _: &'a Turn,
        call: ToolCall,
        next: Next<'a>,
    ) -> BoxFuture<'a, ToolResult> {
        Box::pin(async move {
            let inner = next.clone().run(call.clone().with_id(CallId::new("other"))).await;
            assert_eq!(inner.call_id().as_str(), "c1");
            next.run(call).await.with_call_id(CallId::new("another"))
        })
    }
}

#[tokio::test]
async fn the_answer_has_the_id_of_the_call_whatever_happens() {
    let result = through(&with(Confused), &turn(), four()).await;
    assert_eq!((result.call_id().as_str(), result.text().as_ref()), ("c1", "8"));
}

/// Panics before it has a future to give.
struct Broken;

impl Middleware for Broken {
    fn around<'a>(&'a self, _: &'a Turn, _: ToolCall, _: Next<'a>) -> BoxFuture<'a, ToolResult> {
        panic!("no")
    }
}

#[tokio::test]
async fn a_middleware_that_panics_fails_the_call_and_the_outer_ones_see_it() {
    let log = Log::default();
    let outer = Noted("outer", Arc::clone(&log));
    let mut stack = with(outer);
    stack.push(Broken);
    let result = through(&stack, &turn(), four()).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::Internal));
    assert_eq!(result.call_id().as_str(), "c1");
    assert!(!result.text().contains("no\n"), "what it said is for the operator");
    assert_eq!(*log.lock().unwrap(), ["into outer", "out of outer"]);

    let late = with(after(|_, _| panic!("late")));
    let result = through(&late, &turn(), four()).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::Internal));
    assert!(result.duration() < Duration::from_secs(60));
}
