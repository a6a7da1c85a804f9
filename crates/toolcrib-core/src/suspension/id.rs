//! Ids of suspensions and runs: 128 random bits.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{NoRandomness, unguessable};

/// The id of a suspended call: 32 hexadecimal digits that nobody can guess.
///
/// Only valid ids can be constructed, so an id is safe in a file name.
///
/// ```
/// use toolcrib_core::suspension::SuspensionId;
///
/// let id = SuspensionId::random()?;
/// assert_eq!(id.as_str().parse(), Ok(id));
/// assert!("../../etc/passwd".parse::<SuspensionId>().is_err());
/// # Ok::<(), toolcrib_core::NoRandomness>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct SuspensionId(Box<str>);

/// The length of an id, in hexadecimal digits.
const DIGITS: usize = 32;

impl SuspensionId {
    /// A fresh id.
    pub fn random() -> Result<Self, NoRandomness> {
        Ok(Self(unguessable::<{ DIGITS / 2 }>()?.into()))
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for SuspensionId {
    type Error = InvalidId;

    fn try_from(text: String) -> Result<Self, InvalidId> {
        let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() == DIGITS && text.bytes().all(digit) {
            Ok(Self(text.into()))
        } else {
            Err(InvalidId(()))
        }
    }
}

impl std::str::FromStr for SuspensionId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        text.to_owned().try_into()
    }
}

impl fmt::Display for SuspensionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The error for an invalid id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidId(());

impl fmt::Display for InvalidId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an id has {DIGITS} hexadecimal digits, in lower case")
    }
}

impl std::error::Error for InvalidId {}
