//! Builds the `OpenAPI` 3.1 document from the endpoints and their types.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::api::endpoint::{Answer, Content, Endpoint, Parameter, schema_of};
use crate::api::problem::ProblemBody;
use crate::api::responses::ErrorBody;

/// The document for these endpoints.
pub(crate) fn document(endpoints: &[Endpoint], version: &str) -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    let mut generator = settings.into_generator();
    let mut paths = Map::new();
    for endpoint in endpoints {
        let operation = operation(endpoint, &mut generator);
        let path = paths.entry(endpoint.path).or_insert_with(|| json!({}));
        path[endpoint.method] = operation;
    }
    json!({
        "openapi": "3.1.1",
        "info": {
            "title": "toolcrib",
            "summary": "The guarded tool crib of LLM agents",
            "description": "Lists, describes, searches and calls tools. A status of 2xx means that a \
                call has succeeded, or waits (202); every other answer is a problem (RFC 9457) whose \
                `kind` is stable.",
            "version": version,
        },
        "paths": paths,
        "components": {
            "schemas": generator.take_definitions(true),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    })
}

fn operation(endpoint: &Endpoint, generator: &mut SchemaGenerator) -> Value {
    let mut responses = Map::new();
    for answer in &endpoint.answers {
        responses.insert(answer.status.as_str().to_owned(), response(answer, generator));
    }
    for status in &endpoint.problems {
        // If a success status has a body of its own, document that one.
        let responses = responses.entry(status.to_string());
        responses.or_insert_with(|| problem(*status, endpoint, generator));
    }
    let mut operation = json!({
        "operationId": endpoint.operation,
        "summary": endpoint.summary,
        "responses": responses,
    });
    let rights: Vec<_> = endpoint.access.rights().iter().map(|right| right.as_str()).collect();
    if rights.is_empty() {
        operation["security"] = json!([]);
    } else {
        operation["security"] = json!([{"bearer": []}]);
        operation["description"] = json!(format!("Needs the right `{}`.", rights.join("` or `")));
    }
    if !endpoint.parameters.is_empty() {
        let parameters = endpoint.parameters.iter().map(|own| parameter(own, generator));
        operation["parameters"] = parameters.collect();
    }
    if let Some(request) = &endpoint.request {
        let mut content = content([request], generator);
        if let Some(example) = endpoint.example.and_then(|text| serde_json::from_str(text).ok()) {
            let example: Value = example;
            content[request.media_type]["example"] = example;
        }
        operation["requestBody"] = json!({"required": !endpoint.body_optional, "content": content});
    }
    operation
}

fn parameter(own: &Parameter, generator: &mut SchemaGenerator) -> Value {
    json!({
        "name": own.name,
        "in": own.location,
        "required": own.required,
        "description": own.description,
        "schema": (own.schema)(generator),
    })
}

fn response(answer: &Answer, generator: &mut SchemaGenerator) -> Value {
    if answer.content.is_empty() {
        return json!({"description": answer.description});
    }
    json!({
        "description": answer.description,
        "content": content(&answer.content, generator),
    })
}

fn problem(status: u16, endpoint: &Endpoint, generator: &mut SchemaGenerator) -> Value {
    if endpoint.openai {
        let schema = schema_of::<ErrorBody>(generator);
        let content = json!({"application/json": {"schema": schema}});
        return json!({"description": meaning(status), "content": content});
    }
    let schema = schema_of::<ProblemBody<'static>>(generator);
    let mut content = json!({"application/problem+json": {"schema": schema}});
    if endpoint.json_rpc {
        content["application/json"] = json!({"schema": {
            "type": "object",
            "properties": {"jsonrpc": {"const": "2.0"}, "error": {"type": "object"}},
            "required": ["jsonrpc", "error"],
        }});
    }
    json!({"description": meaning(status), "content": content})
}

/// The description of a problem status.
fn meaning(status: u16) -> &'static str {
    match status {
        400 => "The body cannot be read.",
        401 => "No token, or a wrong one.",
        403 => {
            "The token lacks a right, a rule refuses the call, or `Host` or `Origin` is foreign."
        }
        404 => "The resource does not exist.",
        405 => "The path does not support this method.",
        406 => "The client does not accept any available media type.",
        408 => "The body did not arrive in time.",
        409 => {
            "The request conflicts with an earlier one, or the outcome of an earlier one is unknown."
        }
        413 => "The body is too long.",
        415 => "The body is not JSON.",
        422 => "The request is well-formed but invalid, or the tool refuses the arguments.",
        424 => "The tool ran and failed.",
        426 => "This path is for WebSockets: the request has to be an upgrade.",
        429 => "Too many requests: `Retry-After` says when to retry.",
        500 => "A fault of the server or of the tool's own code: the log says more.",
        501 => "This server does not support the operation.",
        503 => {
            "The request cannot be served now: the server is stopping, or the tool is unavailable, paused or busy."
        }
        504 => "The tool reached its time limit.",
        _ => "The problem and what to do about it.",
    }
}

fn content<'a>(
    all: impl IntoIterator<Item = &'a Content>,
    generator: &mut SchemaGenerator,
) -> Value {
    let media = all.into_iter().map(|content| {
        let schema = content.schema.map(|schema| json!({"schema": schema(generator)}));
        (content.media_type.to_owned(), schema.unwrap_or_else(|| json!({})))
    });
    Value::Object(media.collect())
}
