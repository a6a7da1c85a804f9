//! jq queries with limits on time, memory, stack and output, whatever the program does.
//!
//! A query computes on the given text only: no environment, no clock, no files, no modules. It runs on its own thread,
//! and a [`meter`] stops it at the first exceeded limit, so that no thread keeps spinning.

mod access;
mod arithmetic;
mod functions;
mod meter;
mod number;
mod order;
mod program;
mod value;

use std::time::Duration;

use jaq_core::{Ctx, Vars};
use serde_json::json;
use toolcrib_tool::{CallContext, Data, ToolError, ToolOutput};

use self::meter::ExceededLimit;
use self::program::{Engine, Program};
use self::value::Value;
use super::bounded::{StopCheck, on_own_stack};
use super::json_text::JsonText;

/// The most results a query may yield.
const MAX_RESULTS: usize = 10_000;
/// The longest output, in bytes.
const MAX_OUTPUT_BYTES: usize = 1 << 20;
/// How long a query may take.
const TIME_LIMIT: Duration = Duration::from_secs(2);

/// Runs a jq program: one line of compact JSON per result, and `{results, count}` as data.
pub(super) fn query(
    text: JsonText<'_>,
    program: &str,
    cx: &CallContext,
) -> Result<ToolOutput, ToolError> {
    let watch = StopCheck::new(cx, TIME_LIMIT);
    let lines = on_own_stack(|| {
        meter::start(watch);
        run(text, program)
    })?;
    let lines = match lines {
        Ok(lines) => lines?,
        Err(panic) => match panic.downcast::<ExceededLimit>() {
            Ok(exceeded) => return Err(exceeded.into_error()),
            Err(panic) => std::panic::resume_unwind(panic),
        },
    };
    let results = format!("[{}]", lines.join(","));
    let results = Data::from_json(&results);
    let output = ToolOutput::from(if lines.is_empty() {
        "(no results)".to_owned()
    } else {
        lines.join("\n")
    });
    // A literal beyond the range of a double is only in the text.
    Ok(match results {
        Ok(results) => {
            let data = json!({"count": lines.len(), "results": results.into_protected()});
            output.with_exact_data(Data::from_protected(data))
        }
        Err(_) => output,
    })
}

fn run(text: JsonText<'_>, program: &str) -> Result<Vec<String>, ToolError> {
    let filter = program::compile(program)?;
    let cx = Ctx::<Engine>::new(Program(&filter.lut), Vars::new([]));
    let mut lines = Vec::new();
    let mut room = MAX_OUTPUT_BYTES;
    for result in filter.id.run((cx, Value::read(text))) {
        let value = match result.map_err(jaq_core::Exn::get_err) {
            Ok(value) => value,
            Err(Ok(error)) => return Err(failed(&error.to_string(), &lines)),
            // `break` without its label does not compile, and there is no `halt`.
            Err(Err(_)) => return Err(failed("it broke off", &lines)),
        };
        let mut line = String::new();
        if lines.len() == MAX_RESULTS || !value.write(&mut line, room) {
            return Err(ToolError::execution(format!(
                "the query yields more than {MAX_RESULTS} results or {MAX_OUTPUT_BYTES} bytes"
            ))
            .with_hint(
                "Narrow it with `select(…)`, `limit(100; …)` or a slice such as `.[:100]`.",
            ));
        }
        room -= line.len();
        lines.push(line);
    }
    Ok(lines)
}

/// The query itself failed; the error includes the results so far.
fn failed(message: &str, lines: &[String]) -> ToolError {
    let error = ToolError::execution(format!("jq: {message}"))
        .with_hint("Look at the data with `keys`, or let the query pass over it with `?` or `//`.");
    if lines.is_empty() { error } else { error.with_partial(lines.join("\n")) }
}

impl ExceededLimit {
    fn into_error(self) -> ToolError {
        let message = match self {
            Self::Stopped(stop) => return stop.into_error(),
            Self::Memory => "the query builds more data than fits in memory",
            Self::Work => "the query takes too many steps",
            Self::Recursion => "the query recurses too deeply",
            Self::Nesting => "the query nests values more than 120 deep",
        };
        ToolError::execution(message).with_hint(
            "Ask for less: bound loops with `limit(n; …)` and select before you collect.",
        )
    }
}
