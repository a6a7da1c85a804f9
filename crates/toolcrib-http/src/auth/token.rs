//! Bearer tokens.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer};
use subtle::ConstantTimeEq as _;

use crate::HttpError;

/// A bearer token: 16 to 512 visible ASCII characters, no blanks.
///
/// `Debug` and `Serialize` hide it, and comparisons take constant time.
///
/// ```
/// use toolcrib_http::Token;
///
/// let token = Token::new("correct-horse-battery-staple")?;
/// assert!(token.matches("correct-horse-battery-staple"));
/// assert!(!token.matches("correct-horse-battery"));
/// assert_eq!(format!("{token:?}"), "Token(…)");
/// # Ok::<(), toolcrib_http::InvalidToken>(())
/// ```
#[derive(Clone, Deserialize)]
#[serde(try_from = "String")]
pub struct Token(String);

impl Token {
    /// The shortest token, in characters: less can be guessed.
    pub const MIN_LEN: usize = 16;
    /// The longest token, in characters: more is likely a file pasted by mistake.
    pub const MAX_LEN: usize = 512;

    /// Checks a token that somebody chose.
    pub fn new(token: impl Into<String>) -> Result<Self, InvalidToken> {
        let token = token.into();
        let fits = (Self::MIN_LEN..=Self::MAX_LEN).contains(&token.len());
        // Other characters could not be sent in a header.
        let plain = token.bytes().all(|byte| byte.is_ascii_graphic());
        if fits && plain { Ok(Self(token)) } else { Err(InvalidToken(())) }
    }

    /// Generates a token of 256 random bits, as 64 hexadecimal digits.
    ///
    /// Fails with [`HttpError::NoRandomness`] if the system provides no random bits.
    pub fn random() -> Result<Self, HttpError> {
        toolcrib_core::unguessable::<32>().map(Self).map_err(HttpError::NoRandomness)
    }

    /// Whether `offered` is this token, compared in constant time.
    pub fn matches(&self, offered: &str) -> bool {
        self.0.as_bytes().ct_eq(offered.as_bytes()).into()
    }

    /// The hash to store instead of the token: see [`TokenHash`].
    pub fn hash(&self) -> TokenHash {
        TokenHash::of(&self.0)
    }

    /// The token itself, to show it to its owner.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl Serialize for Token {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("[hidden]")
    }
}

impl PartialEq for Token {
    fn eq(&self, other: &Self) -> bool {
        self.matches(other.reveal())
    }
}

impl Eq for Token {}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl TryFrom<String> for Token {
    type Error = InvalidToken;

    fn try_from(token: String) -> Result<Self, InvalidToken> {
        Self::new(token)
    }
}

impl JsonSchema for Token {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Token".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "minLength": Self::MIN_LEN,
            "maxLength": Self::MAX_LEN,
            "pattern": "^[!-~]+$",
            "writeOnly": true,
            "x-expected": "16 to 512 visible ASCII characters without blanks",
        })
    }
}

/// The hash of a token, written `blake3:` and 64 hexadecimal digits.
///
/// It is a fast hash, which is right for unguessable tokens such as those of [`Token::random`], and
/// wrong for passwords.
///
/// ```
/// use toolcrib_http::{Token, TokenHash};
///
/// let token = Token::random()?;
/// let kept: TokenHash = token.hash().to_string().parse()?;
/// assert!(kept.matches(token.reveal()));
/// assert!(!kept.matches(Token::random()?.reveal()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TokenHash([u8; 32]);

/// Separates these hashes from other uses of the hash function.
const HASH_CONTEXT: &str = "toolcrib 2026-11 bearer token";

/// The prefix of a hash, which would change with another hash function.
const HASH_PREFIX: &str = "blake3:";

impl TokenHash {
    /// The hash of an offered token.
    pub(crate) fn of(token: &str) -> Self {
        Self(blake3::derive_key(HASH_CONTEXT, token.as_bytes()))
    }

    /// Whether `offered` is the hashed token, compared in constant time.
    pub fn matches(&self, offered: &str) -> bool {
        self.is_same(&Self::of(offered))
    }

    /// Whether both hashes are equal, compared in constant time.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }

    pub(crate) fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HASH_PREFIX)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for TokenHash {
    type Err = InvalidTokenHash;

    fn from_str(text: &str) -> Result<Self, InvalidTokenHash> {
        let digits = text.strip_prefix(HASH_PREFIX).ok_or(InvalidTokenHash(()))?;
        let hash = blake3::Hash::from_hex(digits).map_err(|_| InvalidTokenHash(()))?;
        Ok(Self(*hash.as_bytes()))
    }
}

impl TryFrom<String> for TokenHash {
    type Error = InvalidTokenHash;

    fn try_from(text: String) -> Result<Self, InvalidTokenHash> {
        text.parse()
    }
}

impl From<TokenHash> for String {
    fn from(hash: TokenHash) -> Self {
        hash.to_string()
    }
}

impl JsonSchema for TokenHash {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "TokenHash".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^blake3:[0-9a-fA-F]{64}$",
            "x-expected": "the hash that `toolcrib token` prints",
        })
    }
}

/// An invalid token hash. The error does not repeat the text, which may be the token itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a hash of a token is `blake3:` and 64 hexadecimal digits, as `toolcrib token` prints it")]
pub struct InvalidTokenHash(());

/// An invalid token. The error does not repeat the secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the token must be {} to {} visible ASCII characters without blanks",
    Token::MIN_LEN,
    Token::MAX_LEN
)]
pub struct InvalidToken(());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_tokens_differ_and_carry_256_bits() {
        let (one, two) = (Token::random().unwrap(), Token::random().unwrap());
        assert_eq!(one.reveal().len(), 64);
        assert!(!one.matches(two.reveal()));
        assert!(Token::new(one.reveal()).is_ok());
    }

    #[test]
    fn a_token_that_cannot_be_sent_or_can_be_guessed_is_refused() {
        for token in ["", "short", "sixteen letters!", "with\nnewline0123456", "täglich-0123456789"]
        {
            assert!(Token::new(token).is_err(), "{token:?}");
        }
        assert!(Token::new("x".repeat(Token::MAX_LEN + 1)).is_err());
    }
}
