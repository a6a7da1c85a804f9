//! Observes what is at the place of a manifest at one moment.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::directory::{FileLoad, is_dead_link, load_bytes, unread};
use crate::document::FILE_MAX_BYTES;
use crate::manifest::Loaded;

/// The identity of a file, whatever its name is.
///
/// The inode number of a deleted file is often reused at once. The creation time tells the two
/// files apart, unless one was deleted within the clock tick in which it was created
/// ([`is_settled`](Self::is_settled)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
    born: Option<SystemTime>,
}

/// Twice the longest tick of the clock that Linux uses for file times (100 Hz).
const CLOCK_TICK: Duration = Duration::from_millis(20);

/// The metadata that changes when a file is written. Equal stamps mean that nothing was written,
/// except for writes within one tick of the file system's clock: after an event the file is read
/// whatever its stamp is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileStamp {
    id: Option<FileId>,
    bytes: u64,
    modified: Option<SystemTime>,
    /// The time of the last change of content or metadata, including its names.
    changed: (i64, i64),
    names: u64,
}

impl FileStamp {
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

    /// Whether the file has no hard links.
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

    /// Whether no other file can have this identity, given that the file exists at this time: it is
    /// older than the clock tick in which it was created.
    fn is_settled(self, now: SystemTime) -> bool {
        self.born.is_some_and(|born| now.duration_since(born).is_ok_and(|age| age > CLOCK_TICK))
    }

    /// On other systems a rename is recognized by the content only.
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

/// A cryptographic hash of a file's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContentDigest([u8; 32]);

impl ContentDigest {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }
}

/// What was observed at a place.
#[derive(Debug)]
pub(crate) enum Observation {
    /// There is no file of that name, or a dangling link.
    Missing { is_link: bool },
    /// The file cannot be read; the diagnostic says why.
    Unread(Box<FileLoad>),
    /// The file has the known stamp and was not read.
    Same(FileStamp),
    /// The file changed while it was read.
    Busy,
    /// A file with its content.
    File(ObservedFile),
}

/// The version of a file that was read.
#[derive(Debug, Clone)]
pub(crate) struct FileVersion {
    pub(crate) stamp: FileStamp,
    pub(crate) digest: ContentDigest,
    /// Whether no other file can have its identity.
    pub(crate) is_settled: bool,
    /// The target, if the file is a symbolic link.
    pub(crate) target: Option<PathBuf>,
}

/// A file with the content that was read.
#[derive(Debug)]
pub(crate) struct ObservedFile {
    pub(crate) version: FileVersion,
    pub(crate) bytes: Vec<u8>,
}

impl Observation {
    /// The identity of the file, if there is one.
    pub(crate) fn id(&self) -> Option<FileId> {
        match self {
            Self::Missing { .. } | Self::Unread(_) | Self::Busy => None,
            Self::Same(stamp) => stamp.id,
            Self::File(file) => file.version.stamp.id,
        }
    }

    /// The identity of a file without hard links.
    pub(crate) fn only_id(&self) -> Option<FileId> {
        let stamp = match self {
            Self::Same(stamp) => stamp,
            Self::File(file) => &file.version.stamp,
            Self::Missing { .. } | Self::Unread(_) | Self::Busy => return None,
        };
        stamp.id.filter(|_| stamp.has_one_name())
    }
}

impl ObservedFile {
    pub(crate) fn id(&self) -> Option<FileId> {
        self.version.stamp.id
    }

    /// Whether the file is blank, which usually means that somebody is about to write it.
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

impl FileStamp {
    pub(crate) fn id(&self) -> Option<FileId> {
        self.id
    }

    /// Whether the file was written between the two stamps.
    fn bytes_differ(&self, other: &Self) -> bool {
        (self.bytes, self.modified) != (other.bytes, other.modified)
    }

    /// Whether the file was written so recently that the writer may not have finished.
    pub(crate) fn is_fresh(&self, now: SystemTime, settle: Duration) -> bool {
        self.modified
            .is_some_and(|modified| now.duration_since(modified).is_ok_and(|age| age < settle))
    }
}

/// Observes a place. A file with the known stamp is not read.
pub(crate) fn observe(path: &Path, known: Option<&FileStamp>) -> Observation {
    match read(path, known) {
        Ok(observed) => observed,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Observation::Missing { is_link: is_dead_link(path) }
        }
        Err(error) => Observation::Unread(Box::new(unread(path, &error))),
    }
}

fn read(path: &Path, known: Option<&FileStamp>) -> io::Result<Observation> {
    // Checked before it is opened: opening a named pipe would block.
    let metadata = std::fs::metadata(path)?;
    if metadata.is_dir() {
        return Ok(Observation::Missing { is_link: is_dead_link(path) });
    }
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let stamp = FileStamp::of(&metadata);
    if known == Some(&stamp) {
        return Ok(Observation::Same(stamp));
    }
    let is_link = std::fs::symlink_metadata(path)?.is_symlink();
    // The link is followed once, so that the recorded target is the file that is read.
    let target = if is_link { Some(std::fs::canonicalize(path)?) } else { None };
    let mut file = File::open(target.as_deref().unwrap_or(path))?;
    // Taken from the open file, because the path may lead to another file by now.
    let stamp = FileStamp::of(&file.metadata()?);
    let expected = usize::try_from(stamp.bytes).unwrap_or(FILE_MAX_BYTES).min(FILE_MAX_BYTES);
    let mut bytes = Vec::with_capacity(expected + 1);
    file.by_ref().take(FILE_MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    if FileStamp::of(&file.metadata()?).bytes_differ(&stamp) {
        return Ok(Observation::Busy);
    }
    let is_settled = stamp.id.is_some_and(|id| id.is_settled(SystemTime::now()));
    let version = FileVersion { stamp, digest: ContentDigest::of(&bytes), is_settled, target };
    Ok(Observation::File(ObservedFile { version, bytes }))
}
