//! Tool definitions for OpenAI's two APIs.

use serde_json::{Map, Value, json};

use crate::report::{Refused, Walk};
use crate::schema::root::{add_missing_items, plain_root};
use crate::strict::strict;

/// The parameters of a function, in strict form or unchanged.
pub(crate) fn parameters(
    schema: &Value,
    is_strict: bool,
    walk: &mut Walk,
) -> Result<Value, Refused> {
    if is_strict {
        return strict(schema, walk);
    }
    let mut parameters = plain_root(schema, walk)?;
    add_missing_items(&mut parameters);
    Ok(parameters)
}

/// A tool of chat completions.
pub(crate) fn chat_tool(
    name: &str,
    description: &str,
    parameters: Value,
    is_strict: bool,
) -> Value {
    let mut function = function(name, description, parameters);
    if is_strict {
        function.insert("strict".to_owned(), true.into());
    }
    json!({"type": "function", "function": function})
}

/// A tool of the Responses API. `strict` is always written, because the API would turn it on otherwise.
pub(crate) fn responses_tool(
    name: &str,
    description: &str,
    parameters: Value,
    is_strict: bool,
) -> Value {
    let mut tool = function(name, description, parameters);
    tool.insert("type".to_owned(), "function".into());
    tool.insert("strict".to_owned(), is_strict.into());
    Value::Object(tool)
}

fn function(name: &str, description: &str, parameters: Value) -> Map<String, Value> {
    let mut function = Map::new();
    function.insert("name".to_owned(), name.into());
    if !description.is_empty() {
        function.insert("description".to_owned(), description.into());
    }
    function.insert("parameters".to_owned(), parameters);
    function
}
