//! A script beside a manifest, and the digest of its bytes when the manifest was loaded.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

/// Replaces the digest of a script that could not be read.
pub(super) const UNREADABLE: &str = "unreadable";

/// A script, with the digest of its content when its manifest was loaded.
///
/// A lock contains its digest only: it does not depend on the folder, and the path as the manifest
/// writes it is in the argument vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptFile {
    /// The path of the script.
    pub path: PathBuf,
    /// The digest of its bytes, `blake3:` and 64 hexadecimal digits; `None` if they could not be
    /// read.
    pub digest: Option<String>,
}

impl ScriptFile {
    /// The maximum size of a script, in bytes: 4 MiB.
    pub const MAX_BYTES: u64 = 4 * 1024 * 1024;

    /// The script at a path, as it is now.
    pub fn read(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self { digest: bytes(&path).ok().map(|bytes| digest(&bytes)), path }
    }

    /// Its bytes now, if they are those of the [digest](Self::digest); `None` if they have changed.
    /// Fails if it cannot be read, is not a regular file, or is larger than
    /// [`MAX_BYTES`](Self::MAX_BYTES).
    ///
    /// The file is read once: the bytes returned are the bytes that were compared.
    pub fn unchanged_bytes(&self) -> io::Result<Option<Vec<u8>>> {
        let bytes = bytes(&self.path)?;
        Ok((self.digest.as_ref() == Some(&digest(&bytes))).then_some(bytes))
    }
}

fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    // Checked before it is opened: opening a named pipe waits for a writer.
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(ScriptFile::MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > ScriptFile::MAX_BYTES {
        return Err(io::Error::other("it is longer than 4 MiB"));
    }
    Ok(bytes)
}

fn digest(bytes: &[u8]) -> String {
    digest_text(&blake3::hash(bytes))
}

/// A digest in the notation of locks.
pub(super) fn digest_text(hash: &blake3::Hash) -> String {
    format!("blake3:{}", hash.to_hex())
}

impl Serialize for ScriptFile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.digest.as_deref().unwrap_or(UNREADABLE))
    }
}
