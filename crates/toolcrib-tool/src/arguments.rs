//! Arguments before and after the pipeline has looked at them.

use std::sync::OnceLock;

use serde::Deserialize;
use serde_json::Value;

use crate::ToolError;
use crate::json::from_accepted;

/// JSON text as it came from a model: unparsed, untrusted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RawArguments(String);

impl RawArguments {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text, owned.
    pub fn into_string(self) -> String {
        self.0
    }
}

impl From<String> for RawArguments {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for RawArguments {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<&Value> for RawArguments {
    fn from(value: &Value) -> Self {
        Self(value.to_string())
    }
}

impl From<Value> for RawArguments {
    fn from(value: Value) -> Self {
        Self::from(&value)
    }
}

/// Arguments a tool may rely on: checked against its schema, with defaults filled in and with
/// everything removed that a model must not set.
///
/// The bytes that were validated are the bytes [`parse`](Self::parse) reads, so a tool and its
/// schema cannot see two different values.
///
/// ```
/// use serde::Deserialize;
/// use toolcrib_tool::Arguments;
///
/// #[derive(Deserialize)]
/// struct Args<'a> {
///     path: &'a str,
/// }
///
/// let arguments = Arguments::from_validated(r#"{"path":"a.txt"}"#.to_owned());
/// let args: Args<'_> = arguments.parse()?;
/// assert_eq!(args.path, "a.txt");
/// assert_eq!(arguments.value()["path"], "a.txt");
/// # Ok::<(), toolcrib_tool::ToolError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Arguments {
    json: String,
    value: OnceLock<Value>,
}

impl Arguments {
    /// Wraps JSON text that has already passed validation.
    ///
    /// The executor calls this; in a test of a single tool, so may you. Text that is not JSON
    /// makes [`parse`](Self::parse) fail and [`value`](Self::value) read as `null`; how deep it is
    /// nested is no longer checked.
    pub fn from_validated(json: String) -> Self {
        Self { json, value: OnceLock::new() }
    }

    /// The JSON text.
    pub fn as_str(&self) -> &str {
        &self.json
    }

    /// Reads the arguments into a type; borrowed fields borrow from the text.
    ///
    /// Fails with kind `internal` if the type asks for more than the tool's schema promises:
    /// the schema and the type have come apart, which is the tool's fault and not the model's.
    pub fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, ToolError> {
        from_accepted(&self.json).map_err(|error| {
            ToolError::internal(format!(
                "the tool's schema allows what its code cannot read: {error}"
            ))
        })
    }

    /// The arguments as a [`Value`], built at the first use.
    pub fn value(&self) -> &Value {
        self.value.get_or_init(|| from_accepted(&self.json).unwrap_or_default())
    }
}
