//! The command of a `local_shell_call`.

use serde_json::{Map, Value, json};

/// The item's `action`, from the arguments of the tool `local_shell`.
///
/// `command` is a list of words; a single text is tolerated and passed to the client's shell as `["bash", "-lc",
/// text]`. `env`, `timeout_ms`, `user` and `working_directory` may be absent or null.
pub(super) fn action(arguments: &str) -> Result<Value, String> {
    let arguments: Value =
        serde_json::from_str(arguments).map_err(|error| format!("they are not JSON: {error}"))?;
    let Value::Object(arguments) = arguments else {
        return Err("they are not a JSON object".to_owned());
    };
    let mut action = Map::new();
    action.insert("type".to_owned(), "exec".into());
    action.insert("command".to_owned(), command(arguments.get("command"))?);
    action.insert("env".to_owned(), env(arguments.get("env"))?);
    for (key, what, fits) in [
        ("timeout_ms", "a whole number of milliseconds", Value::is_u64 as fn(&Value) -> bool),
        ("user", "a text", Value::is_string),
        ("working_directory", "a text", Value::is_string),
    ] {
        match arguments.get(key).filter(|value| !value.is_null()) {
            Some(value) if fits(value) => {
                action.insert(key.to_owned(), value.clone());
            }
            Some(_) => return Err(format!("`{key}` must be {what}")),
            None => {}
        }
    }
    Ok(Value::Object(action))
}

fn command(given: Option<&Value>) -> Result<Value, String> {
    match given {
        Some(Value::String(line)) if !line.trim().is_empty() => Ok(json!(["bash", "-lc", line])),
        Some(Value::Array(words)) if !words.is_empty() && words.iter().all(Value::is_string) => {
            Ok(Value::Array(words.clone()))
        }
        _ => Err("`command` must be a list of at least one string".to_owned()),
    }
}

fn env(given: Option<&Value>) -> Result<Value, String> {
    match given {
        None | Some(Value::Null) => Ok(json!({})),
        Some(Value::Object(variables)) if variables.values().all(Value::is_string) => {
            Ok(Value::Object(variables.clone()))
        }
        Some(_) => Err("`env` must be an object of strings".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_text_is_a_shell_command_line() {
        let line = action(r#"{"command": "ls | wc -l", "user": null}"#).unwrap();
        assert_eq!(
            line,
            json!({"type": "exec", "command": ["bash", "-lc", "ls | wc -l"], "env": {}})
        );
    }

    #[test]
    fn every_field_is_carried_and_checked() {
        let all = json!({
            "command": ["make"], "env": {"CC": "gcc"}, "timeout_ms": 500, "user": "ci",
            "working_directory": "/src",
        });
        let mut expected = all.clone();
        expected["type"] = "exec".into();
        assert_eq!(action(&all.to_string()).unwrap(), expected);
        for (arguments, says) in [
            ("nonsense", "not JSON"),
            ("[]", "not a JSON object"),
            ("{}", "`command`"),
            (r#"{"command": []}"#, "`command`"),
            (r#"{"command": ["a", 1]}"#, "`command`"),
            (r#"{"command": ["a"], "env": {"A": 1}}"#, "`env`"),
            (r#"{"command": ["a"], "timeout_ms": -1}"#, "`timeout_ms`"),
            (r#"{"command": ["a"], "user": 7}"#, "`user`"),
        ] {
            let error = action(arguments).unwrap_err();
            assert!(error.contains(says), "{arguments}: {error}");
        }
    }
}
