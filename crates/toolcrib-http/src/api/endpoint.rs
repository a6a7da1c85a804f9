//! One method and path: its handler and its documentation. The routes and the `OpenAPI` document
//! are built from the same list.

use std::collections::BTreeSet;

use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::MethodRouter;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::api::Api;
use crate::auth::right::Access;

/// A path and method.
pub(crate) struct Endpoint {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    /// The `operationId`, which client generators use as a name.
    pub(crate) operation: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) access: Access,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) request: Option<Content>,
    /// Whether the body may be omitted, which means `{}`.
    pub(crate) body_optional: bool,
    /// An example of a request body.
    pub(crate) example: Option<&'static str>,
    pub(crate) answers: Vec<Answer>,
    /// The statuses of problem responses.
    pub(crate) problems: BTreeSet<u16>,
    /// Whether an error may be a JSON-RPC error.
    pub(crate) json_rpc: bool,
    /// Whether errors have the shape of OpenAI's.
    pub(crate) openai: bool,
    pub(crate) handler: MethodRouter<Api>,
}

/// A parameter of a request.
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    /// Where it is sent: `path`, `query` or `header`.
    pub(crate) location: &'static str,
    pub(crate) required: bool,
    pub(crate) description: &'static str,
    pub(crate) schema: SchemaOf,
}

/// A documented response.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) description: &'static str,
    pub(crate) content: Vec<Content>,
}

/// A media type and its schema.
pub(crate) struct Content {
    pub(crate) media_type: &'static str,
    pub(crate) schema: Option<SchemaOf>,
}

pub(crate) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

pub(crate) fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

impl Endpoint {
    pub(crate) fn new(
        method: &'static str,
        path: &'static str,
        operation: &'static str,
        access: Access,
        handler: MethodRouter<Api>,
    ) -> Self {
        let (parameters, answers) = (Vec::new(), Vec::new());
        // Every endpoint: a fault of the server, and a server that is stopping.
        let mut problems = BTreeSet::from([500, 503]);
        if access != Access::Open {
            // No token, not allowed (or a foreign Host or Origin), too many requests.
            problems.extend([401, 403, 429]);
            // Every body is read, even if the operation has none.
            problems.extend([400, 408, 413]);
        }
        Self {
            method,
            path,
            operation,
            summary: "",
            access,
            parameters,
            request: None,
            body_optional: false,
            example: None,
            answers,
            problems,
            json_rpc: false,
            openai: false,
            handler,
        }
    }

    pub(crate) fn summary(mut self, summary: &'static str) -> Self {
        self.summary = summary;
        self
    }

    pub(crate) fn path_parameter(mut self, name: &'static str, description: &'static str) -> Self {
        self.problems.insert(404);
        self.parameter("path", true, name, description, schema_of::<String>)
    }

    /// Adds a query parameter.
    pub(crate) fn query(
        mut self,
        name: &'static str,
        description: &'static str,
        schema: SchemaOf,
    ) -> Self {
        self.problems.insert(422);
        self.parameter("query", false, name, description, schema)
    }

    /// Makes the last parameter required.
    pub(crate) fn required(mut self) -> Self {
        if let Some(parameter) = self.parameters.last_mut() {
            parameter.required = true;
        }
        self
    }

    /// Adds the header with the idempotency key.
    pub(crate) fn header(
        mut self,
        name: &'static str,
        description: &'static str,
        schema: SchemaOf,
    ) -> Self {
        // The key was used for another request, or the outcome is unknown.
        self.problems.extend([400, 409, 424]);
        self.parameter("header", false, name, description, schema)
    }

    /// Adds the header with which clients take up a stream again.
    pub(crate) fn last_event_id(mut self, description: &'static str, schema: SchemaOf) -> Self {
        self.problems.insert(422);
        self.parameter("header", false, "Last-Event-ID", description, schema)
    }

    /// Adds statuses of problem responses.
    pub(crate) fn problems(mut self, statuses: impl IntoIterator<Item = u16>) -> Self {
        self.problems.extend(statuses);
        self
    }

    /// Makes the body optional.
    pub(crate) fn body_optional(mut self) -> Self {
        self.body_optional = true;
        self
    }

    /// Sets an example of a request body, as JSON.
    pub(crate) fn example(mut self, body: &'static str) -> Self {
        self.example = Some(body);
        self
    }

    /// Allows JSON-RPC errors as well.
    pub(crate) fn json_rpc(mut self) -> Self {
        self.json_rpc = true;
        self
    }

    /// Gives errors the shape of OpenAI's.
    pub(crate) fn openai(mut self) -> Self {
        self.openai = true;
        self
    }

    fn parameter(
        mut self,
        location: &'static str,
        required: bool,
        name: &'static str,
        description: &'static str,
        schema: SchemaOf,
    ) -> Self {
        self.parameters.push(Parameter { name, location, required, description, schema });
        self
    }

    pub(crate) fn takes<T: JsonSchema>(mut self) -> Self {
        self.problems.extend([400, 415, 422]);
        let schema: SchemaOf = schema_of::<T>;
        self.request = Some(Content { media_type: "application/json", schema: Some(schema) });
        self
    }

    pub(crate) fn answers<T: JsonSchema>(
        self,
        status: StatusCode,
        description: &'static str,
    ) -> Self {
        self.answers_as(status, "application/json", description, Some(schema_of::<T>))
    }

    /// Adds a response with any media type. A status may have several.
    pub(crate) fn answers_as(
        mut self,
        status: StatusCode,
        media_type: &'static str,
        description: &'static str,
        schema: Option<SchemaOf>,
    ) -> Self {
        let content = Content { media_type, schema };
        match self.answers.iter_mut().find(|known| known.status == status) {
            Some(known) => known.content.push(content),
            None => self.answers.push(Answer { status, description, content: vec![content] }),
        }
        self
    }

    /// Adds a response without a body.
    pub(crate) fn answers_without_body(
        mut self,
        status: StatusCode,
        description: &'static str,
    ) -> Self {
        self.answers.push(Answer { status, description, content: Vec::new() });
        self
    }

    /// The handler, which attaches the route's path to its responses.
    pub(crate) fn routed(&self) -> MethodRouter<Api> {
        let path = self.path;
        self.handler.clone().layer(axum::middleware::map_response(
            move |mut response: Response| async move {
                response.extensions_mut().insert(crate::observability::request_log::Route(path));
                response
            },
        ))
    }
}
