//! Runs in files of one directory.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use toolcrib_core::bounds::{Bounds, Whose};
use toolcrib_core::run::{RunId, RunRecord, RunStore};
use toolcrib_core::suspension::StoreError;
use toolcrib_tool::BoxFuture;

use super::records::{Records, blocking};

/// Keeps the records of runs in files. They survive a restart, and several processes may share the
/// directory: none overwrites what it has not seen.
///
/// Where it is full (10,000 runs), the oldest run that is over makes room. A file that cannot be
/// read is reported and left. The files hold arguments and results in plain text. Needs a tokio
/// runtime: files are read and written on its blocking pool.
#[derive(Debug, Clone)]
pub struct FileRuns(Arc<Records<RunRecord>>);

impl FileRuns {
    /// Opens a directory, made if it is not there. Fails if others may look into it.
    pub fn open(dir: impl Into<PathBuf>) -> io::Result<Self> {
        Records::open(dir.into()).map(|records| Self(Arc::new(records)))
    }
}

fn save(records: &Records<RunRecord>, record: RunRecord) -> Result<u64, StoreError> {
    // Held until the new version is in its place.
    let _lock = records.lock()?;
    let version = records.read(record.id())?.map_or(0, |kept| kept.version());
    if version != record.version() {
        return Err(StoreError::Conflict);
    }
    if version == 0 {
        make_room(records, &record)?;
    }
    let record = record.with_version(version + 1);
    records.write(record.id(), &record)?;
    Ok(version + 1)
}

fn make_room(records: &Records<RunRecord>, new: &RunRecord) -> Result<(), StoreError> {
    let bounds = Bounds::default();
    if records.ids()?.len() < bounds.per_identity {
        return Ok(());
    }
    loop {
        let runs = records.all()?;
        let own = runs.iter().filter(|run| run.identity() == new.identity()).count();
        let Err(full) = bounds.admit("runs", own, runs.len()) else { return Ok(()) };
        let oldest = runs
            .iter()
            .filter(|run| full.whose == Whose::All || run.identity() == new.identity())
            .filter(|run| run.is_over(new.created_at()))
            .min_by_key(|run| run.created_at())
            .ok_or(full)?;
        records.remove(oldest.id())?;
    }
}

impl RunStore for FileRuns {
    fn save<'a>(&'a self, record: &'a RunRecord) -> BoxFuture<'a, Result<u64, StoreError>> {
        let (records, record) = (Arc::clone(&self.0), record.clone());
        Box::pin(blocking(move || save(&records, record)))
    }

    fn load<'a>(&'a self, id: &'a RunId) -> BoxFuture<'a, Result<Option<RunRecord>, StoreError>> {
        let (records, id) = (Arc::clone(&self.0), id.clone());
        Box::pin(blocking(move || records.read(&id)))
    }

    fn remove<'a>(&'a self, id: &'a RunId) -> BoxFuture<'a, Result<(), StoreError>> {
        let (records, id) = (Arc::clone(&self.0), id.clone());
        Box::pin(blocking(move || {
            let _lock = records.lock()?;
            records.remove(&id).map(|_| ())
        }))
    }

    fn list<'a>(&'a self, identity: &'a str) -> BoxFuture<'a, Result<Vec<RunRecord>, StoreError>> {
        let (records, identity) = (Arc::clone(&self.0), identity.to_owned());
        Box::pin(blocking(move || {
            let mut runs = records.all()?;
            runs.retain(|run| run.identity() == identity);
            runs.sort_by(|a, b| (a.created_at(), a.id()).cmp(&(b.created_at(), b.id())));
            Ok(runs)
        }))
    }
}

#[cfg(test)]
mod tests;
