//! `calculator`: exact arithmetic, functions, constants and units.

use std::sync::LazyLock;
use std::time::Duration;

use fend_core::{Context, Interrupt};
use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolcrib_macros::tool;
use toolcrib_tool::{CallContext, IntoOutcome, ToolError, ToolOutcome, ToolOutput, schema_for};

use super::bounded::{STACK_BYTES, StopCheck, StopReason};

/// The longest expression, in characters.
const MAX_CHARS: usize = 1_000;
/// The deepest nesting of parentheses.
const MAX_DEPTH: usize = 100;
/// The longest result, in characters.
const MAX_RESULT_CHARS: usize = 10_000;
/// Stack that every expression needs, in bytes.
const STACK_BASE: usize = 256 << 10;
/// Stack for each byte of an expression. Unoptimised builds need the most; the test
/// `no_expression_exceeds_its_estimated_stack_or_time` checks this figure.
const STACK_PER_BYTE: usize = 32 << 10;
/// The time limit of one expression. Ordinary ones take less than a millisecond.
const TIME_LIMIT: Duration = Duration::from_millis(500);
/// The most digits of an approximate value, which is computed in double precision.
const APPROXIMATE_DIGITS: u32 = 15;

#[derive(Deserialize, JsonSchema)]
struct CalculatorArgs {
    /// One expression, for example `(2 + 3) * 4^2`, `sqrt(2)`, `20% of 50`, `10 choose 3`,
    /// `sin(30 deg)`, `5 km to miles`, `100 C to F`, `22/7 to 3 dp`, `255 to hex`.
    #[schemars(length(min = 1, max = 1000))]
    expression: String,
}

/// The result of an expression.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
struct Calculation {
    /// The value with its unit, as text, because it may have more digits than a number can hold.
    result: String,
    /// Whether the value was rounded.
    approximate: bool,
}

impl IntoOutcome for Calculation {
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
fn calculator(args: CalculatorArgs, cx: &CallContext) -> Result<Calculation, ToolError> {
    let expression = args.expression.trim();
    check(expression)?;
    let watch = StopCheck::new(cx, TIME_LIMIT);
    match on_this_thread(expression, &Interrupted(&watch)) {
        Ok(result) => answer(expression, &result),
        Err(message) => Err(failure(&message, watch.stop())),
    }
}

/// Evaluates an expression on the calling thread: starting a thread costs ten times as much as an ordinary expression.
fn on_this_thread(expression: &str, interrupt: &impl Interrupt) -> Result<String, String> {
    stacker::maybe_grow(stack_needed(expression), STACK_BYTES, || evaluate(expression, interrupt))
}

/// Evaluates an expression in which all parentheses are closed.
///
/// The engine's parser takes twice as long for every level of `1+(1+(…`, and it cannot be interrupted while it parses.
/// So a group that contains groups is evaluated separately, from the inside out, and replaced by a variable: the engine
/// never sees more than two levels.
fn evaluate(expression: &str, interrupt: &impl Interrupt) -> Result<String, String> {
    let mut context = Context::new();
    let mut groups = 0_usize;
    // The text read so far of each open group, outermost first.
    let mut open = Vec::new();
    let mut text = String::new();
    for symbol in expression.chars() {
        match symbol {
            '(' => open.push(std::mem::take(&mut text)),
            ')' => {
                let inside = std::mem::replace(&mut text, open.pop().unwrap_or_default());
                text.push('(');
                if inside.contains('(') {
                    groups += 1;
                    let name = format!("group_{groups}");
                    let assigned = format!("{name} = {inside}");
                    fend_core::evaluate_with_interrupt(&assigned, &mut context, interrupt)?;
                    text.push_str(&name);
                } else {
                    text.push_str(&inside);
                }
                text.push(')');
            }
            other => text.push(other),
        }
    }
    let result = fend_core::evaluate_with_interrupt(&text, &mut context, interrupt)?;
    Ok(result.get_main_result().to_owned())
}

/// An upper bound of the stack that the engine needs for an expression, in bytes: every character may open another
/// level of its recursive parser and evaluator. Short expressions fit the stack of the calling thread; for others a
/// larger one is mapped during evaluation.
fn stack_needed(expression: &str) -> usize {
    STACK_BASE + expression.len() * STACK_PER_BYTE
}

struct Interrupted<'a>(&'a StopCheck);

impl Interrupt for Interrupted<'_> {
    fn should_interrupt(&self) -> bool {
        self.0.stop().is_some()
    }
}

fn answer(expression: &str, result: &str) -> Result<Calculation, ToolError> {
    if result.is_empty() {
        return Err(malformed("the expression has no value"));
    }
    let chars = result.chars().count();
    if chars > MAX_RESULT_CHARS {
        return Err(ToolError::execution(format!(
            "the result has {chars} characters; the limit is {MAX_RESULT_CHARS}"
        ))
        .with_hint("Ask for fewer digits, for example `… to 20 sf`."));
    }
    let approximate = result.starts_with("approx. ");
    if approximate && asked_digits(expression).is_some_and(|digits| digits > APPROXIMATE_DIGITS) {
        return Err(ToolError::invalid_args(format!(
            "this value is approximate: only {APPROXIMATE_DIGITS} digits of it are correct"
        ))
        .with_hint(format!("Ask for {APPROXIMATE_DIGITS} digits or fewer.")));
    }
    let result = result.strip_prefix("approx. ").unwrap_or(result).to_owned();
    Ok(Calculation { result, approximate })
}

/// The number of digits that `to N dp` or `to N sf` asks for.
fn asked_digits(expression: &str) -> Option<u32> {
    let captures = ASKED_DIGITS.captures(expression)?;
    Some(captures[1].parse().unwrap_or(u32::MAX))
}

/// Refuses input that the engine reads differently than people do, or that no interrupt can stop: dice are whole
/// distributions in memory, date arithmetic walks day by day, a shift walks bit by bit, a lambda can call itself.
fn check(expression: &str) -> Result<(), ToolError> {
    let chars = expression.chars().count();
    if chars > MAX_CHARS {
        return Err(malformed(format!(
            "the expression has {chars} characters; the limit is {MAX_CHARS}"
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
                return Err(malformed(format!(
                    "the `)` at character {} has no matching `(`",
                    at + 1
                )));
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

/// A shift by anything but a small literal could be arbitrarily large.
fn check_shifts(expression: &str) -> Result<(), ToolError> {
    for (at, shift) in expression.match_indices("<<") {
        let amount = expression[at + shift.len()..].trim_start();
        let rest = amount.trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = amount.len() - rest.len();
        let ends = [")", "<<", ">>"].iter().any(|end| rest.trim_start().starts_with(end));
        if !(1..=4).contains(&digits) || !(ends || rest.trim().is_empty()) {
            return Err(malformed(
                "the right side of `<<` must be one number of at most 4 digits: write `(1 << 10) \
                 + 1`",
            ));
        }
    }
    Ok(())
}

static ASKED_DIGITS: LazyLock<Regex> = LazyLock::new(|| pattern(r"(\d+)\s*(?:dp|sf)\b"));

static REFUSED: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| {
    [
        (r"//", "for a whole quotient write `floor(a / b)`"),
        (r"\b\d*d\d+\b", "dice and random numbers are not supported"),
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

/// Classifies the engine's messages: the value cannot be computed, or the expression is invalid.
fn failure(message: &str, stopped: Option<StopReason>) -> ToolError {
    if message == "interrupted" {
        return match stopped {
            Some(StopReason::Cancelled) => StopReason::Cancelled.into_error(),
            _ => ToolError::execution("the numbers of this calculation grow too large")
                .with_hint("Use smaller exponents and factorials, or estimate with logarithms."),
        };
    }
    let undefined =
        ["division by zero", "modulo by zero", "zero to the power", "too large", "out of range"];
    if undefined.iter().any(|known| message.contains(known)) {
        return ToolError::execution(message)
            .with_hint("Change the expression so that its value is defined and not too large.");
    }
    malformed(message)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::thread::{self, ThreadId};
    use std::time::Instant;

    use super::*;

    struct StopAt(Instant);

    impl Interrupt for StopAt {
        fn should_interrupt(&self) -> bool {
            Instant::now() > self.0
        }
    }

    /// Expressions within the limits that cause deep recursion or long backtracking in the engine.
    fn hostile() -> impl Iterator<Item = String> {
        let chains =
            [("-", "1"), ("1^", "2"), ("1+", "1"), ("1 ", "1"), ("1!+", "1"), ("(1)", "1")];
        let chains = chains.into_iter().flat_map(|(link, end)| {
            [1, 10, 30, 100, 300, 999].map(|links| format!("{}{end}", link.repeat(links)))
        });
        let levels =
            ["(", "1+(", "1+1+(", "(1+", "1 (", "sin(1+", "5% of (", "1 km + (", "1*1+1*("];
        let nested = levels.into_iter().flat_map(|level| {
            let open = |levels: usize| level.repeat(levels) + "1" + &")".repeat(levels);
            [2, 5, 20, 50, 100].map(open)
        });
        let wide = format!("{0}({0}({0}(1)))", "1+".repeat(150));
        let within = |expression: &String| check(expression).is_ok();
        chains.chain(nested).chain([wide]).filter(within)
    }

    /// A stack overflow would end the process, and this test with it.
    #[test]
    fn no_expression_exceeds_its_estimated_stack_or_time() {
        for expression in hostile() {
            let until = StopAt(Instant::now() + TIME_LIMIT);
            let (shown, stack) = (expression.clone(), stack_needed(&expression));
            let started = Instant::now();
            let thread = thread::Builder::new().stack_size(stack);
            let thread = thread.spawn(move || drop(evaluate(&expression, &until)));
            thread.unwrap().join().unwrap();
            let spent = started.elapsed();
            assert!(spent < Duration::from_secs(3), "{spent:?} for {shown}");
        }
    }

    /// Records the threads on which the engine asks whether to stop.
    #[derive(Default)]
    struct Threads(Mutex<Vec<ThreadId>>);

    impl Interrupt for Threads {
        fn should_interrupt(&self) -> bool {
            self.0.lock().unwrap().push(thread::current().id());
            false
        }
    }

    #[test]
    fn an_expression_is_evaluated_without_a_thread_of_its_own() {
        let long = vec!["1"; 300].join("+");
        assert!(stack_needed("2^64") < stack_needed(&long));
        for (expression, result) in [("2^64", "18446744073709551616"), (&*long, "300")] {
            let threads = Threads::default();
            assert_eq!(on_this_thread(expression, &threads).as_deref(), Ok(result));
            let threads = threads.0.into_inner().unwrap();
            assert!(!threads.is_empty(), "the engine asks while it evaluates");
            let own = thread::current().id();
            assert!(threads.iter().all(|thread| *thread == own), "{expression}");
        }
    }

    #[test]
    fn nested_groups_give_the_same_result_as_the_whole_expression() {
        let never = StopAt(Instant::now() + Duration::from_secs(60));
        for (expression, result) in [
            ("((1+2)*(3+4))^2", "441"),
            ("sqrt((3^2)+(4^2))", "5"),
            ("2((1+(2)))", "6"),
            ("((5 km) + (300 m)) to m", "5300 m"),
            ("((1/3)+(1/3)) * 3", "2"),
            ("(20% of (50)) + ((1))", "11"),
            ("1+(1+(1+(1+(1+(1+(1+(1+(1+(1)))))))))", "10"),
        ] {
            assert_eq!(evaluate(expression, &never).as_deref(), Ok(result), "{expression}");
        }
    }
}
