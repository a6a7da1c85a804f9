//! What stands at the place of a manifest at one moment.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::directory::{FileLoad, is_dead_link, load_bytes, unread};
use crate::document::FILE_MAX_BYTES;
use crate::manifest::Loaded;

/// What makes a file the same file under another name.
///
/// The number of a deleted file is given to the next new one, often at once; when it was born tells
/// the two apart, unless one was deleted within a tick of the clock ([`is_settled`](Self::is_settled)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
    born: Option<SystemTime>,
}

/// Twice the longest tick of the clock that Linux stamps files with (100 Hz).
const CLOCK_TICK: Duration = Duration::from_millis(20);

/// What changes when a file is written. Equal stamps mean that nothing was written, but for writes
/// within one tick of the file system's clock: who has heard of a write looks whatever the stamp says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    id: Option<FileId>,
    bytes: u64,
    modified: Option<SystemTime>,
    /// When anything about the file has changed, its names included, and how many names it has.
    changed: (i64, i64),
    names: u64,
}

impl Stamp {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        let (changed, names) = inode(metadata);
        Self {
            id: FileId::of(metadata),
            bytes: metadata.len(),
            modified: metadata.modified().ok(),
            changed,
            names,
        }
    }

    /// Whether the file can be at one place only.
    pub(crate) fn has_one_name(&self) -> bool {
        self.names == 1
    }
}

impl FileId {
    #[cfg(unix)]
    #[allow(clippy::unnecessary_wraps, reason = "elsewhere there is none")]
    pub(crate) fn of(metadata: &Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;
        let born = metadata.created().ok();
        Some(Self { device: metadata.dev(), inode: metadata.ino(), born })
    }

    /// Whether a file that exists at this time is the only one that can ever have this identity: it
    /// has outlived the tick of the clock in which it was born.
    fn is_settled(self, now: SystemTime) -> bool {
        self.born.is_some_and(|born| now.duration_since(born).is_ok_and(|age| age > CLOCK_TICK))
    }

    /// Elsewhere a rename is recognised by its content only.
    #[cfg(not(unix))]
    pub(crate) fn of(_: &Metadata) -> Option<Self> {
        None
    }
}

#[cfg(unix)]
fn inode(metadata: &Metadata) -> ((i64, i64), u64) {
    use std::os::unix::fs::MetadataExt as _;
    ((metadata.ctime(), metadata.ctime_nsec()), metadata.nlink())
}

#[cfg(not(unix))]
fn inode(_: &Metadata) -> ((i64, i64), u64) {
    ((0, 0), 1)
}

/// A file's content, by a hash that nobody can find a second text for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Digest([u8; 32]);

impl Digest {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }
}

/// What was seen.
#[derive(Debug)]
pub(crate) enum Seen {
    /// There is no file of that name; there may be a link that leads to nothing.
    Missing { is_link: bool },
    /// There is something that cannot be read; why, as a diagnostic.
    Unread(Box<FileLoad>),
    /// The file is as it was: its stamp says so.
    Same(Stamp),
    /// Somebody is writing it.
    Busy,
    /// A file and its bytes.
    File(SeenFile),
}

/// Which version of a file was read.
#[derive(Debug, Clone)]
pub(crate) struct FileVersion {
    pub(crate) stamp: Stamp,
    pub(crate) digest: Digest,
    /// Whether no other file can ever have its identity.
    pub(crate) is_settled: bool,
    /// Where the file really is, if it is reached through a symbolic link.
    pub(crate) target: Option<PathBuf>,
}

/// A file that was read.
#[derive(Debug)]
pub(crate) struct SeenFile {
    pub(crate) version: FileVersion,
    pub(crate) bytes: Vec<u8>,
}

impl Seen {
    /// The file's identity, where there is a file.
    pub(crate) fn id(&self) -> Option<FileId> {
        match self {
            Self::Missing { .. } | Self::Unread(_) | Self::Busy => None,
            Self::Same(stamp) => stamp.id,
            Self::File(file) => file.version.stamp.id,
        }
    }

    /// The identity of a file that can be at one place only.
    pub(crate) fn only_id(&self) -> Option<FileId> {
        let stamp = match self {
            Self::Same(stamp) => stamp,
            Self::File(file) => &file.version.stamp,
            Self::Missing { .. } | Self::Unread(_) | Self::Busy => return None,
        };
        stamp.id.filter(|_| stamp.has_one_name())
    }
}

impl SeenFile {
    pub(crate) fn id(&self) -> Option<FileId> {
        self.version.stamp.id
    }

    /// Whether there is nothing in it but blanks: somebody is about to write it.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.iter().all(u8::is_ascii_whitespace)
    }

    /// Reads the text as a manifest.
    pub(crate) fn load(
        self,
        path: &Path,
        rank: u32,
        read: &dyn Fn(&str, &str) -> Loaded,
    ) -> FileLoad {
        FileLoad { rank, version: Some(self.version), ..load_bytes(path, self.bytes, read) }
    }
}

impl Stamp {
    pub(crate) fn id(&self) -> Option<FileId> {
        self.id
    }

    /// Whether the file was written between the two.
    fn bytes_differ(&self, other: &Self) -> bool {
        (self.bytes, self.modified) != (other.bytes, other.modified)
    }

    /// Whether the file was written so lately that somebody may still be at it.
    pub(crate) fn is_fresh(&self, now: SystemTime, settle: Duration) -> bool {
        self.modified
            .is_some_and(|modified| now.duration_since(modified).is_ok_and(|age| age < settle))
    }
}

/// Looks at a place. With a stamp that still holds nothing is read.
pub(crate) fn observe(path: &Path, known: Option<&Stamp>) -> Seen {
    match read(path, known) {
        Ok(seen) => seen,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Seen::Missing { is_link: is_dead_link(path) }
        }
        Err(error) => Seen::Unread(Box::new(unread(path, &error))),
    }
}

fn read(path: &Path, known: Option<&Stamp>) -> io::Result<Seen> {
    // Looked at before it is opened: a named pipe would block.
    let metadata = std::fs::metadata(path)?;
    if metadata.is_dir() {
        return Ok(Seen::Missing { is_link: is_dead_link(path) });
    }
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let stamp = Stamp::of(&metadata);
    if known == Some(&stamp) {
        return Ok(Seen::Same(stamp));
    }
    let is_link = std::fs::symlink_metadata(path)?.is_symlink();
    // Followed once: what is said to be there and what is read are of one moment.
    let target = if is_link { Some(std::fs::canonicalize(path)?) } else { None };
    let mut file = File::open(target.as_deref().unwrap_or(path))?;
    // Of what is read, which may be another file by now.
    let stamp = Stamp::of(&file.metadata()?);
    let expected = usize::try_from(stamp.bytes).unwrap_or(FILE_MAX_BYTES).min(FILE_MAX_BYTES);
    let mut bytes = Vec::with_capacity(expected + 1);
    file.by_ref().take(FILE_MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    if Stamp::of(&file.metadata()?).bytes_differ(&stamp) {
        return Ok(Seen::Busy);
    }
    let is_settled = stamp.id.is_some_and(|id| id.is_settled(SystemTime::now()));
    let version = FileVersion { stamp, digest: Digest::of(&bytes), is_settled, target };
    Ok(Seen::File(SeenFile { version, bytes }))
}
