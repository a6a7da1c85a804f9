//! Finds context values of the host and applies a declaration's checks to them.

use std::borrow::Cow;

use serde_json::Value;
use toolcrib_manifest::declaration::ContextParameter;
use toolcrib_tool::{CallContext, ErrorKind, ToolError};

/// The value of `${ctx.name}`: that of a declared parameter, else the host's value of this name, else a property of the
/// call itself. JSON null counts as missing.
pub(crate) fn value<'a>(
    parameters: &[ContextParameter],
    cx: &'a CallContext,
    name: &str,
) -> Option<Cow<'a, Value>> {
    let key = parameters.iter().find(|parameter| parameter.name == name).map(|known| &*known.key);
    let key = key.unwrap_or(name);
    let context_value = cx.value(key).filter(|value| !value.is_null()).map(Cow::Borrowed);
    context_value.or_else(|| call_value(cx, key).map(|text| Cow::Owned(text.into())))
}

/// Properties of a call that need no host: its id, which identifies a request without another id, and its session.
fn call_value<'a>(cx: &'a CallContext, key: &str) -> Option<&'a str> {
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

/// The error for a call without a required value.
pub(crate) fn missing(parameters: &[ContextParameter], name: &str) -> ToolError {
    let key = parameters.iter().find(|parameter| parameter.name == name).map(|known| &*known.key);
    let key = key.unwrap_or(name);
    ToolError::new(
        ErrorKind::MissingContext,
        format!("this call needs the context value `{key}`, which the host did not supply"),
    )
    .with_hint("It cannot be given as an argument: tell the user that the host must supply it.")
}

/// The compiled checks of a declaration.
#[derive(Debug)]
pub(crate) struct ContextChecks(Vec<Check>);

#[derive(Debug)]
struct Check {
    parameter: ContextParameter,
    validator: Option<jsonschema::Validator>,
}

impl ContextChecks {
    /// Compiles the schemas; fails with a clause about the first invalid one.
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

    /// Checks every value. The error never contains a value, because it goes to the model.
    pub(crate) fn check(&self, cx: &CallContext) -> Result<(), ToolError> {
        for Check { parameter, validator } in &self.0 {
            let call_value = std::slice::from_ref(parameter);
            let Some(value) = value(call_value, cx, &parameter.name) else {
                if parameter.required {
                    return Err(missing(call_value, &parameter.name));
                }
                continue;
            };
            if validator.as_ref().is_some_and(|validator| !validator.is_valid(&value)) {
                return Err(ToolError::denied(format!(
                    "this tool does not allow the host's value for `{}`",
                    parameter.key
                ))
                .with_hint("No argument can change that: tell the user."));
            }
        }
        Ok(())
    }
}
