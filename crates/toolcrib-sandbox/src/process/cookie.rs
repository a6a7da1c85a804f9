//! The cookie that identifies a call's processes.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::io;

use memchr::memmem;

/// The variable that holds the cookie.
pub(crate) const VARIABLE: &str = "TOOLCRIB_CALL";

/// 128 random bits as hexadecimal text, one per call.
#[derive(Debug, Clone)]
pub(crate) struct Cookie(String);

impl Cookie {
    /// A new cookie.
    pub(crate) fn new() -> io::Result<Self> {
        let mut bytes = [0_u8; 16];
        getrandom::fill(&mut bytes)
            .map_err(|error| io::Error::other(format!("no random numbers: {error}")))?;
        let mut text = String::with_capacity(32);
        for byte in bytes {
            let _ = write!(text, "{byte:02x}");
        }
        Ok(Self(text))
    }

    /// The text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The value of the child's variable. A server that itself runs as a tool keeps the outer
    /// cookie in front, so that the outer sweep still recognizes its children.
    pub(crate) fn value(&self) -> OsString {
        let mut value = std::env::var_os(VARIABLE).unwrap_or_default();
        if !value.is_empty() {
            value.push(OsStr::new("."));
        }
        value.push(&self.0);
        value
    }

    /// Whether a process with this environment block belongs to the call.
    pub(crate) fn is_in(&self, environment: &[u8]) -> bool {
        memmem::find(environment, self.0.as_bytes()).is_some()
    }
}
