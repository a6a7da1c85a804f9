//! Questions of a worker: a call ends with one, and is sent again with the answer.

use serde_json::{Map, Value};
use toolcrib_tool::{Ask, InputPart, InputRequest};

use crate::output::redact_patterns::CallRedaction;

/// Reads `ask`: one question, or a list of questions with a key each. Fails with a clause about the line.
pub(super) fn read(ask: Value, remembered: Option<Value>) -> Result<InputRequest, String> {
    let mut request = match ask {
        Value::Object(mut question) => {
            let message =
                text(&mut question, "message").map_err(|what| format!("its `ask` {what}"))?;
            let schema = schema(&mut question).map_err(|what| format!("its `ask` {what}"))?;
            InputRequest::new(message, schema)
        }
        Value::Array(questions) if !questions.is_empty() => {
            let parts = questions
                .into_iter()
                .enumerate()
                .map(|(at, question)| part(question).map_err(|what| format!("`ask[{at}]` {what}")));
            let parts = parts.collect::<Result<Vec<_>, _>>()?;
            for (at, part) in parts.iter().enumerate() {
                if parts[..at].iter().any(|other| other.key == part.key) {
                    return Err(format!("two questions of `ask` have the key `{}`", part.key));
                }
            }
            InputRequest::of(parts)
        }
        _ => {
            return Err(
                "its `ask` is neither an object with `message` and `schema` nor a list of \
                        questions"
                    .into(),
            );
        }
    };
    request.remembered = remembered;
    Ok(request)
}

fn part(question: Value) -> Result<InputPart, String> {
    let Value::Object(mut question) = question else { return Err("is not an object".into()) };
    let key = text(&mut question, "key")?;
    let kind = question.remove("kind");
    let part = match kind.as_ref().map_or(Some("form"), Value::as_str) {
        Some("form") => {
            InputPart::form(key, text(&mut question, "message")?, schema(&mut question)?)
        }
        Some("sample") => {
            let tokens = question.get("max_tokens").and_then(Value::as_u64);
            let tokens = tokens.and_then(|tokens| u32::try_from(tokens).ok());
            let Some(tokens) = tokens else { return Err("has no `max_tokens`".into()) };
            InputPart::sample(key, text(&mut question, "prompt")?, tokens)
        }
        Some("roots") => InputPart::roots(key),
        _ => return Err("has a `kind` other than form, sample and roots".into()),
    };
    let is_optional = question.get("optional") == Some(&Value::Bool(true));
    Ok(if is_optional { part.optional() } else { part })
}

fn text(question: &mut Map<String, Value>, name: &str) -> Result<String, String> {
    match question.remove(name) {
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(format!("has a `{name}` that is not text")),
        None => Err(format!("has no `{name}`")),
    }
}

/// The schema of an answer. No answer could fit one that cannot be compiled.
fn schema(question: &mut Map<String, Value>) -> Result<Value, String> {
    let Some(schema) = question.remove("schema") else { return Err("has no `schema`".into()) };
    match jsonschema::validator_for(&schema) {
        Ok(_) => Ok(schema),
        Err(error) => Err(format!("has a `schema` that is not JSON Schema: {error}")),
    }
}

/// The question as it may be shown.
pub(super) fn shown(mut request: InputRequest, redaction: CallRedaction<'_>) -> InputRequest {
    let text = |text: &mut String| *text = redaction.shown(std::mem::take(text));
    let schema = |schema: &mut Value| {
        *schema = redaction.data(std::mem::take(schema).into()).into_protected();
    };
    text(&mut request.message);
    schema(&mut request.schema);
    for part in &mut request.parts {
        match &mut part.ask {
            Ask::Form { message, schema: form } => {
                text(message);
                schema(form);
            }
            Ask::Sample { prompt, .. } => text(prompt),
            _ => {}
        }
    }
    request
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolcrib_tool::{CallContext, ToolDefinition};

    use super::*;
    use crate::output::redact_patterns::Redaction;

    #[test]
    fn one_question_or_several_are_read() {
        let schema = json!({"type": "object", "properties": {"town": {"type": "string"}}});
        let one = read(json!({"message": "Where?", "schema": schema}), Some(json!(7))).unwrap();
        assert_eq!(one, InputRequest::new("Where?", schema.clone()).remember(7));
        let several = read(
            json!([
                {"key": "place", "message": "Where?", "schema": schema},
                {"key": "title", "kind": "sample", "prompt": "A title", "max_tokens": 50},
                {"key": "folders", "kind": "roots", "optional": true},
            ]),
            None,
        );
        let parts = [
            InputPart::form("place", "Where?", schema),
            InputPart::sample("title", "A title", 50),
            InputPart::roots("folders").optional(),
        ];
        assert_eq!(several.unwrap(), InputRequest::of(parts));
    }

    #[test]
    fn a_wrong_question_is_named() {
        let form = json!({"key": "a", "message": "?", "schema": {}});
        for (ask, problem) in [
            (json!("?"), "its `ask` is neither an object"),
            (json!([]), "its `ask` is neither an object"),
            (json!({"message": "?"}), "its `ask` has no `schema`"),
            (json!({"message": "?", "schema": {"type": 7}}), "`schema` that is not JSON Schema"),
            (json!([form, form]), "two questions of `ask` have the key `a`"),
            (json!([form, {"key": "b", "kind": "file"}]), "`ask[1]` has a `kind` other than"),
            (json!([{"key": "b", "kind": "sample", "prompt": "?"}]), "has no `max_tokens`"),
        ] {
            let said = read(ask, None).unwrap_err();
            assert!(said.contains(problem), "{said}");
        }
    }

    #[test]
    fn patterns_redact_what_is_asked() {
        let patterns = Redaction::new(&["secret-[0-9]".into()]).unwrap();
        let definition = ToolDefinition::builder("t").description("d").build().unwrap();
        let cx = CallContext::builder("c", definition).build();
        let redaction = CallRedaction { patterns: &patterns, cx: &cx };
        let schema = json!({"title": "secret-1"});
        let asked = InputRequest::new("secret-2\u{1b}?", schema.clone());
        let shown_one = shown(asked, redaction);
        assert_eq!(shown_one.message, "[redacted]\\u{1b}?");
        assert_eq!(shown_one.schema, json!({"title": "[redacted]"}));
        let several = shown(InputRequest::of([InputPart::form("a", "b", schema)]), redaction);
        assert!(!format!("{several:?}").contains("secret-1"), "{several:?}");
    }
}
