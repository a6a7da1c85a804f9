//! A journal in a file, for tests that kill processes.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use toolcrib_agent::JournalRow;
use toolcrib_agent::journal::Journal;
use toolcrib_core::run::{Claim, RunCursor, RunId, Seq};
use toolcrib_core::suspension::StoreError;
use toolcrib_tool::BoxFuture;

/// Journals as files of JSON lines. A line without its end was never acknowledged and does not count. The process that
/// dies is the only one, so a claim needs no lock.
pub(crate) struct FileJournal {
    folder: PathBuf,
    writing: Mutex<()>,
}

impl FileJournal {
    pub(crate) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), writing: Mutex::new(()) }
    }

    fn path(&self, run: &RunId) -> PathBuf {
        self.folder.join(format!("{run}.jsonl"))
    }

    /// The runs in it.
    pub(crate) fn runs(&self) -> Vec<RunId> {
        let files = fs::read_dir(&self.folder).unwrap().map(|file| file.unwrap().path());
        let runs = files.filter(|file| file.extension().is_some_and(|kind| kind == "jsonl"));
        runs.map(|file| file.file_stem().unwrap().to_str().unwrap().parse().unwrap()).collect()
    }

    fn lines(&self, run: &RunId) -> Option<Vec<String>> {
        let text = fs::read_to_string(self.path(run)).ok()?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        Some(text[..whole].lines().map(str::to_owned).collect())
    }

    fn appended(&self, run: &RunId, after: Seq, rows: &[JournalRow]) -> Result<Seq, StoreError> {
        let _one_at_a_time = self.writing.lock().unwrap();
        let lines = self.lines(run).unwrap_or_default();
        if lines.len() as Seq != after {
            return Err(StoreError::Conflict);
        }
        // What was not acknowledged goes.
        let kept: usize = lines.iter().map(|line| line.len() + 1).sum();
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.path(run))
            .unwrap();
        file.set_len(kept as u64).unwrap();
        std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0)).unwrap();
        // All rows in one write; a line end is missing only from the last.
        let mut text = String::new();
        for row in rows {
            text.extend([serde_json::to_string(row).unwrap().as_str(), "\n"]);
        }
        file.write_all(text.as_bytes()).unwrap();
        File::sync_data(&file).unwrap();
        Ok(after + rows.len() as Seq)
    }
}

impl Journal for FileJournal {
    fn append<'a>(
        &'a self,
        run: &'a RunId,
        after: Seq,
        rows: &'a [JournalRow],
        _claim: Option<&'a Claim>,
    ) -> BoxFuture<'a, Result<Seq, StoreError>> {
        Box::pin(async move { self.appended(run, after, rows) })
    }

    fn read<'a>(
        &'a self,
        run: &'a RunId,
        after: Seq,
        limit: usize,
    ) -> BoxFuture<'a, Result<Option<Vec<JournalRow>>, StoreError>> {
        Box::pin(async move {
            let Some(lines) = self.lines(run) else { return Ok(None) };
            let after = usize::try_from(after).unwrap();
            let rows = lines.iter().skip(after).take(limit);
            Ok(Some(rows.map(|line| serde_json::from_str(line).unwrap()).collect()))
        })
    }

    fn list<'a>(
        &'a self,
        _identity: &'a str,
        _after: Option<&'a RunCursor>,
        _limit: usize,
    ) -> BoxFuture<'a, Result<Vec<RunCursor>, StoreError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn claim<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<Claim>, StoreError>> {
        Box::pin(async move { Ok(self.path(run).exists().then(|| Claim::new(run.clone(), 1))) })
    }

    fn release<'a>(&'a self, _claim: &'a Claim) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async { Ok(()) })
    }

    fn erase<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let _ = fs::remove_file(self.path(run));
            Ok(())
        })
    }
}
