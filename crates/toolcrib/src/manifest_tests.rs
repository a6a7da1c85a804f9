//! Runs the tests that authors write into their manifests.

use serde_json::Value;
use toolcrib_core::{Executor, TurnOptions};
use toolcrib_manifest::declaration::{Declaration, Expectation, ToolTest};
use toolcrib_runners::{CommandRunner, RunnerHost};
use toolcrib_tool::{CallContext, ToolCall, ToolError, ToolResult, canonical_json};

/// Runs one test of a manifest and says everything that does not hold.
///
/// A test that only looks at the argument vector or at the request, or that expects a refusal before
/// anything runs, starts no program and sends nothing. The call goes through the executor like any
/// other.
pub async fn run_test(
    executor: &Executor,
    host: &RunnerHost,
    declaration: &Declaration,
    test: &ToolTest,
) -> Result<(), Vec<String>> {
    let values = test.ctx.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    let turn = executor.turn(TurnOptions::default().values(values));
    let call = ToolCall::new("test", declaration.definition.name(), &test.args);
    let expect = &test.expect;
    let mut failures = Vec::new();

    if expect.argv.is_some() || !expect.argv_contains.is_empty() {
        let invocation = turn.dry_run(call.clone()).and_then(|(arguments, cx)| {
            CommandRunner::new(declaration, host).invocation(arguments.value(), &cx)
        });
        match invocation {
            Ok(invocation) => {
                check_argv(expect, &invocation.argv().collect::<Vec<_>>(), &mut failures);
            }
            Err(error) => failures.push(refused(&error)),
        }
        if !needs_run(expect) {
            return failures.is_empty().then_some(()).ok_or(failures);
        }
    }
    if expect.url.is_some() || expect.body.is_some() {
        let planned = turn
            .dry_run(call.clone())
            .and_then(|(arguments, cx)| planned(declaration, host, arguments.value(), &cx));
        match planned {
            Ok((url, body)) => check_request(expect, &url, body.as_ref(), &mut failures),
            Err(error) => failures.push(refused(&error)),
        }
        if !needs_run(expect) {
            return failures.is_empty().then_some(()).ok_or(failures);
        }
    }
    check_result(expect, &turn.call(call).await, &mut failures);
    failures.is_empty().then_some(()).ok_or(failures)
}

fn needs_run(expect: &Expectation) -> bool {
    expect.error.is_some()
        || !expect.text_contains.is_empty()
        || expect.text_matches.is_some()
        || expect.data.is_some()
}

fn refused(error: &ToolError) -> String {
    format!("the call was refused ({}): {error}; {}", error.kind(), error.hints().join(" "))
}

fn check_argv(expect: &Expectation, argv: &[&str], failures: &mut Vec<String>) {
    for part in &expect.argv_contains {
        if !argv.contains(&part.as_str()) {
            failures.push(format!("argv has no argument {part:?}: {argv:?}"));
        }
    }
    if let Some(expected) = &expect.argv
        && expected != argv
    {
        failures.push(format!("argv is {argv:?}, expected {expected:?}"));
    }
}

/// The URL and the body that a call would send.
#[cfg(feature = "http-tools")]
fn planned(
    declaration: &Declaration,
    host: &RunnerHost,
    arguments: &Value,
    cx: &CallContext,
) -> Result<(String, Option<Value>), ToolError> {
    let request = toolcrib_runners::HttpRunner::new(declaration, host).request(arguments, cx)?;
    Ok((request.shown_url, request.body))
}

#[cfg(not(feature = "http-tools"))]
fn planned(
    _: &Declaration,
    _: &RunnerHost,
    _: &Value,
    _: &CallContext,
) -> Result<(String, Option<Value>), ToolError> {
    Err(ToolError::unavailable("this build has no HTTP tools (feature `http-tools`)"))
}

fn check_request(
    expect: &Expectation,
    url: &str,
    body: Option<&Value>,
    failures: &mut Vec<String>,
) {
    if let Some(expected) = &expect.url
        && expected != url
    {
        failures.push(format!("the URL is {url:?}, expected {expected:?}"));
    }
    if let Some(expected) = &expect.body
        && body != Some(expected)
    {
        let body = body.map_or_else(|| "nothing".to_owned(), canonical_json);
        failures.push(format!("the body is {body}, expected {}", canonical_json(expected)));
    }
}

fn check_result(expect: &Expectation, result: &ToolResult, failures: &mut Vec<String>) {
    match (&expect.error, result.error()) {
        (None, None) => {}
        (Some(kind), Some(error)) if error.kind().as_str() == kind => {}
        (Some(kind), Some(error)) => {
            failures
                .push(format!("expected a failure of kind {kind}, got {}: {error}", error.kind()));
        }
        (Some(kind), None) => {
            failures.push(format!("expected a failure of kind {kind}; it succeeded"));
        }
        (None, Some(_)) => failures.push(format!("the call failed: {}", result.text())),
    }
    let text = result.text();
    for part in &expect.text_contains {
        if !text.contains(part.as_str()) {
            failures.push(format!("the text does not contain {part:?}: {text:?}"));
        }
    }
    if let Some(pattern) = &expect.text_matches {
        match regex::Regex::new(pattern) {
            Ok(regex) if regex.is_match(&text) => {}
            Ok(_) => failures.push(format!("the text does not match {pattern:?}: {text:?}")),
            Err(error) => failures.push(format!("{pattern:?} is no pattern: {error}")),
        }
    }
    if let Some(expected) = &expect.data
        && result.data() != Some(expected)
    {
        let data = result.data().map_or_else(|| "none".to_owned(), canonical_json);
        failures.push(format!("data is {data}, expected {}", canonical_json(expected)));
    }
}
