//! One path and method: who answers it, and what is promised of it. The routes and the `OpenAPI`
//! document are made of the same list of these.

use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::MethodRouter;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::access::Access;
use crate::api::Api;

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
    pub(crate) answers: Vec<Answer>,
    pub(crate) handler: MethodRouter<Api>,
}

/// What a request may say beside its body.
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    /// `path`, `query` or `header`.
    pub(crate) place: &'static str,
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
        Self {
            method,
            path,
            operation,
            summary: "",
            access,
            parameters,
            request: None,
            answers,
            handler,
        }
    }

    pub(crate) fn summary(mut self, summary: &'static str) -> Self {
        self.summary = summary;
        self
    }

    pub(crate) fn path_parameter(self, name: &'static str, description: &'static str) -> Self {
        self.parameter("path", name, description, schema_of::<String>)
    }

    pub(crate) fn query(
        self,
        name: &'static str,
        description: &'static str,
        schema: SchemaOf,
    ) -> Self {
        self.parameter("query", name, description, schema)
    }

    pub(crate) fn header(self, name: &'static str, description: &'static str) -> Self {
        self.parameter("header", name, description, schema_of::<String>)
    }

    fn parameter(
        mut self,
        place: &'static str,
        name: &'static str,
        description: &'static str,
        schema: SchemaOf,
    ) -> Self {
        self.parameters.push(Parameter { name, place, description, schema });
        self
    }

    pub(crate) fn takes<T: JsonSchema>(mut self) -> Self {
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

    /// The handler, whose answers carry the path they are of.
    pub(crate) fn routed(&self) -> MethodRouter<Api> {
        let path = self.path;
        self.handler.clone().layer(axum::middleware::map_response(
            move |mut response: Response| async move {
                response.extensions_mut().insert(crate::observe::Route(path));
                response
            },
        ))
    }
}
