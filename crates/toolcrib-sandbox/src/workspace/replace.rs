//! Writing files atomically: a new file in the same folder replaces the old one.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;

use rustix::fs::{
    Access as Right, AtFlags, Gid, Mode, OFlags, RawMode, Stat, Uid, accessat, fchmod, fchown,
    fstat, ftruncate, openat, renameat, unlinkat,
};
use rustix::io::Errno;

use super::entry::{FileState, regular};
use super::folder::{FolderEntry, READ};
use super::locks::LockMode;
use super::read::open_file;
use super::wanted::RequestedPath;
use super::{Workspace, WorkspaceError};

/// The result of writing a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriteReport {
    /// Whether the file is new.
    pub created: bool,
    /// The new size of the file, in bytes.
    pub size: u64,
}

impl Workspace {
    /// Writes a whole file, and creates missing folders on the way. An existing file keeps its mode
    /// and, if the server has the permission, its owner; its other names (hard links) keep the old
    /// content. Links and files without write permission are refused.
    ///
    /// Others see the new content at once; it is not flushed to disk.
    pub fn write(&self, path: &str, content: &[u8]) -> Result<WriteReport, WorkspaceError> {
        let spot = self.spot_to_make(&self.wanted_file(path)?)?;
        let _locked = self.lock(&spot.folder, &spot.name, LockMode::Exclusive)?;
        let old = writable(&spot)?;
        put(&spot, old.as_ref(), content, || Ok(()))?;
        Ok(WriteReport { created: old.is_none(), size: content.len() as u64 })
    }

    /// Appends to a file, which is created if it does not exist. The file itself grows unless it has other names (hard
    /// links): then it is replaced as by [`write`](Self::write). Its set-user-ID and set-group-ID bits are cleared.
    pub fn append(&self, path: &str, content: &[u8]) -> Result<WriteReport, WorkspaceError> {
        let spot = self.spot_to_make(&self.wanted_file(path)?)?;
        let _locked = self.lock(&spot.folder, &spot.name, LockMode::Exclusive)?;
        let Some(old) = writable(&spot)? else {
            put(&spot, None, content, || Ok(()))?;
            return Ok(WriteReport { created: true, size: content.len() as u64 });
        };
        let flags = OFlags::WRONLY
            | OFlags::APPEND
            | OFlags::NOFOLLOW
            | OFlags::NONBLOCK
            | OFlags::NOCTTY
            | OFlags::CLOEXEC;
        let mut file = File::from(openat(&spot.folder, &spot.name, flags, Mode::empty())?);
        // This checks the opened file, because the name may refer to another one by now.
        let stat = fstat(&file)?;
        regular(&stat)?;
        if stat.st_nlink > 1 {
            let mut whole = open_to_read(&spot)?.read_all(u64::MAX)?;
            whole.extend_from_slice(content);
            put(&spot, Some(&old), &whole, || Ok(()))?;
            return Ok(WriteReport { created: false, size: whole.len() as u64 });
        }
        let before = u64::try_from(stat.st_size).unwrap_or(0);
        // When root writes to such a file, the kernel keeps the bits, so the written code would run
        // as the file's owner.
        take_set_id_bits(&file)?;
        if let Err(error) = file.write_all(content) {
            // A partial write is undone: all or nothing.
            let _ = ftruncate(&file, before);
            return Err(error.into());
        }
        // Somebody may have set them in between.
        take_set_id_bits(&file)?;
        Ok(WriteReport { created: false, size: before + content.len() as u64 })
    }

    /// Reads a file of at most `limit` bytes and replaces it by the result of `change`; on `None`
    /// it stays unchanged. Users of the same locks cannot change it meanwhile; if another program
    /// does, nothing is written ([`WorkspaceError::Changed`]).
    pub fn update<T, E: From<WorkspaceError>>(
        &self,
        path: &str,
        limit: u64,
        change: impl FnOnce(Vec<u8>) -> Result<(Option<Vec<u8>>, T), E>,
    ) -> Result<T, E> {
        let spot = self.spot(&self.wanted_file(path)?)?;
        let _locked = self.lock(&spot.folder, &spot.name, LockMode::Exclusive)?;
        let Some(old) = writable(&spot)? else { return Err(WorkspaceError::NotFound.into()) };
        let mut file = open_to_read(&spot)?;
        let read = file.stamp;
        let (content, outcome) = change(file.read_all(limit)?)?;
        if let Some(content) = content {
            put(&spot, Some(&old), &content, || {
                let now = spot.stat()?.map(|stat| FileState::from(&stat));
                if now == Some(read) { Ok(()) } else { Err(WorkspaceError::Changed) }
            })?;
        }
        Ok(outcome)
    }

    /// A path that can name a file.
    fn wanted_file(&self, path: &str) -> Result<RequestedPath, WorkspaceError> {
        let wanted = self.wanted(path)?;
        if wanted.is_folder() && wanted.split().is_some() {
            let problem = "the path ends with a slash, and so names a folder, not a file";
            return Err(WorkspaceError::Malformed(problem));
        }
        Ok(wanted)
    }
}

/// Clears the set-user-ID and set-group-ID bits of an open file, as the kernel does when anybody but root writes to it.
fn take_set_id_bits(file: &File) -> Result<(), WorkspaceError> {
    let mode = fstat(file)?.st_mode;
    if mode & 0o6000 == 0 {
        return Ok(());
    }
    match fchmod(file, Mode::from_raw_mode(mode & 0o1777)) {
        // The file has another owner: the kernel clears its bits.
        Err(Errno::PERM) if !rustix::process::geteuid().is_root() => Ok(()),
        done => Ok(done?),
    }
}

fn open_to_read(spot: &FolderEntry) -> Result<super::OpenFile, WorkspaceError> {
    let fd = openat(&spot.folder, &spot.name, READ | OFlags::NOFOLLOW, Mode::empty())?;
    open_file(fd.into(), None)
}

/// The existing entry, if it may be replaced.
fn writable(spot: &FolderEntry) -> Result<Option<Stat>, WorkspaceError> {
    let Some(stat) = spot.stat()? else { return Ok(None) };
    regular(&stat)?;
    // Replacing a file needs no permission on it. A caller without write permission must not get
    // around it that way.
    match accessat(&spot.folder, &spot.name, Right::WRITE_OK, AtFlags::EACCESS) {
        // It was deleted meanwhile, so the file is new.
        Ok(()) | Err(Errno::NOENT) => Ok(Some(stat)),
        Err(errno) => Err(errno.into()),
    }
}

/// Writes a new file beside the old one and renames it, if `still` agrees then.
fn put(
    spot: &FolderEntry,
    old: Option<&Stat>,
    content: &[u8],
    still: impl FnOnce() -> Result<(), WorkspaceError>,
) -> Result<(), WorkspaceError> {
    // A new file gets the mode that the umask allows. A replacement is private until it has the old file's mode.
    let mode = if old.is_some() { 0o600 } else { 0o666 };
    let (file, draft) = TemporaryFile::new(&spot.folder, mode)?;
    (&file).write_all(content)?;
    if let Some(old) = old {
        keep_rights(&file, old)?;
    }
    still()?;
    renameat(&spot.folder, &draft.name, &spot.folder, &spot.name)?;
    draft.done();
    Ok(())
}

fn keep_rights(file: &File, old: &Stat) -> Result<(), WorkspaceError> {
    let new = fstat(file)?;
    let mut mode = old.st_mode & 0o777;
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid) {
        let (owner, group) = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
        let kept =
            fchown(file, Some(owner), Some(group)).or_else(|_| fchown(file, None, Some(group)));
        if kept.is_err() {
            // The group differs, and the old file gave its group no permissions.
            mode &= 0o707;
        }
    }
    Ok(fchmod(file, Mode::from_raw_mode(mode))?)
}

/// A file under a temporary name; dropping it deletes it unless it was renamed.
struct TemporaryFile<'f> {
    folder: &'f OwnedFd,
    name: String,
    named: bool,
}

impl<'f> TemporaryFile<'f> {
    fn new(folder: &'f OwnedFd, mode: RawMode) -> Result<(File, Self), WorkspaceError> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // A name that exists belongs to somebody else; two collisions in a row are no coincidence.
        for _ in 0..8 {
            let unique = getrandom::u64().map_err(|_| no_random())?;
            let name = format!(".toolcrib-{unique:016x}.tmp");
            match openat(folder, &name, flags, Mode::from_raw_mode(mode)) {
                Ok(fd) => return Ok((fd.into(), Self { folder, name, named: false })),
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Err(WorkspaceError::Busy)
    }

    fn done(mut self) {
        self.named = true;
    }
}

impl Drop for TemporaryFile<'_> {
    fn drop(&mut self) {
        if !self.named {
            let _ = unlinkat(self.folder, &self.name, AtFlags::empty());
        }
    }
}

fn no_random() -> WorkspaceError {
    WorkspaceError::Io(std::io::Error::other("the system has no random numbers"))
}
