//! From a model's text to arguments a tool may rely on: parse or repair, strip, fill in, validate or
//! coerce and validate again.

use serde_json::Value;
use toolcrib_tool::{Arguments, ErrorKind, RawArguments, ToolError, ToolOutput};

use crate::arguments::coerce::{Coercion, coerce};
use crate::arguments::parse::{ParseError, parse};
use crate::arguments::repair::{Repair, Unrepairable, repair};
use crate::arguments::tape::Tape;
use crate::registry::Compiled;
use crate::violation::{SHOWN_VIOLATIONS, Violation};

/// Coercing an outer value may bring an inner one to light: text that holds a list of texts that
/// should be numbers takes two rounds.
const COERCION_ROUNDS: usize = 4;

/// What was done to a model's text before it was accepted.
#[derive(Debug, Default)]
pub(crate) struct Mending {
    repairs: Vec<Repair>,
    coercions: Vec<Coercion>,
}

impl Mending {
    /// Says it in the result: the model meant something else than it wrote.
    pub(crate) fn noted_in(&self, mut output: ToolOutput) -> ToolOutput {
        let list = |items: Vec<String>| Value::from(items);
        if !self.repairs.is_empty() {
            let repairs = self.repairs.iter().map(ToString::to_string).collect();
            output = output.with_meta("repaired", list(repairs));
        }
        if !self.coercions.is_empty() {
            let coercions = self.coercions.iter().map(ToString::to_string).collect();
            output = output.with_meta("coerced", list(coercions));
        }
        output
    }
}

/// Text → arguments. `may_close` lets text that was cut off be closed.
pub(crate) fn checked_arguments(
    compiled: &Compiled,
    raw: RawArguments,
    may_close: bool,
) -> Result<(Arguments, Mending), ToolError> {
    let mut text = raw.into_string();
    let mut mending = Mending::default();
    if text.trim().is_empty() {
        "{}".clone_into(&mut text);
    }
    let attempt = match attempt(compiled, &text) {
        Ok(attempt) => attempt,
        Err(error) => {
            let (mended, repairs) = repair(&text, may_close)
                .map_err(|unrepairable| invalid_json(&text, &error, unrepairable))?;
            mending.repairs = repairs;
            text = mended;
            attempt(compiled, &text).map_err(|error| unexpected(&error))?
        }
    };
    match attempt {
        Attempt::Valid(None) => Ok((Arguments::from_validated(text), mending)),
        Attempt::Valid(Some(rewritten)) => Ok((Arguments::from_validated(rewritten), mending)),
        Attempt::Invalid(rewritten) => {
            let text = rewritten.unwrap_or(text);
            match coerced(compiled, &text)? {
                Some((text, coercions)) => {
                    mending.coercions = coercions;
                    Ok((Arguments::from_validated(text), mending))
                }
                None => Err(refused(compiled, &text)?),
            }
        }
    }
}

/// A text after stripping and filling in; `None` if that changed nothing.
enum Attempt {
    Valid(Option<String>),
    Invalid(Option<String>),
}

fn attempt(compiled: &Compiled, text: &str) -> Result<Attempt, ParseError> {
    let judge = |tape: &Tape<'_>, rewritten| {
        if compiled.input.accepts(tape) {
            Attempt::Valid(rewritten)
        } else {
            Attempt::Invalid(rewritten)
        }
    };
    let tape = parse(text)?;
    match compiled.preparation.rewrite(&tape) {
        None => Ok(judge(&tape, None)),
        Some(rewritten) => {
            let tape = parse(&rewritten)?;
            // Judged before the text moves: the tape borrows from it.
            Ok(match judge(&tape, None) {
                Attempt::Valid(_) => Attempt::Valid(Some(rewritten)),
                Attempt::Invalid(_) => Attempt::Invalid(Some(rewritten)),
            })
        }
    }
}

/// The text with the types the schema asks for, if it is valid then.
fn coerced(compiled: &Compiled, text: &str) -> Result<Option<(String, Vec<Coercion>)>, ToolError> {
    let mut text = text.to_owned();
    let mut all: Vec<Coercion> = Vec::new();
    for _ in 0..COERCION_ROUNDS {
        let tape = parse(&text).map_err(|error| unexpected(&error))?;
        let Some((next, coercions)) = coerce(&tape, compiled.input.errors(&tape)) else {
            return Ok(None);
        };
        for coercion in coercions {
            all.retain(|earlier| earlier.pointer != coercion.pointer);
            all.push(coercion);
        }
        match attempt(compiled, &next).map_err(|error| unexpected(&error))? {
            Attempt::Valid(rewritten) => return Ok(Some((rewritten.unwrap_or(next), all))),
            Attempt::Invalid(rewritten) => text = rewritten.unwrap_or(next),
        }
    }
    Ok(None)
}

/// Everything that is wrong with what the model sent.
fn refused(compiled: &Compiled, text: &str) -> Result<ToolError, ToolError> {
    let tape = parse(text).map_err(|error| unexpected(&error))?;
    let violations = compiled.input.violations(&tape);
    let message = match violations.len() {
        1 => "the arguments do not fit the tool's schema".to_owned(),
        count => format!("the arguments do not fit the tool's schema in {count} places"),
    };
    Ok(listed(ToolError::invalid_args(message), &violations)
        .with_hint("Nothing was run. Correct the arguments and call again."))
}

/// Our own rewriting is made of checked pieces; if it does not parse, the fault is ours.
fn unexpected(error: &ParseError) -> ToolError {
    ToolError::internal(format!("rewriting the arguments failed: {error}"))
}

fn invalid_json(text: &str, error: &ParseError, unrepairable: Unrepairable) -> ToolError {
    let character = text.get(..error.offset).map_or(error.offset, |before| before.chars().count());
    let cut_off = match unrepairable {
        Unrepairable::CutOff => "; the arguments look cut off",
        Unrepairable::Other => "",
    };
    ToolError::new(
        ErrorKind::InvalidJson,
        format!(
            "the arguments are not valid JSON: {} at character {}{cut_off}",
            error.problem,
            character + 1
        ),
    )
    .with_hint("Nothing was run. Send one complete JSON object.")
}

/// Adds a line per violation.
pub(crate) fn listed(mut error: ToolError, violations: &[Violation]) -> ToolError {
    for violation in violations.iter().take(SHOWN_VIOLATIONS) {
        error = error.with_hint(format!("- {violation}"));
    }
    match violations.len().checked_sub(SHOWN_VIOLATIONS) {
        None | Some(0) => error,
        Some(more) => error.with_hint(format!("- and {more} more")),
    }
}
