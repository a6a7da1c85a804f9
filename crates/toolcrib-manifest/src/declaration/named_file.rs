//! A file that an argument vector names, and the digest of its bytes when its manifest was loaded.

use std::fs::File;
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use super::script::{UNREADABLE, digest_text};

/// A file that an argument vector names, as it was when the manifest was loaded.
///
/// A lock contains its digest only. The path as the manifest writes it is the key under which the
/// file is pinned, so that the digest of a declaration does not depend on where the folder is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedFile {
    /// The path of the file.
    pub path: PathBuf,
    /// The digest of its bytes, `blake3:` and 64 hexadecimal digits; `None` if they could not be
    /// read.
    pub digest: Option<String>,
}

impl NamedFile {
    /// The size of the largest file that can be pinned, in bytes: 64 MiB.
    pub const MAX_BYTES: u64 = 64 * 1024 * 1024;

    /// The file at a path, as it is now.
    pub fn read(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self { digest: digest_of_file(&path).ok(), path }
    }

    /// Whether its bytes are still those of the [digest](Self::digest).
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, is not a regular file, or is larger than
    /// [`MAX_BYTES`](Self::MAX_BYTES).
    pub fn is_unchanged(&self) -> io::Result<bool> {
        Ok(self.digest == Some(digest_of_file(&self.path)?))
    }

    /// Its bytes now, if they are those of the [digest](Self::digest); `None` if they have changed.
    /// The file is read once: the bytes returned are the bytes that were compared.
    ///
    /// # Errors
    ///
    /// Fails as [`is_unchanged`](Self::is_unchanged) does.
    pub fn unchanged_bytes(&self) -> io::Result<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        copy(&self.path, &mut bytes)?;
        let digest = digest_text(&blake3::hash(&bytes));
        Ok((self.digest == Some(digest)).then_some(bytes))
    }
}

impl Serialize for NamedFile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.digest.as_deref().unwrap_or(UNREADABLE))
    }
}

fn digest_of_file(path: &Path) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    copy(path, &mut hasher)?;
    Ok(digest_text(&hasher.finalize()))
}

fn copy(path: &Path, to: &mut impl Write) -> io::Result<()> {
    // Checked before it is opened: opening a named pipe waits for a writer.
    let found = path.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let too_large = || io::Error::other("it is larger than 64 MiB");
    if found.len() > NamedFile::MAX_BYTES {
        return Err(too_large());
    }
    let mut file = File::open(path)?.take(NamedFile::MAX_BYTES + 1);
    io::copy(&mut file, to)?;
    if file.limit() == 0 {
        return Err(too_large());
    }
    Ok(())
}
