//! Runs the tests that authors write into their manifests.

mod expectations;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use toolcrib_core::approval::{ApprovalRequest, Decision, Remember};
use toolcrib_core::policy::Verdict;
use toolcrib_core::{DryRun, Executor, Registry, TurnOptions};
use toolcrib_manifest::declaration::{Declaration, Expectation, RecordedAnswer, ToolTest};
use toolcrib_tool::{ErrorKind, Origin, Plan, Services, ToolCall, ToolError};

pub use expectations::Failure;
use expectations::{check_argv, check_kind, check_request, check_result};

/// Kinds of failure that cannot occur after a call has passed every check.
const DECIDED_BEFORE_A_RUN: [&str; 5] = [
    ErrorKind::NotFound.as_str(),
    ErrorKind::InvalidJson.as_str(),
    ErrorKind::InvalidArgs.as_str(),
    ErrorKind::Constraint.as_str(),
    ErrorKind::MissingContext.as_str(),
];

/// Options of a test run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TestOptions {
    /// Start nothing: expectations that need a run are skipped. Default: false.
    pub mock: bool,
    /// The number of tests to run at once. Default: 4.
    pub concurrency: usize,
}

impl Default for TestOptions {
    fn default() -> Self {
        Self { mock: false, concurrency: 4 }
    }
}

/// The report of one test.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TestReport {
    /// The tool's exposed name.
    pub tool: String,
    /// The test's name.
    pub name: String,
    /// The position of the test.
    pub origin: Origin,
    /// The outcome.
    pub outcome: TestOutcome,
    /// The duration.
    pub duration: Duration,
}

/// The outcome of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TestOutcome {
    /// Every expectation holds.
    Passed,
    /// Some expectations do not hold.
    Failed(Vec<Failure>),
    /// It was not run, or not completed; the reason, as one clause.
    Skipped(String),
}

/// Runs the tests of declared tools, several at once. The reports are in the order of the tools and of their tests.
/// `executor` contains the tools of the declarations: a test calls its tool as any caller would, with only the context
/// that the test itself declares.
///
/// Tests are skipped if their tool is unavailable here, or if its name belongs to another tool.
pub async fn run_tests<'d>(
    executor: &Executor,
    declarations: impl IntoIterator<Item = &'d Declaration>,
    options: TestOptions,
) -> Vec<TestReport> {
    let tests = declarations.into_iter().flat_map(|tool| tool.tests.iter().map(move |t| (tool, t)));
    let tests: Vec<_> = tests.collect();
    stream::iter(tests)
        .map(|(declaration, test)| async move {
            let started = Instant::now();
            let outcome = run_test(executor, declaration, test, options.mock).await;
            TestReport {
                tool: declaration.definition.name().to_owned(),
                name: test.name.clone(),
                origin: test.origin.clone(),
                outcome,
                duration: started.elapsed(),
            }
        })
        .buffered(options.concurrency.max(1))
        .collect()
        .await
}

/// Runs one test of a manifest.
///
/// A test starts no program and sends nothing if it only checks the argument vector or the request, if it expects a
/// refusal before the run, or if its answer is recorded. The call goes through an executor like any other.
pub async fn run_test(
    executor: &Executor,
    declaration: &Declaration,
    test: &ToolTest,
    mock: bool,
) -> TestOutcome {
    if let Some(reason) = cannot_run(executor, declaration) {
        return TestOutcome::Skipped(reason);
    }
    if let Some(answer) = &test.answer {
        return answered(executor, declaration, test, answer).await;
    }
    let values = test.ctx.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    let turn = executor.turn(TurnOptions::default().values(values));
    let call = ToolCall::new("test", declaration.definition.name(), &test.args);
    let expect = &test.expect;
    let mut failures = Vec::new();
    if mock || looks_at_plan(expect) {
        match turn.dry_run(call.clone()).await {
            Ok(dry) => {
                look(expect, &dry, &mut failures);
                if mock && failures.is_empty() {
                    return mocked(expect, &dry);
                }
            }
            Err(error) if mock || expect.error.is_none() => {
                check_kind(expect, Some(&error), &mut failures);
            }
            Err(_) => {}
        }
        if mock || !needs_run(expect) {
            return outcome(failures);
        }
    }
    check_result(expect, &turn.call(call).await, &mut failures);
    outcome(failures)
}

/// Runs a test with a recorded answer, with an executor that contains only its tool: it has no
/// cached answers of other calls, and because nothing is sent, nothing needs approval.
async fn answered(
    executor: &Executor,
    declaration: &Declaration,
    test: &ToolTest,
    answer: &RecordedAnswer,
) -> TestOutcome {
    let snapshot = executor.registry().snapshot();
    let entry = snapshot.get(declaration.definition.name()).cloned();
    let Some(registry) = entry.and_then(|entry| Registry::scratch().entry(entry).build().ok())
    else {
        return TestOutcome::Skipped("the tool is gone".to_owned());
    };
    let values = test.ctx.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    let approve = |_: &ApprovalRequest| Decision::Approve { remember: Remember::Nothing };
    let options = TurnOptions::default()
        .values(values)
        .services(Services::new().with(Arc::new(answer.clone())))
        .approver(Arc::new(approve));
    let turn = Executor::builder(registry).build().turn(options);
    let call = ToolCall::new("test", declaration.definition.name(), &test.args);
    let mut failures = Vec::new();
    if looks_at_plan(&test.expect) {
        match turn.dry_run(call.clone()).await {
            Ok(dry) => look(&test.expect, &dry, &mut failures),
            Err(error) => check_kind(&test.expect, Some(&error), &mut failures),
        }
    }
    check_result(&test.expect, &turn.call(call).await, &mut failures);
    outcome(failures)
}

/// Why calls of this name would not run this tool here.
fn cannot_run(executor: &Executor, declaration: &Declaration) -> Option<String> {
    let snapshot = executor.registry().snapshot();
    let name = declaration.definition.name();
    let Some(entry) = snapshot.get(name) else {
        return Some(format!("there is no tool `{name}` here"));
    };
    if entry.source.origin.as_ref() != Some(&declaration.origin) {
        return Some(format!("the name `{name}` belongs to {}", entry.source));
    }
    entry.unavailable_reason().map(|reason| format!("the tool is unavailable: {reason}"))
}

/// Compares what would be started or sent with the expectations.
fn look(expect: &Expectation, dry: &DryRun, failures: &mut Vec<Failure>) {
    if !looks_at_plan(expect) {
        return;
    }
    match &dry.plan {
        Some(Plan::Request(plan)) => check_request(expect, plan, failures),
        Some(Plan::Command(plan)) => check_argv(expect, &plan.argv, failures),
        _ => {
            failures.push(Failure::new(
                "argv",
                "a program or a request",
                "a call that starts and sends nothing",
            ));
        }
    }
}

/// The result of a dry run of a call that passed every check.
fn mocked(expect: &Expectation, dry: &DryRun) -> TestOutcome {
    // In a test nobody can be asked for approval.
    let refusal = match &dry.verdict {
        Verdict::Deny { message, .. } => Some(ToolError::denied(message.as_str())),
        Verdict::Ask { reason, .. } => Some(ToolError::denied(reason.as_str())),
        Verdict::Allow { .. } => None,
    };
    if let Some(refusal) = refusal {
        let mut failures = Vec::new();
        // The plan is compared before approval.
        if needs_run(expect) || !looks_at_plan(expect) {
            check_kind(expect, Some(&refusal), &mut failures);
        }
        return outcome(failures);
    }
    if let Some(kind) = expect.error.as_deref().filter(|kind| DECIDED_BEFORE_A_RUN.contains(kind)) {
        return TestOutcome::Failed(vec![Failure::new(
            "error",
            kind,
            "a call that passes every check",
        )]);
    }
    if needs_run(expect) || !looks_at_plan(expect) {
        return TestOutcome::Skipped("only a run can tell".to_owned());
    }
    TestOutcome::Passed
}

fn outcome(failures: Vec<Failure>) -> TestOutcome {
    if failures.is_empty() { TestOutcome::Passed } else { TestOutcome::Failed(failures) }
}

fn looks_at_plan(expect: &Expectation) -> bool {
    expect.argv.is_some()
        || !expect.argv_contains.is_empty()
        || expect.url.is_some()
        || expect.body.is_some()
}

fn needs_run(expect: &Expectation) -> bool {
    expect.error.is_some()
        || !expect.text_contains.is_empty()
        || expect.text_matches.is_some()
        || expect.data.is_some()
}
