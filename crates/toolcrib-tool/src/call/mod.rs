//! A call as it arrives: an id, a name and JSON text.

pub(crate) mod arguments;
pub(crate) mod client_input;
pub(crate) mod context;
pub(crate) mod files;
pub(crate) mod host;
pub(crate) mod input;
pub(crate) mod plan;
pub(crate) mod preview;
pub(crate) mod services;
pub(crate) mod status;

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::RawArguments;

/// The caller's id for a call; the result has the same id.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(Arc<str>);

impl CallId {
    /// Takes the caller's id as it is.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<T: Into<Arc<str>>> From<T> for CallId {
    fn from(id: T) -> Self {
        Self::new(id)
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// One call to one tool, exactly as a model or a person sent it. Nothing in it is trusted yet.
///
/// ```
/// use toolcrib_tool::ToolCall;
///
/// let call = ToolCall::new("call_1", "calculator", r#"{"expression": "2 + 2"}"#);
/// assert_eq!(call.name(), "calculator");
/// ```
#[derive(Debug, Clone)]
pub struct ToolCall {
    id: CallId,
    name: Arc<str>,
    arguments: RawArguments,
}

impl ToolCall {
    /// A call to `name`; `arguments` is JSON text, with empty text for `{}`.
    pub fn new(
        id: impl Into<Arc<str>>,
        name: impl Into<Arc<str>>,
        arguments: impl Into<RawArguments>,
    ) -> Self {
        Self { id: CallId::new(id), name: name.into(), arguments: arguments.into() }
    }

    /// The call with another id.
    #[must_use]
    pub fn with_id(mut self, id: CallId) -> Self {
        self.id = id;
        self
    }

    /// The call with another name.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// The call with other arguments.
    #[must_use]
    pub fn with_arguments(mut self, arguments: impl Into<RawArguments>) -> Self {
        self.arguments = arguments.into();
        self
    }

    /// The caller's id.
    pub fn id(&self) -> &CallId {
        &self.id
    }

    /// The requested name; it may not belong to any tool.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The JSON text as it came.
    pub fn arguments(&self) -> &RawArguments {
        &self.arguments
    }

    /// Splits the call into its parts without copying.
    pub fn into_parts(self) -> (CallId, Arc<str>, RawArguments) {
        (self.id, self.name, self.arguments)
    }
}
