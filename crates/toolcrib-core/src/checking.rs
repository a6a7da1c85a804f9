//! From a model's text to arguments a tool may rely on: parse or repair, strip, fill in, validate or
//! coerce and validate again.

use serde_json::Value;
use toolcrib_json::{ParseError, Tape, parse_owned};
use toolcrib_tool::{Arguments, ErrorKind, RawArguments, ToolError, ToolOutput};

use crate::arguments::coerce::{Coercion, coerce};
use crate::arguments::prepare::Preparation;
use crate::arguments::repair::{Repair, Unrepairable, repair};
use crate::registry::Slot;
use crate::schema::{InputValidator, SchemaCache};
use crate::violation::{SHOWN_VIOLATIONS, Violation};

/// Coercing an outer value may bring an inner one to light: text that holds a list of texts that
/// should be numbers takes two rounds.
const COERCION_ROUNDS: usize = 4;

/// What was done to a model's text before it was accepted; mostly nothing.
#[derive(Debug, Default)]
pub(crate) struct Mending(Option<Box<Mended>>);

#[derive(Debug, Default)]
struct Mended {
    repairs: Vec<Repair>,
    coercions: Vec<Coercion>,
}

impl Mending {
    fn mended(&mut self) -> &mut Mended {
        self.0.get_or_insert_default()
    }

    /// What was mended, one clause each.
    pub(crate) fn clauses(&self) -> Vec<String> {
        let Self(Some(mended)) = self else { return Vec::new() };
        let repairs = mended.repairs.iter().map(ToString::to_string);
        repairs.chain(mended.coercions.iter().map(ToString::to_string)).collect()
    }

    /// Says it in the result: the model meant something else than it wrote.
    pub(crate) fn noted_in(&self, mut output: ToolOutput) -> ToolOutput {
        let Self(Some(mended)) = self else { return output };
        let list = |items: Vec<String>| Value::from(items);
        if !mended.repairs.is_empty() {
            let repairs = mended.repairs.iter().map(ToString::to_string).collect();
            output = output.with_meta("repaired", list(repairs));
        }
        if !mended.coercions.is_empty() {
            let coercions = mended.coercions.iter().map(ToString::to_string).collect();
            output = output.with_meta("coerced", list(coercions));
        }
        output
    }
}

/// Text → arguments. `may_close` lets text that was cut off be closed.
///
/// A text that is accepted as it came is parsed once and never copied: the tool gets the tape that
/// was validated.
pub(crate) fn checked_arguments(
    slot: &Slot,
    schemas: &SchemaCache,
    raw: RawArguments,
    may_close: bool,
) -> Result<(Arguments, Mending), ToolError> {
    let mut mending = Mending::default();
    let raw = if raw.as_str().trim_start().is_empty() { "{}".into() } else { raw };
    let tape = match raw.into_tape() {
        Ok(tape) => tape,
        Err((error, text)) => {
            let (mended, repairs) = repair(&text, may_close)
                .map_err(|unrepairable| invalid_json(&text, &error, unrepairable))?;
            mending.mended().repairs = repairs;
            rewritten(mended)?
        }
    };
    let preparation = &slot.compiled().preparation;
    let validator = schemas.input(&slot.entry.definition)?;
    let tape = prepared(preparation, tape)?;
    if validator.is_valid(&tape) {
        return Ok((Arguments::from_tape(tape), mending));
    }
    match coerced(preparation, &validator, &tape)? {
        Some((tape, coercions)) => {
            mending.mended().coercions = coercions;
            Ok((Arguments::from_tape(tape), mending))
        }
        None => Err(refused(&validator, &tape)),
    }
}

/// The arguments after stripping and filling in.
fn prepared(preparation: &Preparation, tape: Tape<'static>) -> Result<Tape<'static>, ToolError> {
    match preparation.rewrite(&tape) {
        None => Ok(tape),
        Some(text) => rewritten(text),
    }
}

/// The arguments with the types the schema asks for, if they are valid then.
fn coerced(
    preparation: &Preparation,
    validator: &InputValidator,
    tape: &Tape<'_>,
) -> Result<Option<(Tape<'static>, Vec<Coercion>)>, ToolError> {
    let mut all: Vec<Coercion> = Vec::new();
    let mut last = None;
    for _ in 0..COERCION_ROUNDS {
        let tape = last.as_ref().unwrap_or(tape);
        let Some((next, coercions)) = coerce(tape, validator.errors(tape)) else {
            return Ok(None);
        };
        for coercion in coercions {
            all.retain(|earlier| earlier.pointer != coercion.pointer);
            all.push(coercion);
        }
        let next = prepared(preparation, rewritten(next)?)?;
        if validator.is_valid(&next) {
            return Ok(Some((next, all)));
        }
        last = Some(next);
    }
    Ok(None)
}

/// Everything that is wrong with what the model sent.
fn refused(validator: &InputValidator, tape: &Tape<'_>) -> ToolError {
    let violations = validator.violations(tape);
    let message = match violations.len() {
        1 => "the arguments do not fit the tool's schema".to_owned(),
        count => format!("the arguments do not fit the tool's schema in {count} places"),
    };
    listed(ToolError::invalid_args(message), &violations)
        .with_hint("Nothing was run. Correct the arguments and call again.")
}

/// Parses what we have written ourselves, which is made of checked pieces: if it does not parse,
/// the fault is ours.
fn rewritten(text: String) -> Result<Tape<'static>, ToolError> {
    parse_owned(text).map_err(|(error, _)| {
        ToolError::internal(format!("rewriting the arguments failed: {error}"))
    })
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
