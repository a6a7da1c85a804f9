//! Parameters of a `#[tool]` fn that the host fills in.

use std::any::{Any, type_name};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{CallContext, ErrorKind, ToolError};

/// What a `#[service]` parameter of a `#[tool]` fn may be: `Arc<T>`, without which the call is
/// answered `unavailable`, or `Option<Arc<T>>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a `#[service]` parameter",
    label = "not a service",
    note = "take `Arc<T>`, or `Option<Arc<T>>` where the tool can do without; T is `Send + Sync + 'static`"
)]
pub trait FromServices: Sized {
    /// Takes it from the services of the host, by name if there is one, else by type.
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
            ToolError::unavailable(format!("the host lends no service `{wanted}`"))
                .with_hint("Use another tool; this one cannot run here.")
        })
    }
}

/// The value of a `#[context("key")]` parameter; absent is `null`.
pub fn from_context<T: DeserializeOwned>(
    cx: &CallContext,
    parameter: &str,
) -> Result<T, ToolError> {
    let value = cx.injected(parameter).unwrap_or(&Value::Null);
    T::deserialize(value).map_err(|error| {
        let message = format!("the host's value for `{parameter}` is not what the tool takes");
        ToolError::new(ErrorKind::MissingContext, format!("{message}: {error}")).with_hint(
            "It cannot be given as an argument. Tell the user that the host must set it.",
        )
    })
}
