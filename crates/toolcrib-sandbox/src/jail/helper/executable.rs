//! The file of the helper: found and opened once, and started by its descriptor.
//!
//! What stands at its path later is of no concern. A program of the workspace, or whoever installs
//! another version, may replace the file while the server runs; and as one file can have several
//! names, it may also be changed in place. So its bytes are copied to a file in memory that nobody
//! can change.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustix::io::fcntl_dupfd_cloexec;

use super::plan;
use crate::SealedFile;

/// Whether this program can be its own helper.
pub(in crate::jail) static HOOKED: AtomicBool = AtomicBool::new(false);
pub(in crate::jail) static SET: OnceLock<PathBuf> = OnceLock::new();

/// A helper's file.
#[derive(Debug)]
pub(crate) struct Helper {
    file: HelperFile,
    /// Where it was, for messages.
    pub(crate) path: PathBuf,
}

#[derive(Debug)]
enum HelperFile {
    Copy(SealedFile),
    /// The running program itself, which the kernel lets nobody write to; or a file on a system that
    /// executes nothing in memory.
    File(OwnedFd),
}

impl Helper {
    /// Another descriptor of it, above this one.
    pub(crate) fn above(&self, last: i32) -> io::Result<OwnedFd> {
        match &self.file {
            HelperFile::Copy(file) => file.above(last),
            HelperFile::File(file) => Ok(fcntl_dupfd_cloexec(file.as_fd(), last + 1)?),
        }
    }

    fn open(path: &Path) -> io::Result<Self> {
        if !path.is_file() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let file = match SealedFile::new(&std::fs::read(path)?) {
            Ok(copy) => HelperFile::Copy(copy),
            Err(_) => HelperFile::File(File::open(path)?.into()),
        };
        Ok(Self { file, path: path.to_owned() })
    }

    fn own() -> io::Result<Self> {
        let path = PathBuf::from("/proc/self/exe");
        Ok(Self { file: HelperFile::File(File::open(&path)?.into()), path })
    }
}

/// The helper, if there is one. It is looked for until it has been found once.
pub(crate) fn helper() -> Option<Arc<Helper>> {
    static FOUND: Mutex<Option<Arc<Helper>>> = Mutex::new(None);
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    if found.is_none() {
        *found = find().map(Arc::new);
    }
    found.clone()
}

fn find() -> Option<Helper> {
    if let Some(set) = SET.get() {
        return Helper::open(set).ok();
    }
    let beside = || {
        let own = std::env::current_exe().ok()?;
        Helper::open(&own.parent()?.join(plan::NAME)).ok()
    };
    beside().or_else(|| HOOKED.load(Ordering::Acquire).then(Helper::own)?.ok())
}
