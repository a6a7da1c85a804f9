//! The format as a JSON Schema, generated from the tables of keys.

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::{FORMAT_VERSION, keys};
use crate::fields::{Expected, Key, Keys, Presence};
use crate::units::{ByteSize, HumanDuration};

/// The JSON Schema (2020-12) of manifests, for editors: the keys, their types, and which are
/// required. Other checks, such as whether a reference is declared, are left to `toolcrib check`.
///
/// ```
/// let schema = toolcrib_manifest::manifest_schema();
/// assert_eq!(schema["properties"]["toolcrib"]["const"], toolcrib_manifest::FORMAT_VERSION);
/// ```
pub fn manifest_schema() -> Value {
    let mut schema = mapping(&keys::FILE);
    schema["properties"]["toolcrib"] =
        json!({"const": FORMAT_VERSION, "description": "The version of the format."});
    // Tables cannot express that one of several keys is needed.
    let declaring = keys::DECLARING.iter().map(|key| json!({"required": [key]}));
    schema["anyOf"] = declaring.collect();
    let one_of = |wanted: &[&str]| -> Value {
        wanted.iter().map(|key| json!({"required": [key]})).collect()
    };
    schema["properties"]["prompts"]["items"]["properties"]["messages"]["items"]["oneOf"] =
        one_of(&["text", "file", "resource"]);
    schema["properties"]["resources"]["items"]["allOf"] =
        json!([{"oneOf": one_of(&["uri", "template"])}, {"oneOf": one_of(&["text", "file"])}]);
    schema["properties"]["upstream"]["items"]["oneOf"] =
        json!([{"required": ["command"]}, {"required": ["url"]}]);
    let head = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "toolcrib manifest",
        "description": "Tools for LLM agents, declared in a file.",
    });
    if let (Value::Object(schema), Value::Object(head)) = (&mut schema, head) {
        schema.extend(head);
    }
    schema
}

/// The schema of a mapping with a table, including nested tables. No table contains itself.
fn mapping(table: &Keys) -> Value {
    let properties: Map<String, Value> =
        table.table.iter().map(|key| (key.name.to_owned(), property(table, key))).collect();
    let required: Vec<&str> = table
        .table
        .iter()
        .filter(|key| matches!(key.presence, Presence::Required(_)))
        .map(|key| key.name)
        .collect();
    let mut schema = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        // Keys of one's own.
        "patternProperties": {"^x-": true},
        "additionalProperties": false,
    });
    if table.what == keys::RUN.what {
        let one = |(way, _): &(&str, &[&str])| match *way {
            "shell" => json!({"required": ["shell", "text"]}),
            way => json!({"required": [way]}),
        };
        schema["oneOf"] = keys::WAYS.iter().map(one).collect();
    }
    schema
}

fn property(table: &Keys, key: &Key) -> Value {
    let mut schema = match key.presence {
        Presence::NotYet(help) => json!({"not": {}, "description": help}),
        _ => match keys::nested(table, key.name) {
            Some((keys::Place::Here, inner)) => mapping(inner),
            Some((keys::Place::EachItem, inner)) => {
                json!({"type": "array", "items": mapping(inner)})
            }
            Some((keys::Place::EachValue, inner)) => {
                json!({"type": "object", "additionalProperties": mapping(inner)})
            }
            Some((keys::Place::EachItemOrText, inner)) => {
                let inner = mapping(inner);
                json!({"type": "array", "items": {"anyOf": [{"type": "string"}, inner]}})
            }
            Some((keys::Place::HereOrFlag, inner)) => {
                json!({"anyOf": [{"type": "boolean"}, mapping(inner)]})
            }
            None => value(key.expected),
        },
    };
    if let Presence::Required(help) = key.presence {
        schema["description"] = Value::from(help);
    }
    schema
}

/// The schema of a type. A new type does not compile without a line here.
fn value(expected: Expected) -> Value {
    let unit = |schema: schemars::Schema| Value::from(schema);
    match expected {
        Expected::Text => json!({"type": "string"}),
        Expected::Bool => json!({"type": "boolean"}),
        Expected::Integer => json!({"type": "integer"}),
        Expected::Duration => unit(HumanDuration::json_schema(&mut SchemaGenerator::default())),
        Expected::Size => unit(ByteSize::json_schema(&mut SchemaGenerator::default())),
        Expected::Rate => json!({
            "type": "string",
            "pattern": "^\\s*\\+?[0-9]+\\s*/\\s*(s|min|h)\\s*$",
            "description": "Calls per s, min or h: 5/s, 30/min.",
        }),
        Expected::List => json!({"type": "array"}),
        Expected::Texts => json!({"type": "array", "items": {"type": "string"}}),
        Expected::Mapping | Expected::MappingLike(_) => json!({"type": "object"}),
        Expected::FlagOrMapping(_) => json!({"anyOf": [{"type": "boolean"}, {"type": "object"}]}),
        Expected::TextMapping => {
            json!({"type": "object", "additionalProperties": {"type": "string"}})
        }
        Expected::Schema => json!({
            "type": "object",
            "description": "A JSON Schema; `type: object` is implied at its root.",
        }),
        Expected::Choice(choices) => json!({"enum": choices}),
        Expected::Any => json!(true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_open_is_open_by_design() {
        // A list or mapping with a table must be in `keys::nested`; otherwise editors would accept
        // anything in it.
        let open = [
            "context",
            "args",
            "ctx",
            "input_examples",
            "examples",
            "ok_exit",
            "retry_exit",
            "status",
            "suggest",
        ];
        let mut tables = vec![&keys::FILE];
        let mut found = Vec::new();
        while let Some(table) = tables.pop() {
            for key in table.table {
                match keys::nested(table, key.name) {
                    Some((_, inner)) => tables.push(inner),
                    None => {
                        if let Expected::List | Expected::Mapping | Expected::MappingLike(_) =
                            key.expected
                            && !open.contains(&key.name)
                        {
                            found.push((table.what, key.name));
                        }
                    }
                }
            }
        }
        assert!(found.is_empty(), "{found:?}");
    }
}
