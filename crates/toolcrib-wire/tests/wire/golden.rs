//! The exact JSON of a handful of tools for every target.
//!
//! `TOOLCRIB_BLESS=1 cargo test -p toolcrib-wire golden` rewrites the files in `tests/golden`; review the difference.

use std::path::PathBuf;

use serde_json::{Value, json};
use toolcrib_tool::{Injection, ToolDefinition, canonical_json};
use toolcrib_wire::{Export, Target, export, prompt_text};

pub(crate) fn compare(file: &str, actual: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file);
    if std::env::var_os("TOOLCRIB_BLESS").is_some() {
        std::fs::write(&path, actual).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(actual, expected, "{file} differs; see the top of golden.rs");
}

/// Indented JSON with sorted keys.
pub(crate) fn pretty(value: &Value) -> String {
    let sorted: Value = serde_json::from_str(&canonical_json(value)).unwrap();
    serde_json::to_string_pretty(&sorted).unwrap() + "\n"
}

fn definitions() -> Vec<ToolDefinition> {
    let built = |builder: toolcrib_tool::ToolDefinitionBuilder| builder.build().unwrap();
    vec![
        built(ToolDefinition::builder("list_boats").description("Lists all boats.").read_only(true)),
        built(
            ToolDefinition::builder("book_berth")
                .title("Book a berth")
                .description("Books a berth.\nAsk before you book.")
                .category("harbour")
                .input_schema(json!({
                    "properties": {
                        "boat": {"type": "string", "minLength": 1, "description": "Its name."},
                        "nights": {"type": "integer", "minimum": 1, "default": 1},
                        "power": {"type": "string", "enum": ["none", "230V"], "examples": ["none"]},
                        "tenant": {"type": "string"},
                    },
                    "required": ["boat", "tenant"],
                    "additionalProperties": false,
                }))
                .injections(vec![Injection::new("tenant", "tenant")])
                .input_examples(vec![json!({"boat": "Ida", "nights": 2})])
                .output_schema(json!({"type": "string"})),
        ),
        built(
            ToolDefinition::builder("3_trees").description("Reads a tree.").input_schema(json!({
                "properties": {"root": {"$ref": "#/$defs/Node", "description": "The top."}},
                "required": ["root"],
                "$defs": {"Node": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string"},
                        "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
                    },
                    "required": ["name"],
                }},
            })),
        ),
        built(
            ToolDefinition::builder("find").description("Finds a boat.").input_schema(json!({
                "properties": {
                    "by": {
                        "description": "How.",
                        "oneOf": [
                            {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
                            {"type": "object", "properties": {"name": {"type": "string"}, "exact": {"type": "boolean"}}, "required": ["name"]},
                        ],
                    },
                    "limit": {"type": ["integer", "null"], "enum": [10, 20, null]},
                },
                "required": ["by"],
            })),
        ),
        built(
            ToolDefinition::builder("configure").description("Sets anything.").input_schema(json!({
                "properties": {
                    "settings": {"type": "object", "description": "What to set."},
                    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                },
            })),
        ),
    ]
}

fn written(export: &Export) -> String {
    pretty(&json!({
        "tools": export.tools,
        "names": export.names.iter().filter(|(own, theirs)| own != theirs).collect::<Vec<_>>(),
        "refused": export.refused.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "notes": export
            .notes
            .iter()
            .map(|note| format!("{} {}: {}", note.tool, note.at, note.text))
            .collect::<Vec<_>>(),
    }))
}

#[test]
fn golden_definitions() {
    let definitions = definitions();
    for &target in Target::ALL {
        let export = export(&definitions, target);
        for tool in &export.tools {
            crate::rules::check(tool, target);
        }
        compare(&format!("{target}.json"), &written(&export));
    }
}

#[test]
fn golden_prompt() {
    compare("prompt.txt", &prompt_text(definitions()));
    assert_eq!(prompt_text(&[] as &[ToolDefinition]), "");
}
