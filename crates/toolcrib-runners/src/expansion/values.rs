//! The values of one call: resolves each reference and checks the value for its destination.

use std::borrow::Cow;

use secrecy::ExposeSecret;
use serde_json::Value;
use toolcrib_json::{Cursor, Kind};
use toolcrib_manifest::declaration::Declaration;
use toolcrib_manifest::template::Reference;
use toolcrib_tool::{CallContext, ToolError};

use crate::ServerValues;
use crate::expansion::context;
use crate::expansion::text::{Destination, context_text, forbidden, name_of, text_of};

/// The sources of a call's values.
#[derive(Clone, Copy)]
pub(crate) struct CallValues<'a> {
    pub(crate) declaration: &'a Declaration,
    pub(crate) arguments: Cursor<'a>,
    pub(crate) cx: &'a CallContext,
    pub(crate) server: &'a dyn ServerValues,
}

impl<'a> CallValues<'a> {
    /// An argument; `None` if it is absent or JSON null.
    pub(crate) fn argument(&self, name: &str) -> Option<Cursor<'a>> {
        self.arguments.get(name).filter(|value| value.kind() != Kind::Null)
    }

    /// The schema of an argument.
    pub(crate) fn property(&self, name: &str) -> Option<&'a Value> {
        self.declaration.definition.input_schema().get("properties")?.get(name)
    }

    /// The checked text of a value. `None` if an optional value is absent.
    pub(crate) fn text(
        &self,
        reference: &Reference,
        destination: Destination,
    ) -> Result<Option<String>, ToolError> {
        match reference {
            Reference::Arg(name) => {
                let Some(value) = self.argument(name) else { return Ok(None) };
                let text = text_of(value).into_owned();
                self.refuse_control(name, &text, destination)?;
                Ok(Some(text))
            }
            Reference::Ctx(name) => {
                let Some(value) = self.context_value(name)? else { return Ok(None) };
                let text = context_text(&value).into_owned();
                refuse_control_in_context(name, &text, destination)?;
                Ok(Some(text))
            }
            // These are not checked for control characters: the operator set them, and keys have several lines.
            Reference::Env(name) => {
                self.server.env(name).map(Some).map_err(|reason| unavailable(&reason))
            }
            Reference::Secret(name) => {
                let secret = self.server.secret(name).map_err(|reason| unavailable(&reason))?;
                Ok(Some(secret.expose_secret().to_owned()))
            }
        }
    }

    /// A context value. `None` if an optional value is absent.
    pub(crate) fn context_value(&self, name: &str) -> Result<Option<Cow<'a, Value>>, ToolError> {
        let parameters = &self.declaration.context;
        match context::value(parameters, self.cx, name) {
            Some(value) => Ok(Some(value)),
            None if context::is_optional(parameters, name) => Ok(None),
            None => Err(context::missing(parameters, name)),
        }
    }

    /// Refuses control characters in an argument unless its schema opts in.
    pub(crate) fn refuse_control(
        &self,
        name: &str,
        text: &str,
        destination: Destination,
    ) -> Result<(), ToolError> {
        let opted_in = |schema: &Value| schema.get("x-allow-control") == Some(&Value::Bool(true));
        let allowed = self
            .property(name)
            .is_some_and(|schema| opted_in(schema) || schema.get("items").is_some_and(opted_in));
        let Some(control) = forbidden(text, destination, allowed) else { return Ok(()) };
        Err(ToolError::invalid_args(format!(
            "the argument `{name}` contains {}, which this tool does not accept",
            name_of(control)
        ))
        .with_hint("Send the value without control characters."))
    }
}

/// Refuses control characters in a value of the host.
pub(crate) fn refuse_control_in_context(
    name: &str,
    text: &str,
    destination: Destination,
) -> Result<(), ToolError> {
    let Some(control) = forbidden(text, destination, false) else { return Ok(()) };
    Err(ToolError::denied(format!("the host's value for `{name}` contains {}", name_of(control))))
}

/// The error for a call that needs something the server lacks. `reason` is a clause after "the tool".
pub(crate) fn unavailable(reason: &str) -> ToolError {
    ToolError::unavailable(format!("the tool {reason}"))
}
