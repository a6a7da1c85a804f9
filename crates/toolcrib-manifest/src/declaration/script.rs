//! A script beside a manifest: the file, and its bytes as they were when the manifest was loaded.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

/// What stands in a digest's place where a script could not be read.
pub(super) const UNREADABLE: &str = "unreadable";

/// A script, and what was in it when its manifest was loaded.
///
/// In a lock it is its content: where the folder lies changes nothing, and what the manifest calls
/// it is in the argument vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptFile {
    /// Where it is.
    pub path: PathBuf,
    /// The digest of its bytes, `blake3:` and 64 hexadecimal digits; `None` if they could not be read.
    pub digest: Option<String>,
}

impl ScriptFile {
    /// The longest script, in bytes: 4 MiB.
    pub const MAX_BYTES: u64 = 4 * 1024 * 1024;

    /// The script at a path, as it is now.
    pub fn read(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self { digest: bytes(&path).ok().map(|bytes| digest(&bytes)), path }
    }

    /// Its bytes now, if they are those of the [digest](Self::digest); `None` if they are others. Fails
    /// if it cannot be read, is no regular file, or is longer than [`MAX_BYTES`](Self::MAX_BYTES).
    ///
    /// It is read once: these are the bytes that were looked at, whatever happens to the file.
    pub fn unchanged_bytes(&self) -> io::Result<Option<Vec<u8>>> {
        let bytes = bytes(&self.path)?;
        Ok((self.digest.as_ref() == Some(&digest(&bytes))).then_some(bytes))
    }
}

fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    // Looked at before it is opened: opening a named pipe waits for whoever writes into it.
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

/// A digest as locks write it.
pub(super) fn digest_text(hash: &blake3::Hash) -> String {
    format!("blake3:{}", hash.to_hex())
}

impl Serialize for ScriptFile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.digest.as_deref().unwrap_or(UNREADABLE))
    }
}
