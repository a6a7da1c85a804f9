//! Keeps exposed places beyond the process that exposed them.

use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Where the [exposed](super::ControlPlane::exposed) places outlive the process, so that a file that a program has made
/// is not run after a restart, or by another process, before the operator has reviewed it. It reports its failures, and
/// may block.
pub trait ExposureRecord: fmt::Debug + Send + Sync + 'static {
    /// The recorded places; `None` if they cannot be read.
    fn places(&self) -> Option<Vec<PathBuf>>;

    /// Adds places. When it returns, they are stored.
    fn add(&self, places: &[PathBuf]) -> io::Result<()>;

    /// Removes places that have been reviewed.
    fn remove(&self, places: &[PathBuf]);
}

/// How far the times of files may be behind the clock.
const LATE: Duration = Duration::from_secs(1);

/// A record, and when it was read last.
#[derive(Debug)]
pub(super) struct ReadRecord {
    pub(super) record: Arc<dyn ExposureRecord>,
    read_at: Option<SystemTime>,
}

impl ReadRecord {
    pub(super) fn new(record: Arc<dyn ExposureRecord>) -> Self {
        Self { record, read_at: None }
    }

    /// The recorded places.
    pub(super) fn places(&mut self) -> Vec<PathBuf> {
        let now = SystemTime::now();
        let places = self.record.places();
        if places.is_some() {
            self.read_at = Some(now);
        }
        places.unwrap_or_default()
    }

    /// The recorded places, if they were never read, or if one of these files has changed since: another process may
    /// have exposed it.
    pub(super) fn places_for(&mut self, files: &[PathBuf]) -> Vec<PathBuf> {
        let has_changed = |read_at: SystemTime| {
            files.iter().filter_map(|file| file.symlink_metadata().ok()).any(|found| {
                let seconds = Duration::from_secs(u64::try_from(found.ctime()).unwrap_or(0));
                UNIX_EPOCH + seconds + LATE >= read_at
            })
        };
        if self.read_at.is_some_and(|read_at| !has_changed(read_at)) {
            return Vec::new();
        }
        self.places()
    }
}
