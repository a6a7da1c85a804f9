//! `calculator`: exact arithmetic, functions, constants and units.

use std::sync::LazyLock;
use std::time::Duration;

use fend_core::{Context, Interrupt};
use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolcrib_macros::tool;
use toolcrib_tool::{CallContext, IntoOutcome, ToolError, ToolOutcome, ToolOutput, schema_for};

use super::bounded::{Stop, Watch, on_own_stack};

/// The longest expression, in characters.
const MAX_CHARS: usize = 1_000;
/// The deepest nesting of parentheses.
const MAX_DEPTH: usize = 100;
/// The longest result, in characters: more digits help nobody.
const MAX_RESULT_CHARS: usize = 10_000;
/// How long one expression may take. Everyday ones take less than a millisecond.
const TIME_LIMIT: Duration = Duration::from_millis(500);
/// Digits that an approximate value can be asked for: it is computed in double precision.
const APPROXIMATE_DIGITS: u32 = 15;

#[derive(Deserialize, JsonSchema)]
struct CalculatorArgs {
    /// One expression, for example `(2 + 3) * 4^2`, `sqrt(2)`, `20% of 50`, `10 choose 3`,
    /// `sin(30 deg)`, `5 km to miles`, `100 C to F`, `22/7 to 3 dp`, `255 to hex`.
    #[schemars(length(min = 1, max = 1000))]
    expression: String,
}

/// What the calculator found.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
struct Answer {
    /// The value with its unit, as text, because it may have more digits than a number can hold.
    result: String,
    /// Whether the value was rounded.
    approximate: bool,
}

impl IntoOutcome for Answer {
    fn into_outcome(self) -> Result<ToolOutcome, ToolError> {
        let prefix = if self.approximate { "approx. " } else { "" };
        let text = format!("{prefix}{}", self.result);
        let data = serde_json::json!({"result": self.result, "approximate": self.approximate});
        Ok(ToolOutput::new().with_content(text).with_data(data).into())
    }

    fn output_schema() -> Option<serde_json::Value> {
        Some(schema_for::<Self>())
    }
}

/// Evaluate an arithmetic expression exactly: + - * / ^ ! %, `mod`, functions (sqrt, ln, log10,
/// sin, abs, round, floor, ...), constants (pi, e) and units (`5 km to miles`, `3 GiB to MB`).
/// Rounded values are marked "approx.". Use it for every calculation you cannot do in your head.
#[tool(
    category = "data",
    tags("math", "units"),
    read_only,
    destructive = false,
    idempotent,
    open_world = false,
    timeout = "5s",
    examples(
        r#"{"expression": "0.1 + 0.2"}"#,
        r#"{"expression": "sqrt(2) * 10^3"}"#,
        r#"{"expression": "5 km to miles"}"#
    )
)]
fn calculator(args: CalculatorArgs, cx: &CallContext) -> Result<Answer, ToolError> {
    let expression = args.expression.trim();
    check(expression)?;
    let watch = Watch::new(cx, TIME_LIMIT);
    let evaluated = on_own_stack(|| {
        fend_core::evaluate_with_interrupt(expression, &mut Context::new(), &Interrupted(&watch))
            .map(|result| result.get_main_result().to_owned())
    })?;
    match evaluated {
        Ok(Ok(result)) => answer(expression, &result),
        Ok(Err(message)) => Err(failure(&message, watch.stop())),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

struct Interrupted<'a>(&'a Watch);

impl Interrupt for Interrupted<'_> {
    fn should_interrupt(&self) -> bool {
        self.0.stop().is_some()
    }
}

fn answer(expression: &str, result: &str) -> Result<Answer, ToolError> {
    if result.is_empty() {
        return Err(malformed("the expression has no value"));
    }
    let chars = result.chars().count();
    if chars > MAX_RESULT_CHARS {
        return Err(ToolError::execution(format!(
            "the result has {chars} characters; at most {MAX_RESULT_CHARS} are given"
        ))
        .with_hint("Ask for fewer digits, for example `… to 20 sf`."));
    }
    let approximate = result.starts_with("approx. ");
    if approximate && asked_digits(expression).is_some_and(|digits| digits > APPROXIMATE_DIGITS) {
        return Err(ToolError::invalid_args(format!(
            "this value is not exact: no more than {APPROXIMATE_DIGITS} digits of it are right"
        ))
        .with_hint(format!("Ask for {APPROXIMATE_DIGITS} digits or fewer.")));
    }
    let result = result.strip_prefix("approx. ").unwrap_or(result).to_owned();
    Ok(Answer { result, approximate })
}

/// The digits that `to N dp` or `to N sf` asks for.
fn asked_digits(expression: &str) -> Option<u32> {
    let captures = ASKED_DIGITS.captures(expression)?;
    Some(captures[1].parse().unwrap_or(u32::MAX))
}

/// Refuses what the engine reads otherwise than people do, and what no interrupt can stop: dice
/// are whole distributions in memory, date arithmetic walks day by day, a shift walks bit by bit,
/// a lambda can call itself.
fn check(expression: &str) -> Result<(), ToolError> {
    let chars = expression.chars().count();
    if chars > MAX_CHARS {
        return Err(malformed(format!(
            "the expression has {chars} characters; at most {MAX_CHARS} are read"
        )));
    }
    check_parentheses(expression)?;
    check_shifts(expression)?;
    for (pattern, problem) in &*REFUSED {
        if let Some(found) = pattern.find(expression) {
            return Err(malformed(format!("`{}` is not understood: {problem}", found.as_str())));
        }
    }
    Ok(())
}

fn check_parentheses(expression: &str) -> Result<(), ToolError> {
    let mut open = 0_usize;
    for (at, symbol) in expression.chars().enumerate() {
        match symbol {
            '(' => open += 1,
            ')' if open == 0 => {
                return Err(malformed(format!("the `)` at character {} closes nothing", at + 1)));
            }
            ')' => open -= 1,
            _ => {}
        }
        if open > MAX_DEPTH {
            return Err(malformed(format!("more than {MAX_DEPTH} parentheses are nested")));
        }
    }
    match open {
        0 => Ok(()),
        1 => Err(malformed("a `(` is not closed")),
        open => Err(malformed(format!("{open} `(` are not closed"))),
    }
}

/// A shift by anything but a small literal may be a shift by anything.
fn check_shifts(expression: &str) -> Result<(), ToolError> {
    for (at, shift) in expression.match_indices("<<") {
        let amount = expression[at + shift.len()..].trim_start();
        let rest = amount.trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = amount.len() - rest.len();
        let ends = [")", "<<", ">>"].iter().any(|end| rest.trim_start().starts_with(end));
        if !(1..=4).contains(&digits) || !(ends || rest.trim().is_empty()) {
            return Err(malformed(
                "the right side of `<<` is one number of at most 4 digits: write `(1 << 10) + 1`",
            ));
        }
    }
    Ok(())
}

static ASKED_DIGITS: LazyLock<Regex> = LazyLock::new(|| pattern(r"(\d+)\s*(?:dp|sf)\b"));

static REFUSED: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| {
    [
        (r"//", "for a whole quotient write `floor(a / b)`"),
        (r"\b\d*d\d+\b", "there are no dice and no chance here"),
        (r#"["'#@\\]"#, "there is no text and there are no dates here; write `5 feet + 3 inches`"),
        (r"=>|:|;", "write one plain expression"),
        (r"(?:^|[^=!<>])=(?:[^=]|$)", "write one expression, without `=`"),
    ]
    .into_iter()
    .map(|(text, problem)| (pattern(text), problem))
    .collect()
});

#[expect(
    clippy::expect_used,
    reason = "the patterns are literals; every call of a test reads them"
)]
fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a literal pattern")
}

fn malformed(message: impl Into<String>) -> ToolError {
    ToolError::invalid_args(message).with_hint(
        "Write one expression such as `2 * (3 + 4)^2`, `sqrt(2)`, `20% of 50` or `5 km to miles`.",
    )
}

/// Sorts the engine's messages: what the expression means cannot be computed, or it means nothing.
fn failure(message: &str, stopped: Option<Stop>) -> ToolError {
    if message == "interrupted" {
        return match stopped {
            Some(Stop::Cancelled) => Stop::Cancelled.into_error(),
            _ => ToolError::execution("the numbers of this calculation grow too large")
                .with_hint("Use smaller exponents and factorials, or estimate with logarithms."),
        };
    }
    let undefined =
        ["division by zero", "modulo by zero", "zero to the power", "too large", "out of range"];
    if undefined.iter().any(|known| message.contains(known)) {
        return ToolError::execution(message);
    }
    malformed(message)
}
