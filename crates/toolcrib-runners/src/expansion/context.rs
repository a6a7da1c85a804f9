//! Values of the host's context: finding them, and the checks a declaration puts on them.

use std::borrow::Cow;

use serde_json::Value;
use toolcrib_manifest::declaration::ContextParameter;
use toolcrib_tool::{CallContext, ErrorKind, ToolError};

/// The value `${ctx.name}` stands for: that of a declared parameter, else the host's under the very
/// name, else what every call knows of itself. JSON null is no value.
pub(crate) fn value<'a>(
    parameters: &[ContextParameter],
    cx: &'a CallContext,
    name: &str,
) -> Option<Cow<'a, Value>> {
    let key = parameters.iter().find(|parameter| parameter.name == name).map(|known| &*known.key);
    let key = key.unwrap_or(name);
    let of_host = cx.value(key).filter(|value| !value.is_null()).map(Cow::Borrowed);
    of_host.or_else(|| own(cx, key).map(|text| Cow::Owned(text.into())))
}

/// What a call knows without its host: its id, by which a request is known that has no other, and its
/// session.
fn own<'a>(cx: &'a CallContext, key: &str) -> Option<&'a str> {
    match key {
        "call_id" | "request_id" => Some(cx.call_id().as_str()),
        "session_id" => cx.session(),
        _ => None,
    }
}

/// Whether a call without the value may go on.
pub(crate) fn is_optional(parameters: &[ContextParameter], name: &str) -> bool {
    parameters.iter().any(|parameter| parameter.name == name && !parameter.required)
}

/// The answer to a call without a value it needs.
pub(crate) fn missing(parameters: &[ContextParameter], name: &str) -> ToolError {
    let key = parameters.iter().find(|parameter| parameter.name == name).map(|known| &*known.key);
    let key = key.unwrap_or(name);
    ToolError::new(
        ErrorKind::MissingContext,
        format!("this call needs the context value `{key}`, which the host did not supply"),
    )
    .with_hint("It cannot be given as an argument: tell the user that the host must supply it.")
}

/// A declaration's checks, compiled once.
#[derive(Debug)]
pub(crate) struct ContextChecks(Vec<Check>);

#[derive(Debug)]
struct Check {
    parameter: ContextParameter,
    validator: Option<jsonschema::Validator>,
}

impl ContextChecks {
    /// Compiles the schemas; fails with one clause about the first that is none.
    pub(crate) fn new(parameters: &[ContextParameter]) -> Result<Self, String> {
        let compile = |parameter: &ContextParameter| {
            let validator = parameter.schema.as_ref().map(jsonschema::validator_for).transpose();
            let validator = validator.map_err(|error| {
                format!("the check of the context value `{}` is invalid: {error}", parameter.name)
            })?;
            Ok(Check { parameter: parameter.clone(), validator })
        };
        parameters.iter().map(compile).collect::<Result<_, _>>().map(Self)
    }

    /// Checks every value. The answer never shows one: it goes to the model.
    pub(crate) fn check(&self, cx: &CallContext) -> Result<(), ToolError> {
        for Check { parameter, validator } in &self.0 {
            let own = std::slice::from_ref(parameter);
            let Some(value) = value(own, cx, &parameter.name) else {
                if parameter.required {
                    return Err(missing(own, &parameter.name));
                }
                continue;
            };
            if validator.as_ref().is_some_and(|validator| !validator.is_valid(&value)) {
                return Err(ToolError::denied(format!(
                    "the host's value for `{}` is not one this tool may be used with",
                    parameter.key
                ))
                .with_hint("No argument can change that: tell the user."));
            }
        }
        Ok(())
    }
}
