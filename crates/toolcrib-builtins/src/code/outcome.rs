//! Turns the end of the code into the result of a call.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use toolcrib_sandbox::{Captured, Finished};
use toolcrib_tool::{
    ErrorKind, IntoOutcome, ToolError, ToolOutcome, ToolOutput, schema_for, visible,
};

use crate::process::{StopReason, ending, exit_code, with_facts};

/// How many bytes at each end of a stream are in the data, which has a size limit that text does not have. Both ends
/// fit even if every byte is escaped.
const DATA_HEAD: usize = 40 * 1024;
const DATA_TAIL: usize = 16 * 1024;

/// What the code wrote and how it ended.
#[derive(Debug, Serialize, JsonSchema)]
struct Streams {
    /// Standard output; the middle of long output is cut.
    stdout: String,
    /// Standard error with the traceback; the middle of long output is cut.
    stderr: String,
    /// The exit code; 128 plus the signal number if a signal ended it; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
}

/// The result of code that ran to its end.
#[derive(Debug)]
pub(super) struct RunOutput(ToolOutput);

impl IntoOutcome for RunOutput {
    fn into_outcome(self) -> Result<ToolOutcome, ToolError> {
        Ok(self.0.into())
    }

    fn output_schema() -> Option<serde_json::Value> {
        Some(schema_for::<Streams>())
    }
}

/// The guard's verdict, and the standard error after it.
enum GuardVerdict {
    /// It ran.
    Checked(Captured),
    /// It breaks rules of its level, and did not run.
    Refused(String),
    /// It is not valid Python and did not run.
    Syntax(String),
    /// No verdict: the guard itself did not run.
    None,
}

/// Reads the verdict from the first line of standard error, which the code cannot write.
fn verdict(stderr: &Captured) -> GuardVerdict {
    let end = stderr.head.iter().position(|byte| *byte == b'\n');
    let (word, rest) = match end {
        Some(end) => (&stderr.head[..end], &stderr.head[end + 1..]),
        None => return GuardVerdict::None,
    };
    let total = stderr.total - word.len() as u64 - 1;
    let rest = Captured { head: rest.to_vec(), tail: stderr.tail.clone(), total };
    match word {
        b"checked" => GuardVerdict::Checked(rest),
        b"refused" => GuardVerdict::Refused(shown(&rest)),
        b"syntax" => GuardVerdict::Syntax(shown(&rest)),
        _ => GuardVerdict::None,
    }
}

/// Turns the end of the process into the call's outcome.
pub(super) fn outcome(
    finished: &Finished,
    stop: Option<StopReason>,
) -> Result<RunOutput, ToolError> {
    let stderr = match verdict(&finished.stderr) {
        GuardVerdict::Checked(stderr) => stderr,
        GuardVerdict::Refused(reasons) => {
            let why = format!("the code was not run:\n{}", reasons.trim_end());
            return Err(ToolError::denied(why).with_hint("Write it without what is refused."));
        }
        GuardVerdict::Syntax(error) => {
            let why = format!("the code was not run, it is not Python:\n{}", error.trim_end());
            return Err(ToolError::execution(why).with_hint("Mend it and send all of it again."));
        }
        // A limit ended the guard while it parsed: a parser bomb.
        GuardVerdict::None if stop.is_none() && finished.status.signal().is_some() => {
            let end = ending(finished.status);
            return Err(ToolError::execution(format!("the code cannot be read: {end}"))
                .with_hint("Write it shorter and less nested."));
        }
        GuardVerdict::None if stop.is_none() => {
            let said = shown(&finished.stderr);
            let end = ending(finished.status);
            return Err(ToolError::unavailable(format!("Python did not start: {end}\n{said}")));
        }
        GuardVerdict::None => finished.stderr.clone(),
    };
    let output = output(finished, &stderr);
    let seconds = finished.duration.as_secs_f64();
    match stop {
        Some(StopReason::TimeUp) => {
            let why = format!("the code ran for {seconds:.1} s, its time limit, and was ended");
            Err(ToolError::new(ErrorKind::Timeout, why)
                .with_hint("Do less at a time, or find a faster way.")
                .with_partial(output))
        }
        Some(StopReason::Cancelled) => {
            let why = format!("the code was ended with the call after {seconds:.1} s");
            Err(ToolError::new(ErrorKind::Cancelled, why).with_partial(output))
        }
        None if finished.status.code() == Some(0) => Ok(RunOutput(output)),
        None => {
            let last = shown(&stderr);
            let last = last.trim_end().lines().last().unwrap_or_default();
            let why = format!("the code failed ({}): {last}", ending(finished.status));
            let why = why.trim_end_matches([':', ' ']);
            let hint = match finished.status.signal() {
                Some(_) => {
                    "It was ended from outside, most likely at a limit of memory: do less at a time."
                }
                None => "Correct the code and send all of it again: nothing is kept between calls.",
            };
            Err(ToolError::execution(why).with_hint(hint).with_partial(output))
        }
    }
}

/// Standard output, then standard error if any, and both as data.
fn output(finished: &Finished, stderr: &Captured) -> ToolOutput {
    let mut text = shown(&finished.stdout);
    if stderr.total > 0 {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str("[stderr]\n");
        text.push_str(&shown(stderr));
    } else if text.is_empty() {
        text.push_str("[nothing was printed]");
    }
    let streams = Streams {
        stdout: shown(&ends(&finished.stdout)),
        stderr: shown(&ends(stderr)),
        exit_code: exit_code(finished.status),
    };
    with_facts(ToolOutput::from(text).with_data(json!(streams)), finished)
}

/// A stream for models and people.
fn shown(captured: &Captured) -> String {
    visible(&captured.text()).into_owned()
}

/// The ends of a stream that fit into the data.
fn ends(captured: &Captured) -> Captured {
    let bytes = captured.bytes();
    if bytes.len() <= DATA_HEAD + DATA_TAIL {
        return captured.clone();
    }
    Captured {
        head: bytes[..DATA_HEAD].to_vec(),
        tail: bytes[bytes.len() - DATA_TAIL..].to_vec(),
        total: captured.total,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(text: &str) -> Captured {
        Captured { head: text.into(), tail: Vec::new(), total: text.len() as u64 }
    }

    #[test]
    fn only_the_first_line_is_the_verdict() {
        let GuardVerdict::Checked(rest) = verdict(&captured("checked\nrefused\nx")) else {
            panic!("it was checked")
        };
        assert_eq!((rest.text().as_str(), rest.total), ("refused\nx", 9));
        assert!(matches!(verdict(&captured("refused\nline 1: no\n")), GuardVerdict::Refused(_)));
        for none in ["", "checked", "Traceback\nchecked\n"] {
            assert!(matches!(verdict(&captured(none)), GuardVerdict::None), "{none}");
        }
    }

    #[test]
    fn data_keeps_both_ends_and_fits() {
        let long = captured(&"\u{1b}".repeat(1024 * 1024));
        let kept = ends(&long);
        assert_eq!(kept.head.len() + kept.tail.len(), DATA_HEAD + DATA_TAIL);
        let both = json!([shown(&kept), shown(&kept)]).to_string().len();
        assert!(both < 1024 * 1024, "{both}");
        assert_eq!(ends(&captured("short")).text(), "short");
    }
}
