//! The results of tests, for people and for programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};
use toolcrib::manifest_tests::{Failure, TestOutcome, TestReport};
use toolcrib::tool::fully_visible_text;

use crate::screen::{self, ERROR, FAINT, STRONG, WARNING, count};

/// The maximum number of lines of actual output that are shown.
const SHOWN_LINES: usize = 40;

/// If this many tests were skipped for one reason, the reason is printed once at the end.
const REPEATED_MIN: usize = 5;

/// The results of all tests.
pub(super) struct Report {
    pub(super) tests: Vec<TestReport>,
    pub(super) duration: Duration,
    /// The number of broken files, whose tests did not run.
    pub(super) broken: usize,
    /// Whether skipped tests fail.
    strict: bool,
    /// Whether it is a failure if there are no tests.
    wants_tests: bool,
}

impl Report {
    pub(super) fn new(
        tests: Vec<TestReport>,
        duration: Duration,
        broken: usize,
        strict: bool,
    ) -> Self {
        Self { tests, duration, broken, strict, wants_tests: false }
    }

    /// Sets whether it is a failure if there are no tests.
    pub(super) fn wants_tests(self, wants_tests: bool) -> Self {
        Self { wants_tests, ..self }
    }

    /// Whether the command fails.
    pub(super) fn failed(&self) -> bool {
        let (_, failed, skipped) = self.counts();
        let none = self.wants_tests && self.tests.is_empty();
        failed > 0 || self.broken > 0 || self.strict && skipped > 0 || none
    }

    /// The numbers of passed, failed and skipped tests.
    pub(super) fn counts(&self) -> (usize, usize, usize) {
        let counted = |wanted: fn(&TestOutcome) -> bool| {
            self.tests.iter().filter(|test| wanted(&test.outcome)).count()
        };
        (
            counted(|outcome| *outcome == TestOutcome::Passed),
            counted(|outcome| matches!(outcome, TestOutcome::Failed(_))),
            counted(|outcome| matches!(outcome, TestOutcome::Skipped(_))),
        )
    }

    /// The reasons for which several tests were skipped, with the number of tests.
    fn repeated_reasons(&self) -> BTreeMap<&str, usize> {
        let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
        for test in &self.tests {
            if let TestOutcome::Skipped(reason) = &test.outcome {
                *reasons.entry(reason).or_default() += 1;
            }
        }
        reasons.retain(|_, number| *number >= REPEATED_MIN);
        reasons
    }

    pub(super) fn to_value(&self) -> Value {
        let (passed, failed, skipped) = self.counts();
        json!({
            "ok": !self.failed(),
            "passed": passed,
            "failed": failed,
            "skipped": skipped,
            "broken_files": self.broken,
            "seconds": self.duration.as_secs_f64(),
            "tests": self.tests.iter().map(test_value).collect::<Vec<Value>>(),
        })
    }

    /// Prints one line per test, failures in full, and the totals.
    pub(super) fn print(&self) -> anyhow::Result<()> {
        let mut text = String::new();
        let mut tool = None;
        let repeated = self.repeated_reasons();
        for test in &self.tests {
            if tool != Some(&test.tool) {
                let _ = writeln!(text, "{STRONG}{}{STRONG:#}", test.tool);
                tool = Some(&test.tool);
            }
            print_test(test, &repeated, &mut text);
        }
        for (reason, number) in &repeated {
            let tests = count(*number, "test");
            let _ = writeln!(
                text,
                "\n{WARNING}skipped{WARNING:#} {tests}: {}",
                fully_visible_text(reason)
            );
        }
        let (passed, failed, skipped) = self.counts();
        if !text.is_empty() {
            text.push('\n');
        }
        let style = if self.failed() { ERROR } else { STRONG };
        let _ = write!(text, "{style}{}{style:#}: ", count(self.tests.len(), "test"));
        let _ = write!(text, "{passed} passed, {failed} failed, {skipped} skipped");
        let _ = write!(text, " {FAINT}in {:.1} s{FAINT:#}", self.duration.as_secs_f64());
        screen::out(text)?;
        if failed > 0 {
            screen::note(format!("{FAINT}- expected  + got{FAINT:#}"));
        }
        if self.broken > 0 {
            let files = count(self.broken, "file");
            screen::note(format!("{ERROR}error{ERROR:#}: {files} could not be loaded, see above"));
        }
        if self.strict && skipped > 0 {
            let skipped = count(skipped, "test");
            screen::note(format!(
                "{ERROR}error{ERROR:#}: {skipped} skipped, and --strict allows none"
            ));
        }
        if self.tests.is_empty() {
            let none = "no tests: add `tests` to a tool, for example as `toolcrib new` does";
            screen::note(if self.wants_tests {
                format!("{ERROR}error{ERROR:#}: {none}; --strict wants at least one")
            } else {
                none.to_owned()
            });
        }
        Ok(())
    }
}

fn print_test(report: &TestReport, repeated: &BTreeMap<&str, usize>, text: &mut String) {
    let name = fully_visible_text(&report.name);
    let time = format!("{FAINT}{} ms{FAINT:#}", report.duration.as_millis());
    let _ = match &report.outcome {
        TestOutcome::Passed => writeln!(text, "  ok       {name} {time}"),
        TestOutcome::Skipped(reason) if repeated.contains_key(reason.as_str()) => {
            writeln!(text, "  {WARNING}skipped{WARNING:#}  {name}")
        }
        TestOutcome::Skipped(reason) => {
            writeln!(text, "  {WARNING}skipped{WARNING:#}  {name}: {}", fully_visible_text(reason))
        }
        TestOutcome::Failed(failures) => {
            let _ = writeln!(text, "  {ERROR}FAILED{ERROR:#}   {name} {time}  {}", report.origin);
            for failure in failures {
                difference(failure, text);
            }
            Ok(())
        }
        _ => writeln!(text, "  ?        {name}"),
    };
}

/// Compares expected and actual values: `-` marks expected lines that are missing, `+` unexpected
/// lines.
fn difference(failure: &Failure, text: &mut String) {
    let Failure { what, expected, got, .. } = failure;
    let _ = writeln!(text, "           {STRONG}{what}{STRONG:#}");
    let mut lines = Vec::new();
    match *what {
        // Both have the same kind of lines.
        "argv" | "data" | "body" => {
            for change in TextDiff::from_lines(expected, got).iter_all_changes() {
                let sign = match change.tag() {
                    ChangeTag::Delete => '-',
                    ChangeTag::Insert => '+',
                    ChangeTag::Equal => ' ',
                };
                lines.push((sign, change.value().trim_end_matches('\n').to_owned()));
            }
        }
        // Only a part was expected, so show the whole actual value beside it.
        _ => {
            lines.extend(expected.lines().map(|line| ('-', line.to_owned())));
            lines.extend(got.lines().map(|line| ('+', line.to_owned())));
            if got.is_empty() {
                lines.push(('+', "(nothing)".to_owned()));
            }
        }
    }
    let all = lines.len();
    for (sign, line) in lines.iter().take(SHOWN_LINES) {
        let style = match sign {
            '-' => ERROR,
            '+' => WARNING,
            _ => FAINT,
        };
        let _ = writeln!(text, "           {style}{sign} {}{style:#}", fully_visible_text(line));
    }
    if all > SHOWN_LINES {
        let _ = writeln!(
            text,
            "           {FAINT}… {}{FAINT:#}",
            count(all - SHOWN_LINES, "more line")
        );
    }
}

fn test_value(test: &TestReport) -> Value {
    let (outcome, reason, failures) = match &test.outcome {
        TestOutcome::Passed => ("passed", None, Vec::new()),
        TestOutcome::Skipped(reason) => ("skipped", Some(reason), Vec::new()),
        TestOutcome::Failed(failures) => ("failed", None, failures.clone()),
        _ => ("unknown", None, Vec::new()),
    };
    let failures: Vec<Value> = failures
        .iter()
        .map(|failure| {
            json!({"what": failure.what, "expected": failure.expected, "got": failure.got})
        })
        .collect();
    json!({
        "tool": test.tool,
        "test": test.name,
        "file": test.origin.file,
        "line": test.origin.line,
        "column": test.origin.column,
        "outcome": outcome,
        "reason": reason,
        "failures": failures,
        "seconds": test.duration.as_secs_f64(),
    })
}
