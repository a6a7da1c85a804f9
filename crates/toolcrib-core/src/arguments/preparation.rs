//! From a model's text to arguments that a tool can rely on: parse or repair, strip, fill in
//! defaults, validate, or coerce and validate again.

use std::collections::HashSet;

use jsonschema::ValidationError;
use toolcrib_json::{ParseError, Tape, parse_owned};
use toolcrib_tool::{Arguments, ErrorKind, RawArguments, ToolError};

use crate::arguments::coerce::{Coercion, coerce};
use crate::arguments::corrections::Corrections;
use crate::arguments::messages::{Coerced, refusal};
use crate::arguments::prepare::Preparation;
use crate::arguments::repair::{Unrepairable, repair};
use crate::arguments::validators::{Problems, SchemaCache, SchemaValidator};
use crate::arguments::violation::Violations;
use crate::output::excerpt::shorten;
use crate::registry::ToolSlot;

/// Coercing an outer value may reveal an inner one: text that contains a list of texts that should
/// be numbers takes two rounds.
const COERCION_ROUNDS: usize = 4;

/// Larger arguments are not repaired, and are coerced only if one round can solve every problem:
/// each attempt costs as much as parsing them.
const LARGE: usize = 1024 * 1024;

/// How many characters of a parser error a message shows. The error may quote a name.
const SHOWN_PROBLEM: usize = 200;

/// Text → arguments. `may_close` lets text that was cut off be closed.
///
/// A text that is accepted unchanged is parsed once and never copied: the tool gets the tape that
/// was validated. Corrections are recorded in `mending`, even if the arguments are refused. It
/// takes linear time, however invalid the arguments are.
pub(crate) fn checked_arguments(
    slot: &ToolSlot,
    schemas: &SchemaCache,
    raw: RawArguments,
    may_close: bool,
    mending: &mut Corrections,
) -> Result<Arguments, ToolError> {
    let raw = if raw.as_str().trim_start().is_empty() { "{}".into() } else { raw };
    let tape = match raw.into_tape() {
        Ok(tape) => tape,
        Err((error, text)) => {
            if text.len() > LARGE {
                return Err(invalid_json(&text, &error, Unrepairable::Other));
            }
            let (mended, repairs) = repair(&text, may_close)
                .map_err(|unrepairable| invalid_json(&text, &error, unrepairable))?;
            mending.repaired(&repairs);
            rewritten(mended)?
        }
    };
    let preparation = &slot.compiled().preparation;
    let validator = schemas.input(&slot.entry.definition)?;
    let tape = prepared(preparation, tape, mending)?;
    if validator.is_valid(&tape)? {
        return Ok(Arguments::from_tape(tape));
    }
    coerced(preparation, &validator, &tape, mending).map(Arguments::from_tape)
}

/// The arguments after stripping and filling in.
fn prepared(
    preparation: &Preparation,
    tape: Tape<'static>,
    mending: &mut Corrections,
) -> Result<Tape<'static>, ToolError> {
    match preparation.rewrite(&tape) {
        None => Ok(tape),
        Some(text) => {
            mending.stripped(preparation.stripped(&tape));
            rewritten(text)
        }
    }
}

/// The arguments with the types that the schema requires, or why they are refused.
fn coerced(
    preparation: &Preparation,
    validator: &SchemaValidator,
    original: &Tape<'_>,
    mending: &mut Corrections,
) -> Result<Tape<'static>, ToolError> {
    let bounds = validator.bounds(original);
    let first = validator.problems(original, &bounds)?;
    let rounds = if original.text().len() > LARGE { 1 } else { COERCION_ROUNDS };
    let mut done = Coerced::default();
    let mut next = next_round(original, &first, validator);
    for round in 1.. {
        let Some((text, coercions)) = next else { break };
        if rounds == 1 && places(&first.errors) > coercions.len() {
            // Something stays invalid. Another pass over large arguments would cost as much as the
            // call.
            break;
        }
        done.add(coercions);
        let tape = prepared(preparation, rewritten(text)?, mending)?;
        let bounds = validator.bounds(&tape);
        let found = validator.problems(&tape, &bounds)?;
        if found.errors.is_empty() && !found.stopped {
            mending.coerced(done.list());
            drop(found);
            return Ok(tape);
        }
        next = (round < rounds).then(|| next_round(&tape, &found, validator)).flatten();
        if next.is_none() {
            let (violations, helped) =
                refusal(original, &first, &tape, &found, &done, validator.schema());
            mending.coerced(&helped);
            return Err(refused(&violations));
        }
    }
    Err(refused(&Violations::of(&first.errors, original, validator.schema(), first.stopped)))
}

/// The number of places with errors.
fn places(errors: &[ValidationError<'_>]) -> usize {
    let places: HashSet<_> = errors.iter().map(|error| error.instance_path().as_str()).collect();
    places.len()
}

/// The result of the next round of coercion. If the search for problems was cut off, it cannot
/// solve them all.
fn next_round(
    tape: &Tape<'_>,
    found: &Problems<'_>,
    validator: &SchemaValidator,
) -> Option<(String, Vec<Coercion>)> {
    if found.stopped { None } else { coerce(tape, &found.errors, validator.schema()) }
}

/// Everything that is wrong with what the model sent.
fn refused(violations: &Violations) -> ToolError {
    let more_than = if violations.stopped { "more than " } else { "" };
    let message = match violations.count() {
        0 | 1 => "the arguments do not fit the tool's schema".to_owned(),
        count => format!("the arguments do not fit the tool's schema in {more_than}{count} places"),
    };
    listed(ToolError::invalid_args(message), violations)
        .with_hint("Nothing was run. Correct the arguments and call again.")
}

/// Parses text that we wrote ourselves from checked pieces. A failure is an internal error.
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
            shorten(&error.problem, SHOWN_PROBLEM),
            character + 1
        ),
    )
    .with_hint("Nothing was run. Send one complete JSON object.")
}

/// Adds one hint per violation, and the number of those left out.
pub(crate) fn listed(mut error: ToolError, violations: &Violations) -> ToolError {
    for violation in &violations.kept {
        error = error.with_hint(format!("- {violation}"));
    }
    match (violations.more, violations.stopped) {
        (0, false) => error,
        (0, true) => error.with_hint("- and more"),
        (more, false) => error.with_hint(format!("- and {more} more")),
        (more, true) => error.with_hint(format!("- and at least {more} more")),
    }
}
