//! A form on the terminal: asks for each field of a question.

use std::fmt::Write as _;
use std::io;

use serde_json::{Map, Value, json};
use toolcrib::core::suspension::check_answer;
use toolcrib::tool::{ToolError, canonical_json, fully_visible, fully_visible_text};
use toolcrib::wire::{Parameter, fields};

use crate::arguments;
use crate::screen::parameter::parameter_text;
use crate::screen::{self, ERROR, STRONG, WARNING};
use crate::terminal_line::{self, HiddenInput};

/// Shows the question with its fields and reads a value for each. An empty line stands for the
/// default; a value that does not fit is asked for again. `None` at the end of input.
pub(super) async fn filled(message: &str, schema: &Value) -> io::Result<Option<Value>> {
    let fields = fields(schema);
    screen::note(heading(message, &fields));
    let mut answer = Map::new();
    for field in &fields {
        let (property, only) = alone(field, schema);
        let is_secret = property.is_some_and(is_password);
        loop {
            // Before the prompt: somebody may type at once.
            let hidden = is_secret.then(HiddenInput::begin);
            screen::ask(prompt(field, is_secret));
            let Some(line) = terminal_line::read().await? else { return Ok(None) };
            drop(hidden);
            let value = match line.as_str() {
                "" => field.default.clone(),
                line => Some(arguments::typed(line, property)),
            };
            let given: Map<_, _> =
                value.map(|value| (field.name.clone(), value)).into_iter().collect();
            match check_answer(&only, &Value::Object(given.clone())) {
                Ok(()) => {
                    answer.extend(given);
                    break;
                }
                Err(error) => refused(&error, is_secret),
            }
        }
    }
    if !fields.is_empty() {
        return Ok(Some(Value::Object(answer)));
    }
    let hidden = is_password(schema).then(HiddenInput::begin);
    screen::ask("answer: ");
    let line = terminal_line::read().await?;
    drop(hidden);
    Ok(line.map(|line| match line.as_str() {
        "" => Value::Object(answer),
        line => arguments::typed(line, Some(schema)),
    }))
}

/// Whether nobody who looks at the screen may read a value.
fn is_password(schema: &Value) -> bool {
    schema["format"] == "password" || schema["writeOnly"] == true
}

/// Whether a question asks for such a value.
pub(super) fn has_password(schema: &Value) -> bool {
    let fields = schema["properties"].as_object();
    is_password(schema) || fields.is_some_and(|fields| fields.values().any(is_password))
}

/// Says why an answer was not accepted. Messages about a secret answer would show it.
pub(super) fn refused(error: &ToolError, is_secret: bool) {
    if is_secret {
        screen::note(format!(
            "{ERROR}not accepted{ERROR:#}: the answer does not fit the fields above; it is not shown"
        ));
        return;
    }
    screen::note(format!("{ERROR}not accepted{ERROR:#}: {}", error.message()));
    error.hints().iter().for_each(screen::note);
}

/// The schema of a field, and the schema of an answer with this field alone.
fn alone<'s>(field: &Parameter, schema: &'s Value) -> (Option<&'s Value>, Value) {
    let property = schema.get("properties").and_then(|all| all.get(&field.name));
    let mut only = json!({"properties": {&*field.name: property}});
    if field.required {
        only["required"] = json!([field.name]);
    }
    for definitions in ["$defs", "definitions"] {
        if let Some(all) = schema.get(definitions) {
            only[definitions] = all.clone();
        }
    }
    (property, only)
}

fn heading(message: &str, fields: &[Parameter]) -> String {
    let mut heading = format!(
        "{WARNING}question{WARNING:#} {STRONG}{}{STRONG:#}\n",
        fully_visible_text(message.trim())
    );
    for field in fields {
        let _ = write!(heading, "{}", parameter_text(field));
    }
    heading
}

/// The name of a field, and what an empty line stands for.
fn prompt(field: &Parameter, is_secret: bool) -> String {
    let name = fully_visible(&field.name);
    match &field.default {
        Some(_) if is_secret => format!("{name} [the default]: "),
        None => format!("{name}: "),
        Some(Value::String(text)) => format!("{name} [{}]: ", fully_visible(text)),
        Some(value) => format!("{name} [{}]: ", fully_visible(&canonical_json(value))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_question_shows_its_fields_and_cannot_redraw_the_screen() {
        let schema = json!({"required": ["town"], "properties": {
            "town": {"type": "string", "enum": ["Bonn", "U\u{1b}[2Klm"], "default": "Bonn"},
            "days": {"type": "integer", "minimum": 1, "description": "How\u{202e} long."},
        }});
        let shown = heading("Which\u{9b}2J town?\nquestion", &fields(&schema));
        let shown = anstream::adapter::strip_str(&shown).to_string();
        assert!(!shown.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{shown:?}");
        for part in [
            "question Which\\u{9b}2J town?",
            "days (integer, optional)",
            "at least 1",
            "town (string, required, default \"Bonn\")",
            "one of \"Bonn\", \"U",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
    }
}
