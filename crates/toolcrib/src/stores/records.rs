//! A directory of small records, one JSON file each, shared by processes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::marker::PhantomData;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use toolcrib_core::suspension::{StoreError, SuspensionId};

use super::private_dir::private_dir;

/// The end of the name of a file that holds a record.
const SUFFIX: &str = ".json";

/// Records of one type by their ids. An id is safe as a file's name: it is hexadecimal digits.
#[derive(Debug)]
pub(super) struct Records<T> {
    dir: PathBuf,
    of: PhantomData<fn() -> T>,
}

impl<T: Serialize + DeserializeOwned> Records<T> {
    /// Opens a directory of its owner's alone, made if it is not there.
    pub(super) fn open(dir: PathBuf) -> io::Result<Self> {
        private_dir(&dir)?;
        Ok(Self { dir, of: PhantomData })
    }

    /// Holds a lock over all records until the file is dropped, against other processes too.
    pub(super) fn lock(&self) -> Result<File, StoreError> {
        let path = self.dir.join("lock");
        let locked = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .and_then(|file| file.lock().map(|()| file));
        locked.map_err(failed("lock", &path))
    }

    /// Writes a record beside its place and moves it there, so that nobody reads half of it. When
    /// this returns it survives the loss of power.
    pub(super) fn write(&self, id: &SuspensionId, record: &T) -> Result<(), StoreError> {
        let path = self.path(id);
        let unfinished = path.with_extension("part");
        let written = (|| {
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(true).mode(0o600);
            let mut file = options.open(&unfinished)?;
            file.write_all(&serde_json::to_vec(record)?)?;
            file.sync_all()?;
            fs::rename(&unfinished, &path)?;
            self.sync()
        })();
        written.map_err(|error| {
            // The next write of the same record would replace it anyway.
            let _ = fs::remove_file(&unfinished);
            failed("write", &path)(error)
        })
    }

    /// Reads a record. One that cannot be read is left as it is.
    pub(super) fn read(&self, id: &SuspensionId) -> Result<Option<T>, StoreError> {
        let path = self.path(id);
        let text = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(failed("read", &path))?,
        };
        serde_json::from_slice(&text).map(Some).map_err(|error| StoreError::Corrupt {
            place: path.display().to_string(),
            problem: error.to_string(),
        })
    }

    /// Removes a record. Of all who remove it, one is told that it was there.
    pub(super) fn remove(&self, id: &SuspensionId) -> Result<bool, StoreError> {
        let path = self.path(id);
        match fs::remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            // Before anybody acts on it, it must be gone for good: a loss of power must not bring
            // it back.
            removed => {
                removed.and_then(|()| self.sync()).map(|()| true).map_err(failed("remove", &path))
            }
        }
    }

    /// The ids of all records, in no order.
    pub(super) fn ids(&self) -> Result<Vec<SuspensionId>, StoreError> {
        let listed = fs::read_dir(&self.dir).and_then(|entries| {
            let mut ids = Vec::new();
            for entry in entries {
                let name = entry?.file_name();
                let id = name.to_str().and_then(|name| name.strip_suffix(SUFFIX));
                ids.extend(id.and_then(|id| id.parse::<SuspensionId>().ok()));
            }
            Ok(ids)
        });
        listed.map_err(failed("list", &self.dir))
    }

    /// All records that can be read, in no order; the others are reported in the log.
    pub(super) fn all(&self) -> Result<Vec<T>, StoreError> {
        let mut records = Vec::new();
        for id in self.ids()? {
            match self.read(&id) {
                Ok(record) => records.extend(record),
                Err(error) => tracing::warn!(%error, "a record was passed over"),
            }
        }
        Ok(records)
    }

    fn path(&self, id: &SuspensionId) -> PathBuf {
        self.dir.join(format!("{id}{SUFFIX}"))
    }

    /// Makes what was created, moved and removed in the directory lasting.
    fn sync(&self) -> io::Result<()> {
        File::open(&self.dir)?.sync_all()
    }
}

fn failed(verb: &str, path: &Path) -> impl FnOnce(io::Error) -> StoreError + use<> {
    let action = format!("{verb} {}", path.display());
    move |error| StoreError::Failed { action, source: Box::new(error) }
}

/// Runs on the blocking pool.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        let action = "finish the work on a file".to_owned();
        Err(StoreError::Failed { action, source: Box::new(error) })
    })
}
