//! Handles of stored texts for models, and the keys that stores use.

use std::fmt;

use super::{Owner, SpillError};

/// The handle of a stored text: 128 random bits, written as 32 lower-case hexadecimal digits.
///
/// ```
/// use toolcrib_core::spill::Handle;
///
/// let handle = Handle::random()?;
/// assert_eq!(Handle::parse(&handle.to_string()), Some(handle));
/// assert_eq!(Handle::parse("../../etc/passwd"), None);
/// # Ok::<(), toolcrib_core::spill::SpillError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Handle([u8; 16]);

impl Handle {
    /// A new handle; fails if the system has no random numbers.
    pub fn random() -> Result<Self, SpillError> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)
            .map_err(|error| SpillError::Failed(format!("no random numbers: {error}")))?;
        Ok(Self(bytes))
    }

    /// Reads a handle as a model wrote it; `None` for anything but 32 digits of `0-9a-f`.
    pub fn parse(text: &str) -> Option<Self> {
        let digits: &[u8; 32] = text.as_bytes().try_into().ok()?;
        let mut bytes = [0; 16];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Self(bytes))
    }
}

fn digit(letter: u8) -> Option<u8> {
    match letter {
        b'0'..=b'9' => Some(letter - b'0'),
        b'a'..=b'f' => Some(letter - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The key of a stored text: a hash of the handle and its owner.
///
/// The same handle has a different key for another owner, so a store that only knows keys cannot
/// return a text to the wrong owner. The handle cannot be recovered from a key or a file name.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpillKey([u8; 32]);

impl SpillKey {
    /// The key of a handle for an owner.
    pub fn of(owner: &Owner, handle: &Handle) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"toolcrib spill 1\0");
        hasher.update(&handle.0);
        // The length separates identity and session.
        hasher.update(&(owner.identity().len() as u64).to_le_bytes());
        hasher.update(owner.identity().as_bytes());
        if let Some(session) = owner.session() {
            hasher.update(b"s");
            hasher.update(session.as_bytes());
        }
        Self(*hasher.finalize().as_bytes())
    }
}

impl fmt::Display for SpillKey {
    /// 64 lower-case hexadecimal digits: safe as a file name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for SpillKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SpillKey({self})")
    }
}

#[cfg(test)]
mod tests {
    use toolcrib_tool::ContextValues;

    use super::*;

    #[test]
    fn only_exact_digits_are_a_handle() {
        let good = "00112233445566778899aabbccddeeff";
        assert_eq!(Handle::parse(good).unwrap().to_string(), good);
        for bad in ["", "00", &good.to_uppercase(), &format!("{good}0"), &good.replace('0', "é")] {
            assert_eq!(Handle::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn every_part_of_the_owner_is_part_of_the_key() {
        let handle = Handle::parse(&"ab".repeat(16)).unwrap();
        let values = |user: &str| ContextValues::new().with("user", user);
        let keys = [
            SpillKey::of(&Owner::of(&values("a"), None), &handle),
            SpillKey::of(&Owner::of(&values("b"), None), &handle),
            SpillKey::of(&Owner::of(&values("a"), Some("")), &handle),
            SpillKey::of(&Owner::of(&values("a"), Some("s")), &handle),
            SpillKey::of(&Owner::of(&ContextValues::new(), None), &handle),
        ];
        for (index, key) in keys.iter().enumerate() {
            assert!(keys[index + 1..].iter().all(|other| other != key));
        }
    }
}
