//! Parameters of a `#[tool]` function that the host fills in.

use std::any::{Any, type_name};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{CallContext, ErrorKind, ToolError};

/// The type of a `#[service]` parameter of a `#[tool]` function: `Arc<T>`, without which the call fails with
/// `unavailable`, or `Option<Arc<T>>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a `#[service]` parameter",
    label = "not a service",
    note = "take `Arc<T>`, or `Option<Arc<T>>` if the tool can run without it; T is `Send + Sync \
            + 'static`"
)]
pub trait FromServices: Sized {
    /// Finds it among the host's services, by name if there is one, else by type.
    fn from_services(cx: &CallContext, name: Option<&str>) -> Result<Self, ToolError>;
}

impl<T: Any + Send + Sync> FromServices for Option<Arc<T>> {
    fn from_services(cx: &CallContext, name: Option<&str>) -> Result<Self, ToolError> {
        Ok(match name {
            Some(name) => cx.named_service(name),
            None => cx.service(),
        })
    }
}

impl<T: Any + Send + Sync> FromServices for Arc<T> {
    fn from_services(cx: &CallContext, name: Option<&str>) -> Result<Self, ToolError> {
        Option::<Self>::from_services(cx, name)?.ok_or_else(|| {
            let wanted = name.unwrap_or_else(|| type_name::<T>());
            ToolError::unavailable(format!("the host has no service `{wanted}`"))
                .with_hint("Use another tool; this one cannot run here.")
        })
    }
}

/// The value of a `#[context("key")]` parameter; a missing value is `null`.
pub fn from_context<T: DeserializeOwned>(
    cx: &CallContext,
    parameter: &str,
) -> Result<T, ToolError> {
    let value = cx.injected(parameter).unwrap_or(&Value::Null);
    T::deserialize(value).map_err(|error| {
        let message = format!("the host's value for `{parameter}` has the wrong type for the tool");
        ToolError::new(ErrorKind::MissingContext, format!("{message}: {error}")).with_hint(
            "It cannot be given as an argument. Tell the user that the host must set it.",
        )
    })
}
