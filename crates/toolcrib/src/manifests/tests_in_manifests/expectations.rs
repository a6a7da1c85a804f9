//! Comparing a test's expectations with the result.

use serde_json::Value;
use toolcrib_manifest::declaration::Expectation;
use toolcrib_tool::{Data, RequestPlan, ToolError, ToolResult, canonical_json, exact};

/// An expectation that did not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// The key of `expect`, or `success` if a test expects that the call succeeds.
    pub what: &'static str,
    /// The expected value; lists and objects have one item per line.
    pub expected: String,
    /// The actual value, in the same form.
    pub got: String,
}

impl Failure {
    pub(super) fn new(
        what: &'static str,
        expected: impl Into<String>,
        got: impl Into<String>,
    ) -> Self {
        Self { what, expected: expected.into(), got: got.into() }
    }
}

pub(super) fn check_argv(expect: &Expectation, argv: &[String], failures: &mut Vec<Failure>) {
    let lines = |argv: &[String]| {
        argv.iter().map(|argument| format!("{argument:?}")).collect::<Vec<_>>().join("\n")
    };
    let missing: Vec<String> =
        expect.argv_contains.iter().filter(|part| !argv.contains(part)).cloned().collect();
    if !missing.is_empty() {
        failures.push(Failure::new("argv_contains", lines(&missing), lines(argv)));
    }
    if let Some(expected) = &expect.argv
        && expected != argv
    {
        failures.push(Failure::new("argv", lines(expected), lines(argv)));
    }
}

pub(super) fn check_request(expect: &Expectation, plan: &RequestPlan, failures: &mut Vec<Failure>) {
    if let Some(expected) = &expect.url
        && *expected != plan.url
    {
        failures.push(Failure::new("url", expected, &*plan.url));
    }
    if let Some(expected) = &expect.body
        && plan.body.as_ref() != Some(expected)
    {
        let got = plan.body.as_ref().map_or_else(|| "no body".to_owned(), pretty);
        failures.push(Failure::new("body", pretty(expected), got));
    }
}

/// Whether the call failed or succeeded as expected.
pub(super) fn check_kind(
    expect: &Expectation,
    error: Option<&ToolError>,
    failures: &mut Vec<Failure>,
) {
    let got = |error: &ToolError| {
        let head = format!("{}: {}", error.kind(), error.message());
        std::iter::once(&*head)
            .chain(error.hints().iter().map(|hint| &**hint))
            .collect::<Vec<&str>>()
            .join("\n")
    };
    match (&expect.error, error) {
        (None, None) => {}
        (Some(kind), Some(error)) if error.kind().as_str() == kind => {}
        (Some(kind), Some(error)) => failures.push(Failure::new("error", kind, got(error))),
        (Some(kind), None) => failures.push(Failure::new("error", kind, "success")),
        (None, Some(error)) => failures.push(Failure::new("success", "success", got(error))),
    }
}

pub(super) fn check_result(expect: &Expectation, result: &ToolResult, failures: &mut Vec<Failure>) {
    check_kind(expect, result.error(), failures);
    let text = result.text();
    for part in &expect.text_contains {
        if !text.contains(part.as_str()) {
            failures.push(Failure::new("text_contains", part, &*text));
        }
    }
    if let Some(pattern) = &expect.text_matches {
        match regex::Regex::new(pattern) {
            Ok(regex) if regex.is_match(&text) => {}
            Ok(_) => failures.push(Failure::new("text_matches", pattern, &*text)),
            Err(error) => failures.push(Failure::new("text_matches", pattern, error.to_string())),
        }
    }
    if let Some(expected) = &expect.data
        && result.exact_data().map(Data::protected) != Some(expected)
    {
        let got = result.exact_data().map(Data::protected);
        let got = got.map_or_else(|| "no data".to_owned(), pretty);
        failures.push(Failure::new("data", pretty(expected), got));
    }
}

/// JSON with sorted keys, one item per line.
fn pretty(value: &Value) -> String {
    let canonical = canonical_json(value);
    let sorted = Data::from_json(&canonical).map(Data::into_protected);
    let text = serde_json::to_string_pretty(&sorted.unwrap_or_else(|_| value.clone()));
    text.map_or(canonical, |text| exact::restore(&text).into_owned())
}
