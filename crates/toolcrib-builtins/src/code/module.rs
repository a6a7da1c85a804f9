//! The name of a Python module, as an import writes it.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of a Python module: one identifier of ASCII letters, digits and `_`, or several with dots
/// between them.
///
/// ```
/// use toolcrib_builtins::code::ModuleName;
///
/// assert_eq!("scipy.stats".parse::<ModuleName>()?.as_str(), "scipy.stats");
/// assert!("numpy, os".parse::<ModuleName>().is_err());
/// # Ok::<(), toolcrib_builtins::code::InvalidModule>(())
/// ```
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(extend("pattern" = r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$"))]
pub struct ModuleName(String);

impl ModuleName {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ModuleName {
    type Err = InvalidModule;

    fn from_str(text: &str) -> Result<Self, InvalidModule> {
        text.to_owned().try_into()
    }
}

impl TryFrom<String> for ModuleName {
    type Error = InvalidModule;

    fn try_from(text: String) -> Result<Self, InvalidModule> {
        let right = text.split('.').all(|part| {
            !part.is_empty()
                && !part.starts_with(|first: char| first.is_ascii_digit())
                && part.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        });
        if right { Ok(Self(text)) } else { Err(InvalidModule(text)) }
    }
}

impl From<ModuleName> for String {
    fn from(name: ModuleName) -> Self {
        name.0
    }
}

/// A text that is not a valid module name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidModule(String);

impl fmt::Display for InvalidModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no name of a module: write it as in an import, like `numpy`", self.0)
    }
}

impl std::error::Error for InvalidModule {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_is_named_as_in_an_import() {
        for right in ["numpy", "scipy.stats", "_private", "a1.b_2"] {
            assert!(right.parse::<ModuleName>().is_ok(), "{right}");
        }
        for wrong in ["", ".", "a.", "1a", "a b", "a\nb", "a-b", "é", "a.1"] {
            assert_eq!(wrong.parse::<ModuleName>(), Err(InvalidModule(wrong.to_owned())));
        }
    }
}
