//! Suspended calls in files of one directory.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use toolcrib_core::suspension::{StoreError, Suspension, SuspensionId, SuspensionStore};
use toolcrib_tool::BoxFuture;

use super::records::{Records, blocking};

/// Calls that may wait at once.
const MAX_WAITING: usize = 10_000;

/// Keeps suspended calls in files. They survive a restart, and several processes may share the
/// directory: a call is taken by exactly one of them.
///
/// Where it is full (10,000 calls), what has expired makes room first. A file that cannot be read is
/// reported and left. The files hold the arguments in plain text. Needs a tokio runtime: files are
/// read and written on its blocking pool.
///
/// ```
/// use toolcrib::core::clock::Timestamp;
/// use toolcrib::core::suspension::{Suspension, SuspensionStore, Waiting};
/// use toolcrib::stores::FileSuspensions;
/// use toolcrib::tool::{Arguments, CallId, Layer, Source};
/// use toolcrib::{ToolDefinition, ToolEntry};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let home = tempfile::tempdir()?;
/// # let dir = home.path().join("suspensions");
/// let definition = ToolDefinition::builder("pick").description("Ask for a file.").build()?;
/// let entry = ToolEntry::client(definition, Source::new(Layer::Host, "doc"));
/// let arguments = Arguments::from_validated("{}".to_owned());
/// let (call, now) = (CallId::new("call_1"), Timestamp::from_unix_millis(0));
/// let waits = Suspension::new(&call, &entry, &arguments, Waiting::Client, now, Timestamp::NEVER)?
///     .for_identity("ada");
/// FileSuspensions::open(&dir)?.put(&waits).await?;
///
/// // After a restart it still waits; it is taken once.
/// let store = FileSuspensions::open(&dir)?;
/// assert_eq!(store.list("ada").await?.len(), 1);
/// assert_eq!(store.take(waits.id()).await?, Some(waits.clone()));
/// assert_eq!(store.take(waits.id()).await?, None);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct FileSuspensions(Arc<Records<Suspension>>);

impl FileSuspensions {
    /// Opens a directory, made if it is not there. Fails if others may look into it.
    pub fn open(dir: impl Into<PathBuf>) -> io::Result<Self> {
        Records::open(dir.into()).map(|records| Self(Arc::new(records)))
    }
}

fn put(records: &Records<Suspension>, suspension: &Suspension) -> Result<(), StoreError> {
    // Nobody counts while another adds.
    let _lock = records.lock()?;
    let mut entries = records.ids()?.len();
    if entries >= MAX_WAITING {
        let now = suspension.created_at();
        for old in records.all()?.iter().filter(|old| old.is_expired(now)) {
            entries -= usize::from(records.remove(old.id())?);
        }
        if entries >= MAX_WAITING {
            return Err(StoreError::Full { entries });
        }
    }
    records.write(suspension.id(), suspension)
}

impl SuspensionStore for FileSuspensions {
    fn put<'a>(&'a self, suspension: &'a Suspension) -> BoxFuture<'a, Result<(), StoreError>> {
        let (records, suspension) = (Arc::clone(&self.0), suspension.clone());
        Box::pin(blocking(move || put(&records, &suspension)))
    }

    fn find<'a>(
        &'a self,
        id: &'a SuspensionId,
    ) -> BoxFuture<'a, Result<Option<Suspension>, StoreError>> {
        let (records, id) = (Arc::clone(&self.0), id.clone());
        Box::pin(blocking(move || records.read(&id)))
    }

    fn take<'a>(
        &'a self,
        id: &'a SuspensionId,
    ) -> BoxFuture<'a, Result<Option<Suspension>, StoreError>> {
        let (records, id) = (Arc::clone(&self.0), id.clone());
        Box::pin(blocking(move || {
            // Read first, so that one nobody can read is left; whoever then removes it has it.
            let found = records.read(&id)?;
            Ok(if found.is_some() && records.remove(&id)? { found } else { None })
        }))
    }

    fn list<'a>(&'a self, identity: &'a str) -> BoxFuture<'a, Result<Vec<Suspension>, StoreError>> {
        let (records, identity) = (Arc::clone(&self.0), identity.to_owned());
        Box::pin(blocking(move || {
            let mut waiting = records.all()?;
            waiting.retain(|one| one.identity() == identity);
            waiting.sort_by(|a, b| (a.created_at(), a.id()).cmp(&(b.created_at(), b.id())));
            Ok(waiting)
        }))
    }
}

#[cfg(test)]
mod tests;
