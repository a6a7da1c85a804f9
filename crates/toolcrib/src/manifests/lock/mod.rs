//! The lock in force, which checks every entry before it enters the registry, at the start and at
//! reloads.

#[cfg(feature = "mcp")]
mod accept;
#[cfg(feature = "mcp")]
mod review;

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use toolcrib_manifest::lock::{
    Kind, Lock, LockError, LockMismatch, LockMode, MismatchKind, apply_lock, apply_lock_to,
};
use toolcrib_tool::{Source, ToolEntry};

#[cfg(feature = "mcp")]
pub use accept::lock_of;

/// Compares entries with a lock file, which is read again when it has changed.
///
/// ```
/// use toolcrib::lock::LockKeeper;
/// use toolcrib::manifest::lock::LockMode;
/// use toolcrib::tool::{Layer, Source};
/// use toolcrib::{ToolDefinition, ToolEntry};
///
/// let definition = ToolDefinition::builder("pick").description("Pick a file.").build()?;
/// let entry = ToolEntry::client(definition, Source::new(Layer::Manifest, "tools.d/pick.yaml"));
/// let keeper = LockKeeper::new("no-such-folder/toolcrib.lock", LockMode::Enforce);
/// let admitted = keeper.admit([entry])?;
/// assert!(admitted[0].is_blocked(), "where there is no lock, nothing was accepted");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct LockKeeper {
    path: PathBuf,
    mode: LockMode,
    last: Mutex<Option<(LockStamp, Arc<Lock>)>>,
}

/// The lock's remark about a name that differs from it.
#[cfg(feature = "mcp")]
#[derive(Debug, Clone)]
pub(crate) struct LockRemark {
    /// The remark, as one clause.
    pub(crate) text: String,
    /// Whether the declaration is blocked.
    pub(crate) blocked: bool,
}

/// Changes when the file is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LockStamp {
    modified: Option<SystemTime>,
    length: u64,
    inode: u64,
}

impl LockStamp {
    fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(metadata);
        #[cfg(not(unix))]
        let inode = 0;
        Self { modified: metadata.modified().ok(), length: metadata.len(), inode }
    }
}

impl LockKeeper {
    /// Creates the keeper of the lock in this file, which need not exist.
    pub fn new(path: impl Into<PathBuf>, mode: LockMode) -> Self {
        Self { path: path.into(), mode, last: Mutex::default() }
    }

    /// The path of the lock.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is done about tools that differ from the lock.
    pub fn mode(&self) -> LockMode {
        self.mode
    }

    /// Compares entries with the current lock ([`apply_lock`]) and logs the differences. Every
    /// entry must pass this before it enters a registry.
    ///
    /// A lock that cannot be used is an error if it is enforced; otherwise it is logged.
    pub fn admit(
        &self,
        entries: impl IntoIterator<Item = ToolEntry>,
    ) -> Result<Vec<ToolEntry>, LockError> {
        if self.mode == LockMode::Off {
            return Ok(entries.into_iter().collect());
        }
        let lock = self.usable()?;
        let (entries, findings) = apply_lock(entries, lock.as_deref(), self.mode);
        findings.iter().for_each(log);
        Ok(entries)
    }

    /// Compares the names of other declarations, with their digests, with the current lock, logs the differences, and
    /// returns a remark for each name that differs. If the lock is enforced and cannot be used, it blocks all of them.
    #[cfg(feature = "mcp")]
    pub(crate) fn judge(
        &self,
        source: &Source,
        declared: &[(Kind, String, String)],
    ) -> Vec<Option<LockRemark>> {
        if self.mode == LockMode::Off || declared.is_empty() {
            return vec![None; declared.len()];
        }
        let lock = match self.usable() {
            Ok(lock) => lock,
            Err(error) => {
                tracing::error!("{error}");
                let said = LockRemark { text: "the lock cannot be read".to_owned(), blocked: true };
                return vec![Some(said); declared.len()];
            }
        };
        let judge = |(kind, name, digest): &(Kind, String, String)| {
            let lock = lock.as_deref();
            let finding = apply_lock_to(*kind, name, source, Some(digest), lock, self.mode)?;
            log(&finding);
            Some(LockRemark { text: finding.reason(), blocked: finding.blocked })
        };
        declared.iter().map(judge).collect()
    }

    /// Whether the lock is enforced and contains this declaration unchanged.
    pub fn accepts(&self, kind: Kind, name: &str, source: &Source, digest: &str) -> bool {
        if self.mode != LockMode::Enforce {
            return false;
        }
        let Ok(Some(lock)) = self.usable() else { return false };
        let finding = apply_lock_to(kind, name, source, Some(digest), Some(&lock), self.mode);
        finding.is_none_or(|finding| !finding.blocked)
    }

    /// The current lock. A lock that cannot be used counts as absent unless it is enforced.
    fn usable(&self) -> Result<Option<Arc<Lock>>, LockError> {
        match self.lock() {
            Err(error) if self.mode != LockMode::Enforce => {
                tracing::warn!("{error}");
                Ok(None)
            }
            lock => lock,
        }
    }

    /// The current lock; `None` if there is no file.
    pub fn lock(&self) -> Result<Option<Arc<Lock>>, LockError> {
        let Ok(metadata) = std::fs::metadata(&self.path) else {
            return Ok(Lock::read(&self.path)?.map(Arc::new));
        };
        let stamp = LockStamp::of(&metadata);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, lock)) = &*last
            && *known == stamp
        {
            return Ok(Some(Arc::clone(lock)));
        }
        // If it changes between the two checks, the next call reads it again.
        let lock = Lock::read(&self.path)?.map(Arc::new);
        *last = lock.clone().map(|lock| (stamp, lock));
        Ok(lock)
    }
}

fn log(finding: &LockMismatch) {
    let LockMismatch { kind, name, source, verdict, blocked } = finding;
    let kind = kind.as_str();
    if let MismatchKind::Moved { .. } = verdict {
        tracing::info!(kind, %name, %source, "{verdict}");
    } else {
        tracing::warn!(kind, %name, %source, blocked, "{verdict}");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolcrib_manifest::lock::{Kind, digest_of};
    use toolcrib_tool::{Layer, Source, ToolDefinition};

    use super::*;

    #[test]
    fn what_the_lock_accepts_meanwhile_is_admitted_the_next_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("toolcrib.lock");
        let source =
            Source::new(Layer::Manifest, folder.path().join("a.yaml").display().to_string());
        let declares = json!({"description": "Pick a file."});
        let definition =
            ToolDefinition::builder("pick").description("Pick a file.").build().unwrap();
        let entry = ToolEntry::client(definition, source.clone()).with_digest(digest_of(&declares));

        let keeper = LockKeeper::new(&path, LockMode::Enforce);
        let blocked = || keeper.admit([entry.clone()]).unwrap()[0].is_blocked();
        assert!(blocked());
        let mut lock = Lock::empty(folder.path());
        lock.accept(Kind::Tool, "pick", &source, Some(&declares));
        lock.write(&path).unwrap();
        assert!(!blocked());
        lock.accept(Kind::Tool, "pick", &source, Some(&json!({"description": "Another."})));
        lock.write(&path).unwrap();
        assert!(blocked());

        std::fs::write(&path, "version = 1\n[tools").unwrap();
        assert!(keeper.admit([entry.clone()]).is_err());
        let lenient = LockKeeper::new(&path, LockMode::Warn);
        assert!(lenient.admit([entry.clone()]).unwrap()[0].remark.is_none());
    }
}
