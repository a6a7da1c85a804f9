//! Unguessable random texts.

use std::fmt;
use std::fmt::Write as _;

/// Random bytes as lower-case hexadecimal digits, two per byte. Use 16 bytes for an unguessable id,
/// 32 for a secret.
///
/// # Errors
///
/// Fails if the system has no random numbers, which does not happen on current systems after boot.
///
/// ```
/// let id = toolcrib_core::unguessable::<16>()?;
/// assert_eq!(id.len(), 32);
/// assert_ne!(id, toolcrib_core::unguessable::<16>()?);
/// # Ok::<(), toolcrib_core::NoRandomness>(())
/// ```
pub fn unguessable<const BYTES: usize>() -> Result<String, NoRandomness> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(NoRandomness)?;
    let mut digits = String::with_capacity(2 * BYTES);
    for byte in bytes {
        let _ = write!(digits, "{byte:02x}");
    }
    Ok(digits)
}

/// The system could not provide random numbers.
#[derive(Debug)]
pub struct NoRandomness(getrandom::Error);

impl fmt::Display for NoRandomness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the system has no random numbers to give: {}", self.0)
    }
}

impl std::error::Error for NoRandomness {}
