//! One path and method: who answers it, and what is promised of it. The routes and the `OpenAPI`
//! document are made of the same list of these.

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
    /// Its name for generators of clients.
    pub(crate) operation: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) access: Access,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) request: Option<Content>,
    /// Whether the body may be left out, which means `{}`.
    pub(crate) body_optional: bool,
    /// A request body as an example.
    pub(crate) example: Option<&'static str>,
    pub(crate) answers: Vec<Answer>,
    /// The statuses of its problems.
    pub(crate) problems: BTreeSet<u16>,
    /// Whether an error may be one of JSON-RPC.
    pub(crate) json_rpc: bool,
    pub(crate) handler: MethodRouter<Api>,
}

/// What a request may say beside its body.
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    /// `path`, `query` or `header`.
    pub(crate) place: &'static str,
    pub(crate) required: bool,
    pub(crate) description: &'static str,
    pub(crate) schema: SchemaOf,
}

/// One way in which it is answered.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) description: &'static str,
    pub(crate) content: Vec<Content>,
}

/// A body, and what is in it.
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
        // Any: a fault of the server, and one that stops.
        let mut problems = BTreeSet::from([500, 503]);
        if access != Access::Open {
            // No token, not allowed (or a foreign Host or Origin), too often.
            problems.extend([401, 403, 429]);
            // Every body is read, whether the operation takes one or not.
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

    /// What the query may say.
    pub(crate) fn query(
        mut self,
        name: &'static str,
        description: &'static str,
        schema: SchemaOf,
    ) -> Self {
        self.problems.insert(422);
        self.parameter("query", false, name, description, schema)
    }

    /// Makes the parameter that was added last a required one.
    pub(crate) fn required(mut self) -> Self {
        if let Some(parameter) = self.parameters.last_mut() {
            parameter.required = true;
        }
        self
    }

    /// The key under which an answer is kept.
    pub(crate) fn header(
        mut self,
        name: &'static str,
        description: &'static str,
        schema: SchemaOf,
    ) -> Self {
        // Taken for another request, or not known what became of it.
        self.problems.extend([400, 409, 424]);
        self.parameter("header", false, name, description, schema)
    }

    /// Adds statuses of its problems.
    pub(crate) fn problems(mut self, statuses: impl IntoIterator<Item = u16>) -> Self {
        self.problems.extend(statuses);
        self
    }

    /// Its body may be left out.
    pub(crate) fn body_optional(mut self) -> Self {
        self.body_optional = true;
        self
    }

    /// A request body as an example: JSON.
    pub(crate) fn example(mut self, body: &'static str) -> Self {
        self.example = Some(body);
        self
    }

    /// Its errors may be those of JSON-RPC, too.
    pub(crate) fn json_rpc(mut self) -> Self {
        self.json_rpc = true;
        self
    }

    fn parameter(
        mut self,
        place: &'static str,
        required: bool,
        name: &'static str,
        description: &'static str,
        schema: SchemaOf,
    ) -> Self {
        self.parameters.push(Parameter { name, place, required, description, schema });
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

    /// An answer of any media type. Of one status several may be named.
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

    /// An answer that is nothing but a status.
    pub(crate) fn answers_without_body(
        mut self,
        status: StatusCode,
        description: &'static str,
    ) -> Self {
        self.answers.push(Answer { status, description, content: Vec::new() });
        self
    }

    /// The handler, whose answers carry the path they are of.
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
