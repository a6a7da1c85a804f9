//! A script beside a manifest: the file, and its bytes as they were when the manifest was loaded.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

/// What stands in a digest's place where a script could not be read.
const UNREADABLE: &str = "unreadable";

/// A script, and what was in it when its manifest was loaded.
///
/// In a lock it is its content: where the folder lies changes nothing, and what the manifest calls
/// it is in the argument vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptFile {
    /// Where it is.
    pub path: PathBuf,
    /// The [digest](Self::digest_now) of its bytes; `None` if they could not be read.
    pub digest: Option<String>,
}

impl ScriptFile {
    /// The longest script, in bytes: 4 MiB.
    pub const MAX_BYTES: u64 = 4 * 1024 * 1024;

    /// The script at a path, as it is now.
    pub fn read(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self { digest: digest(&path).ok(), path }
    }

    /// What its bytes are now: `blake3:` and 64 hexadecimal digits. Fails if it cannot be read, is no
    /// regular file, or is longer than [`MAX_BYTES`](Self::MAX_BYTES).
    pub fn digest_now(&self) -> io::Result<String> {
        digest(&self.path)
    }
}

fn digest(path: &Path) -> io::Result<String> {
    // Looked at before it is opened: opening a named pipe waits for whoever writes into it.
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut hasher = blake3::Hasher::new();
    let mut bytes = File::open(path)?.take(ScriptFile::MAX_BYTES + 1);
    if io::copy(&mut bytes, &mut hasher)? > ScriptFile::MAX_BYTES {
        return Err(io::Error::other("it is longer than 4 MiB"));
    }
    Ok(format!("blake3:{}", hasher.finalize().to_hex()))
}

impl Serialize for ScriptFile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.digest.as_deref().unwrap_or(UNREADABLE))
    }
}
