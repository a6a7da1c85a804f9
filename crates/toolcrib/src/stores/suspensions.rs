//! Suspended calls in files of one directory.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use toolcrib_core::bounds::{Full, Whose};
use toolcrib_core::suspension::{Settled, StoreError, Suspension, SuspensionId, SuspensionStore};
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
///
/// What became of calls that others have decided on is kept in the folder `settled` below it, for a
/// day.
#[derive(Debug, Clone)]
pub struct FileSuspensions {
    waiting: Arc<Records<Suspension>>,
    settled: Arc<Records<Settled>>,
}

impl FileSuspensions {
    /// Opens a directory, made if it is not there. Fails if others may look into it.
    pub fn open(dir: impl Into<PathBuf>) -> io::Result<Self> {
        let dir = dir.into();
        let waiting = Arc::new(Records::open(dir.clone())?);
        let settled = Arc::new(Records::open(dir.join("settled"))?);
        Ok(Self { waiting, settled })
    }

    async fn sorted(
        &self,
        wanted: impl Fn(&Suspension) -> bool + Send + 'static,
    ) -> Result<Vec<Suspension>, StoreError> {
        let records = Arc::clone(&self.waiting);
        blocking(move || {
            let mut waiting = records.all()?;
            waiting.retain(wanted);
            waiting.sort_by(|a, b| (a.created_at(), a.id()).cmp(&(b.created_at(), b.id())));
            Ok(waiting)
        })
        .await
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
            return Err(Full::new("calls that wait", Whose::All, entries).into());
        }
    }
    records.write(suspension.id(), suspension)
}

fn settle(records: &Records<Settled>, settled: &Settled) -> Result<(), StoreError> {
    let _lock = records.lock()?;
    let ids = records.ids()?;
    if ids.len() >= MAX_WAITING {
        let mut all = records.all()?;
        all.sort_by_key(Settled::decided_at);
        let room = (all.len() + 1).saturating_sub(MAX_WAITING);
        let old = |one: &Settled| one.is_old(settled.decided_at());
        for (place, one) in all.iter().enumerate() {
            if place < room || old(one) {
                records.remove(one.suspension().id())?;
            }
        }
    }
    records.write(settled.suspension().id(), settled)
}

impl SuspensionStore for FileSuspensions {
    fn put<'a>(&'a self, suspension: &'a Suspension) -> BoxFuture<'a, Result<(), StoreError>> {
        let (records, suspension) = (Arc::clone(&self.waiting), suspension.clone());
        Box::pin(blocking(move || put(&records, &suspension)))
    }

    fn find<'a>(
        &'a self,
        id: &'a SuspensionId,
    ) -> BoxFuture<'a, Result<Option<Suspension>, StoreError>> {
        let (records, id) = (Arc::clone(&self.waiting), id.clone());
        Box::pin(blocking(move || records.read(&id)))
    }

    fn take<'a>(
        &'a self,
        id: &'a SuspensionId,
    ) -> BoxFuture<'a, Result<Option<Suspension>, StoreError>> {
        let (records, id) = (Arc::clone(&self.waiting), id.clone());
        Box::pin(blocking(move || {
            // Read first, so that one nobody can read is left; whoever then removes it has it.
            let found = records.read(&id)?;
            Ok(if found.is_some() && records.remove(&id)? { found } else { None })
        }))
    }

    fn list<'a>(&'a self, identity: &'a str) -> BoxFuture<'a, Result<Vec<Suspension>, StoreError>> {
        let identity = identity.to_owned();
        Box::pin(self.sorted(move |one| one.identity() == identity))
    }

    fn all(&self) -> BoxFuture<'_, Result<Vec<Suspension>, StoreError>> {
        Box::pin(self.sorted(|_| true))
    }

    fn settle<'a>(&'a self, settled: &'a Settled) -> BoxFuture<'a, Result<(), StoreError>> {
        let (records, settled) = (Arc::clone(&self.settled), settled.clone());
        Box::pin(blocking(move || settle(&records, &settled)))
    }

    fn settled<'a>(
        &'a self,
        id: &'a SuspensionId,
    ) -> BoxFuture<'a, Result<Option<Settled>, StoreError>> {
        let (records, id) = (Arc::clone(&self.settled), id.clone());
        Box::pin(blocking(move || records.read(&id)))
    }

    fn take_settled<'a>(
        &'a self,
        id: &'a SuspensionId,
    ) -> BoxFuture<'a, Result<Option<Settled>, StoreError>> {
        let (records, id) = (Arc::clone(&self.settled), id.clone());
        Box::pin(blocking(move || {
            let found = records.read(&id)?;
            Ok(if found.is_some() && records.remove(&id)? { found } else { None })
        }))
    }

    fn list_settled<'a>(
        &'a self,
        identity: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Settled>, StoreError>> {
        let (records, identity) = (Arc::clone(&self.settled), identity.to_owned());
        Box::pin(blocking(move || {
            let mut settled = records.all()?;
            settled.retain(|one| one.suspension().identity() == identity);
            settled.sort_by_key(Settled::decided_at);
            Ok(settled)
        }))
    }
}

#[cfg(test)]
mod tests;
