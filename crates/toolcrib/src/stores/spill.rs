//! Long outputs in files of one directory.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};
use toolcrib_core::spill::{
    Handle, Owner, Page, SpillError, SpillFormat, SpillKey, SpillLimits, SpillStore, Spilled,
};
use toolcrib_tool::BoxFuture;

use super::private_dir::private_dir;

/// The end of the name of a file that holds an output.
const SUFFIX: &str = ".spill";

/// The end of the name of a file that is being written.
const UNFINISHED: &str = ".part";

/// How long a file may take to be written; what is older was left behind by a process that died.
const WRITING: Duration = Duration::from_secs(10 * 60);

/// How long the store trusts its own count of what is there: another process may use the directory.
const RECOUNT: Duration = Duration::from_secs(60);

/// Keeps outputs in files, bounded by bytes, number and age. They survive a restart.
///
/// A file is named after a hash of handle and owner ([`SpillKey`]), so a model's handle never
/// becomes a path, a handle of somebody else finds no file, and the names give nothing away. The
/// files hold what the tools wrote, in plain text. Needs a tokio runtime: files are read and
/// written on its blocking pool.
///
/// ```
/// use toolcrib::ContextValues;
/// use toolcrib::core::spill::{Owner, SpillStore, Spilled};
/// use toolcrib::stores::FileSpill;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let home = tempfile::tempdir()?;
/// # let dir = home.path().join("spill");
/// let owner = Owner::of(&ContextValues::new().with("user", "ada"), None);
/// let handle = FileSpill::open(&dir, FileSpill::limits())?
///     .put(&owner, Spilled::text("a long story"))
///     .await?;
///
/// // After a restart it is still there.
/// let store = FileSpill::open(&dir, FileSpill::limits())?;
/// assert_eq!(store.read(&owner, &handle, 2, 4).await?.text, "long");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct FileSpill(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    dir: PathBuf,
    limits: SpillLimits,
    /// What is there, as of the last count. Held while a file is added, so that two calls cannot
    /// both take the last place.
    kept: Mutex<Option<Count>>,
}

#[derive(Debug)]
struct Count {
    since: Instant,
    bytes: usize,
    /// The oldest first.
    files: VecDeque<Kept>,
}

#[derive(Debug)]
struct Kept {
    path: PathBuf,
    bytes: usize,
    since: SystemTime,
}

/// The first line of a file.
#[derive(Serialize, Deserialize)]
struct Head {
    format: String,
    omitted_bytes: u64,
}

impl FileSpill {
    /// Opens a directory, made if it is not there, and removes what has expired in it.
    ///
    /// Fails if others may look into the directory: give it a directory of its own.
    pub fn open(dir: impl Into<PathBuf>, limits: SpillLimits) -> io::Result<Self> {
        let dir = dir.into();
        private_dir(&dir)?;
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("the directory {}: {error}", dir.display()))
        };
        let store = Inner { dir: dir.clone(), limits, kept: Mutex::new(None) };
        let count = store.count().map_err(named)?;
        let store = Inner { kept: Mutex::new(Some(count)), ..store };
        Ok(Self(Arc::new(store)))
    }

    /// Limits that suit a disk: 256 MiB, 10,000 outputs of up to 8 MiB, a day.
    pub fn limits() -> SpillLimits {
        let mut limits = SpillLimits::default();
        limits.max_bytes = 256 * 1024 * 1024;
        limits.max_entries = 10_000;
        limits.ttl = Duration::from_secs(24 * 60 * 60);
        limits
    }
}

impl Inner {
    fn put(&self, owner: &Owner, spilled: &Spilled) -> Result<Handle, SpillError> {
        let bytes = spilled.text.len();
        self.limits.admit(bytes)?;
        let handle = Handle::random()?;
        let key = SpillKey::of(owner, &handle);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut count = match kept.take() {
            Some(count) if count.since.elapsed() < RECOUNT => count,
            _ => self.count().map_err(failed)?,
        };
        while count.files.len() >= self.limits.max_entries
            || count.bytes + bytes > self.limits.max_bytes
        {
            count.drop_oldest();
        }
        let path = self.path(&key);
        // If this fails, the next one counts afresh.
        write(&path, spilled).map_err(failed)?;
        count.bytes += bytes;
        count.files.push_back(Kept { path, bytes, since: SystemTime::now() });
        *kept = Some(count);
        Ok(handle)
    }

    fn read(&self, key: &SpillKey, offset: usize, limit: usize) -> Result<Page, SpillError> {
        let mut file = match File::open(self.path(key)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(SpillError::NotFound);
            }
            opened => opened.map_err(failed)?,
        };
        let since = file.metadata().and_then(|found| found.modified()).map_err(failed)?;
        if self.has_expired(since) {
            return Err(SpillError::NotFound);
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed)?;
        let damaged = || SpillError::Failed(format!("the file {key}{SUFFIX} is damaged"));
        let end = text.find('\n').ok_or_else(damaged)?;
        let head: Head = serde_json::from_str(&text[..end]).map_err(|_| damaged())?;
        text.drain(..=end);
        let mut whole = Spilled::text(text).with_omitted_bytes(head.omitted_bytes);
        whole.format = SpillFormat::from_word(&head.format).ok_or_else(damaged)?;
        Ok(Page::of(&whole, offset, limit))
    }

    /// Looks through the directory, removing what has expired or was never finished.
    fn count(&self) -> io::Result<Count> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            let path = entry.path();
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            let finished = name.ends_with(SUFFIX);
            if !finished && !name.ends_with(UNFINISHED) {
                continue;
            }
            // Gone in the meantime: another process has removed it.
            let Ok(found) = entry.metadata() else { continue };
            let since = found.modified()?;
            let left_behind = !finished && age(since) >= WRITING;
            if self.has_expired(since) || left_behind {
                remove(&path);
            } else if finished {
                let bytes = usize::try_from(found.len()).unwrap_or(usize::MAX);
                files.push(Kept { path, bytes, since });
            }
        }
        files.sort_unstable_by(|a, b| a.since.cmp(&b.since).then_with(|| a.path.cmp(&b.path)));
        let bytes = files.iter().map(|file| file.bytes).fold(0, usize::saturating_add);
        Ok(Count { since: Instant::now(), bytes, files: files.into() })
    }

    fn has_expired(&self, since: SystemTime) -> bool {
        age(since) >= self.limits.ttl
    }

    fn path(&self, key: &SpillKey) -> PathBuf {
        self.dir.join(format!("{key}{SUFFIX}"))
    }
}

impl Count {
    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.files.pop_front() {
            self.bytes -= oldest.bytes;
            remove(&oldest.path);
        }
    }
}

/// Writes beside the place and moves there, so that nobody reads half a file.
fn write(path: &Path, spilled: &Spilled) -> io::Result<()> {
    let head =
        Head { format: spilled.format.as_str().to_owned(), omitted_bytes: spilled.omitted_bytes };
    let unfinished = path.with_extension(&UNFINISHED[1..]);
    let written = (|| {
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
        writeln!(file, "{}", serde_json::to_string(&head)?)?;
        file.write_all(spilled.text.as_bytes())?;
        fs::rename(&unfinished, path)
    })();
    if written.is_err() {
        // What cannot be removed now is removed by a later count.
        let _ = fs::remove_file(&unfinished);
    }
    written
}

/// A time in the future is no age: clocks are set back.
fn age(since: SystemTime) -> Duration {
    since.elapsed().unwrap_or_default()
}

fn remove(path: &Path) {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(path = %path.display(), %error, "an expired output was not removed");
        }
        _ => {}
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the shape `map_err` wants")]
fn failed(error: io::Error) -> SpillError {
    SpillError::Failed(error.to_string())
}

/// Runs on the blocking pool.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SpillError> + Send + 'static,
) -> Result<T, SpillError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(SpillError::Failed(error.to_string())),
    }
}

impl SpillStore for FileSpill {
    fn put<'a>(
        &'a self,
        owner: &'a Owner,
        spilled: Spilled,
    ) -> BoxFuture<'a, Result<Handle, SpillError>> {
        let (store, owner) = (Arc::clone(&self.0), owner.clone());
        Box::pin(blocking(move || store.put(&owner, &spilled)))
    }

    fn read<'a>(
        &'a self,
        owner: &'a Owner,
        handle: &'a Handle,
        offset: usize,
        limit: usize,
    ) -> BoxFuture<'a, Result<Page, SpillError>> {
        let store = Arc::clone(&self.0);
        let key = SpillKey::of(owner, handle);
        Box::pin(blocking(move || store.read(&key, offset, limit)))
    }
}

#[cfg(test)]
mod tests;
