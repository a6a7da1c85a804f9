//! The schemas of answers, with the members that every client needs.

use schemars::{Schema, SchemaGenerator, json_schema};

/// A response.
pub(crate) fn response(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "object": {"const": "response"},
            "created_at": {"type": "integer"},
            "status": {"enum": ["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]},
            "model": {"type": "string"},
            "output": {"type": "array", "items": {"type": "object", "required": ["type"]}},
        },
        "required": ["id", "object", "created_at", "status", "model", "output"],
    })
}

/// A response that was removed.
pub(crate) fn removed(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "properties": {"id": {"type": "string"}, "deleted": {"const": true}},
        "required": ["id", "deleted"],
    })
}

/// A conversation in short.
pub(crate) fn compaction(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "object": {"const": "response.compaction"},
            "created_at": {"type": "integer"},
            "output": {"type": "array", "items": {"type": "object", "required": ["type"]}},
        },
        "required": ["id", "object", "created_at", "output"],
    })
}

/// The tokens of a request.
pub(crate) fn count(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "properties": {
            "object": {"const": "response.input_tokens"},
            "input_tokens": {"type": "integer", "minimum": 0},
        },
        "required": ["object", "input_tokens"],
    })
}

/// A list of items or models.
pub(crate) fn list(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "properties": {
            "object": {"const": "list"},
            "data": {"type": "array", "items": {"type": "object", "required": ["id"]}},
        },
        "required": ["object", "data"],
    })
}

/// A chat completion.
pub(crate) fn completion(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "object": {"const": "chat.completion"},
            "model": {"type": "string"},
            "choices": {"type": "array", "items": {"type": "object", "required": ["message", "finish_reason"]}},
        },
        "required": ["id", "object", "model", "choices"],
    })
}
