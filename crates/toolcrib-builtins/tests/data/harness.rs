//! Calls a tool as the executor does: definition, validated arguments, context, body.

use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcrib_tool::{
    Arguments, CallContext, ErrorKind, NativeTool, ToolError, ToolOutcome, ToolOutput, native_tools,
};

pub(crate) fn find(name: &str) -> &'static NativeTool {
    let Some(tool) = native_tools().into_iter().find(|tool| tool.name == name) else {
        panic!("{name} is not linked in");
    };
    tool
}

pub(crate) fn context(name: &str) -> CallContext {
    let definition = (find(name).definition)().unwrap_or_else(|error| panic!("{name}: {error}"));
    CallContext::builder("call_1", definition).build()
}

pub(crate) fn call(name: &str, arguments: &Value) -> Result<ToolOutput, ToolError> {
    call_in(&context(name), arguments)
}

pub(crate) fn call_in(cx: &CallContext, arguments: &Value) -> Result<ToolOutput, ToolError> {
    let body = (find(cx.definition().name()).body)();
    let arguments = Arguments::from_validated(arguments.to_string());
    let mut future = body.call(arguments, cx);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(ToolOutcome::Done(output))) => Ok(output),
        Poll::Ready(Ok(other)) => panic!("not done: {other:?}"),
        Poll::Ready(Err(error)) => Err(error),
        Poll::Pending => panic!("the tool waits"),
    }
}

pub(crate) fn text(name: &str, arguments: &Value) -> String {
    match call(name, arguments) {
        Ok(output) => output.text().into_owned(),
        Err(error) => panic!("{name} {arguments}: {error:?}"),
    }
}

pub(crate) fn data(name: &str, arguments: &Value) -> Value {
    match call(name, arguments) {
        Ok(output) => output.data().cloned().unwrap_or(Value::Null),
        Err(error) => panic!("{name} {arguments}: {error:?}"),
    }
}

#[track_caller]
pub(crate) fn fails(name: &str, arguments: &Value, kind: ErrorKind, says: &str) {
    match call(name, arguments) {
        Ok(output) => panic!("{name} {arguments} succeeds: {}", output.text()),
        Err(error) => {
            assert_eq!(error.kind(), kind, "{name} {arguments}: {error:?}");
            assert!(error.message().contains(says), "{name} {arguments}: {error:?}");
        }
    }
}

/// Runs something that must end within a time.
#[track_caller]
pub(crate) fn within<T>(limit: Duration, what: &str, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    assert!(start.elapsed() < limit, "{what} took {:?}", start.elapsed());
    result
}

pub(crate) fn jq(json: &str, query: &str) -> Value {
    json!({"json_string": json, "operation": "query", "query": query})
}
