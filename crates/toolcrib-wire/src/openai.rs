//! OpenAI's two ways to be told about a function.

use serde_json::{Map, Value, json};

use crate::report::{Refused, Walk};
use crate::schema::root::{plain_root, say_items};
use crate::strict::strict;

/// The parameters of a function, in strict form or as they are.
pub(crate) fn parameters(
    schema: &Value,
    is_strict: bool,
    walk: &mut Walk,
) -> Result<Value, Refused> {
    if is_strict {
        return strict(schema, walk);
    }
    let mut parameters = plain_root(schema, walk)?;
    say_items(&mut parameters);
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

/// A tool of the Responses API. `strict` is always said: the API turns it on where it is not.
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
