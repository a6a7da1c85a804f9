//! Whether OpenAI's types, as the crate `async-openai` has them, read a request completely.

use async_openai::types::chat::CreateChatCompletionRequest;
use async_openai::types::responses::CreateResponse;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toolcrib_wire::model::Wire;

/// Members of requests that OpenAI's own API does not have.
const OF_OTHERS: &[&str] = &[
    // Reasoning of other providers of chat completions, which they want back.
    "reasoning_content",
];

/// Checks that the types parse the body of a request, and that none of it is lost between them.
pub(super) fn check(wire: Wire, body: &Value) -> Result<(), String> {
    match wire {
        Wire::Chat => check_as::<CreateChatCompletionRequest>(body),
        Wire::Responses => check_as::<CreateResponse>(body),
        _ => Ok(()),
    }
}

fn check_as<T: DeserializeOwned + Serialize>(body: &Value) -> Result<(), String> {
    let read: T = serde_json::from_value(body.clone())
        .map_err(|error| format!("async-openai's types do not parse the request: {error}"))?;
    let kept = serde_json::to_value(read).map_err(|error| error.to_string())?;
    match lost("", body, &kept) {
        None => Ok(()),
        Some(place) => Err(format!("async-openai's types do not know {place}")),
    }
}

/// The first place whose value is not in `kept`.
fn lost(place: &str, sent: &Value, kept: &Value) -> Option<String> {
    match (sent, kept) {
        (Value::Object(sent), Value::Object(kept)) => sent.iter().find_map(|(key, value)| {
            let place = format!("{place}/{key}");
            match kept.get(key) {
                _ if OF_OTHERS.contains(&key.as_str()) => None,
                Some(kept) => lost(&place, value, kept),
                // A member that is left out if it is null means the same.
                None => (!value.is_null()).then_some(place),
            }
        }),
        (Value::Array(sent), Value::Array(kept)) if sent.len() == kept.len() => {
            let pairs = sent.iter().zip(kept).enumerate();
            pairs
                .into_iter()
                .find_map(|(at, (sent, kept))| lost(&format!("{place}/{at}"), sent, kept))
        }
        _ => (sent != kept).then(|| format!("{place}: {sent} became {kept}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn requests_of_another_shape_are_refused() {
        let chat =
            |message: Value| check(Wire::Chat, &json!({"model": "m", "messages": [message]}));
        assert_eq!(chat(json!({"role": "user", "content": "Hello."})), Ok(()));
        for message in [
            json!({"role": "nobody", "content": "Hello."}),
            json!({"role": "user", "content": "Hello.", "colour": "red"}),
            json!({"role": "tool", "content": "done"}),
        ] {
            assert!(chat(message.clone()).is_err(), "{message}");
        }
        let responses =
            |item: Value| check(Wire::Responses, &json!({"model": "m", "input": [item]}));
        let call = json!({"type": "function_call", "call_id": "c", "name": "n", "arguments": "{}"});
        assert_eq!(responses(call), Ok(()));
        let nameless = json!({"type": "function_call", "call_id": "c", "arguments": "{}"});
        assert!(responses(nameless).is_err());
    }
}
