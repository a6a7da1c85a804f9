//! The `OpenAPI` 3.1 document, made of the endpoints and of the types that are read and written.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::endpoint::{Answer, Content, Endpoint, Parameter, schema_of};
use crate::problem::ProblemBody;

/// The document about these endpoints.
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
    responses.insert("default".to_owned(), problem(generator));
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
        operation["requestBody"] =
            json!({"required": true, "content": content([request], generator)});
    }
    operation
}

fn parameter(own: &Parameter, generator: &mut SchemaGenerator) -> Value {
    json!({
        "name": own.name,
        "in": own.place,
        "required": own.place == "path",
        "description": own.description,
        "schema": (own.schema)(generator),
    })
}

fn response(answer: &Answer, generator: &mut SchemaGenerator) -> Value {
    json!({
        "description": answer.description,
        "content": content(&answer.content, generator),
    })
}

fn problem(generator: &mut SchemaGenerator) -> Value {
    let schema = schema_of::<ProblemBody<'static>>(generator);
    json!({
        "description": "What went wrong and what to do about it.",
        "content": {"application/problem+json": {"schema": schema}},
    })
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
