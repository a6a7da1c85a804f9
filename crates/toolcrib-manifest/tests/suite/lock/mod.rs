//! What a lock pins, how it is written, and what it says of entries.

mod digests;
mod servers;
mod text;
mod verdicts;

use serde_json::{Value, json};
use toolcrib_manifest::load_str;

/// A tool that says something everywhere.
pub(crate) fn full() -> Value {
    json!({
        "name": "logs", "title": "Logs", "description": "Read logs.", "category": "ops",
        "tags": ["a", "b"], "version": "1.2",
        "annotations": {"read_only": true, "idempotent": true, "open_world": false},
        "input": {
            "properties": {
                "pod": {"type": "string", "pattern": "^[a-z]+$", "description": "Which."},
                "lines": {"type": "integer", "minimum": 1, "default": 200},
                "previous": {"type": "boolean"},
                "names": {"type": "array", "items": {"type": "string"}},
                "note": {"type": "string"},
            },
            "required": ["pod"],
        },
        "output_schema": {"type": "object", "properties": {"n": {"type": "integer"}}},
        "empty_as_absent": ["note"], "assert_formats": true,
        "context": {
            "cluster": {"from": "ctx.cluster", "enum": ["dev", "stage"]},
            "trace": {"from": "ctx.trace_id", "required": false},
        },
        "run": {
            "argv": [
                "kubectl", "logs", "--tail=${args.lines}", {"if": "previous", "then": ["--previous"]},
                {"each": "names"}, "--", "${args.pod}",
            ],
            "stdin": "${args.note}",
            "env": {"CLUSTER": "${ctx.cluster}", "TRACE": "${ctx.trace}"},
            "pass_env": ["LANG"], "ok_exit": [0, 1], "retry_exit": [75],
        },
        "cwd": "/var/empty",
        "limits": {"timeout": "15s", "output": "32KiB", "concurrent": 4, "rate": "30/min"},
        "needs": {"bins": ["kubectl"], "env": ["HOME"], "secrets": ["token"]},
        "output": {"format": "json", "keep": "tail", "redact": ["Bearer [a-z]+"]},
        "cache": {"ttl": "5s"}, "dedupe": "session", "retry": {"max": 2, "backoff": "200ms"},
        "resources": {"reads": ["pods"]}, "approval": "always",
        "final_output": true, "terminal": true, "hidden": true, "parallel": false,
    })
}

/// Sets what stands under a pointer; null takes it away.
pub(crate) fn edited(mut tool: Value, pointer: &str, to: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    match tool.pointer_mut(parent).expect("it is there") {
        Value::Array(items) if to.is_null() => drop(items.remove(key.parse().expect("a number"))),
        Value::Array(items) => items[key.parse::<usize>().expect("a number")] = to,
        Value::Object(members) if to.is_null() => drop(members.remove(key)),
        Value::Object(members) => drop(members.insert(key.to_owned(), to)),
        other => panic!("{parent} is {other}"),
    }
    tool
}

pub(crate) fn file(tool: &Value) -> Value {
    json!({ "toolcrib": 1, "namespace": "k", "tools": [tool] })
}

pub(crate) fn digest(text: &str) -> String {
    let loaded = load_str("k.yaml", text);
    let problems: Vec<_> = loaded.diagnostics.iter().map(|found| &found.message).collect();
    assert!(!loaded.has_errors(), "{text}\n{problems:?}");
    loaded.declarations[0].digest()
}

pub(crate) fn digest_text(bytes: &[u8]) -> String {
    format!("blake3:{}", blake3::hash(bytes).to_hex())
}
