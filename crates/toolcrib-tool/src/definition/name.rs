//! Tool names: the one spelling every provider accepts.

use std::fmt;
use std::sync::Arc;

/// A checked tool name: `^[a-zA-Z0-9_-]{1,64}$`, the rule OpenAI, Anthropic and MCP share.
///
/// ```
/// use toolcrib_tool::ToolName;
///
/// assert!(ToolName::new("disk_usage").is_ok());
/// let refused = ToolName::new("disk usage").unwrap_err();
/// assert!(refused.to_string().contains("letters, digits"));
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolName(Arc<str>);

impl ToolName {
    /// The longest name, in bytes.
    pub const MAX_LEN: usize = 64;

    /// Checks a name.
    pub fn new(name: &str) -> Result<Self, InvalidToolName> {
        let fits = (1..=Self::MAX_LEN).contains(&name.len());
        let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        if fits && plain {
            Ok(Self(name.into()))
        } else {
            Err(InvalidToolName { name: name.to_owned() })
        }
    }

    /// A placeholder in a builder until the real name has been checked.
    pub(crate) fn placeholder() -> Self {
        Self("unnamed".into())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for ToolName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl std::borrow::Borrow<str> for ToolName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// A name that breaks the rule of [`ToolName`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidToolName {
    name: String,
}

impl fmt::Display for InvalidToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.is_empty() {
            return f.write_str("a tool name cannot be empty");
        }
        write!(
            f,
            "{:?} is not a tool name: use 1 to {} letters, digits, '_' or '-' (A-Z, a-z, 0-9)",
            self.name,
            ToolName::MAX_LEN
        )
    }
}

impl std::error::Error for InvalidToolName {}
