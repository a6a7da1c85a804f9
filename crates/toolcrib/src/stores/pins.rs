//! What imported definitions were when they were first seen, in files of one directory.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::time::SystemTime;

use toolcrib_core::fingerprint::Fingerprint;
use toolcrib_mcp::upstream::PinStore;

use super::private_dir::private_dir;

/// Keeps pins in a directory: for each upstream a JSON file of tools' names and fingerprints. They
/// survive a restart, and several processes may share the directory.
///
/// Removing an upstream's file forgets its pins: its tools are seen for the first time again.
#[derive(Debug, Clone)]
pub struct FilePins(PathBuf);

impl FilePins {
    /// Opens a directory, made if it is not there. Fails if others may look into it.
    pub fn open(dir: impl Into<PathBuf>) -> io::Result<Self> {
        let dir = dir.into();
        private_dir(&dir)?;
        Ok(Self(dir))
    }

    /// The file of an upstream. Names that manifests allow are safe as files' names; of others what
    /// is not is written as its number.
    fn path(&self, upstream: &str) -> PathBuf {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let name: String = upstream
            .chars()
            .map(|c| if plain(c) { c.to_string() } else { format!("%{:x}.", u32::from(c)) })
            .collect();
        self.0.join(name + ".json")
    }

    /// When a pin of an upstream was added or changed last; none if it has none.
    pub fn last_change(&self, upstream: &str) -> Option<SystemTime> {
        fs::metadata(self.path(upstream)).and_then(|found| found.modified()).ok()
    }

    fn read(&self, upstream: &str) -> io::Result<BTreeMap<String, Fingerprint>> {
        let path = self.path(upstream);
        let named = |problem: String| io::Error::other(format!("{}: {problem}", path.display()));
        match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeMap::new()),
            Err(error) => Err(named(error.to_string())),
            Ok(text) => serde_json::from_slice(&text).map_err(|error| named(error.to_string())),
        }
    }

    fn write(&self, upstream: &str, pins: &BTreeMap<String, Fingerprint>) -> io::Result<()> {
        let path = self.path(upstream);
        let unfinished = path.with_extension("part");
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&unfinished)?;
        file.write_all(&serde_json::to_vec_pretty(pins)?)?;
        file.sync_all()?;
        fs::rename(&unfinished, &path)?;
        File::open(&self.0)?.sync_all()
    }
}

impl PinStore for FilePins {
    fn pins(&self, upstream: &str) -> io::Result<BTreeMap<String, Fingerprint>> {
        self.read(upstream)
    }

    fn pin(&self, upstream: &str, pins: &BTreeMap<String, Fingerprint>) -> io::Result<()> {
        // Against other processes, from reading to writing.
        let mut options = OpenOptions::new();
        let lock = options.write(true).create(true).truncate(false).mode(0o600);
        let lock = lock.open(self.0.join("lock"))?;
        lock.lock()?;
        let mut all = self.read(upstream)?;
        all.extend(pins.clone());
        self.write(upstream, &all)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pins(of: &[(&str, u32)]) -> BTreeMap<String, Fingerprint> {
        let pin = |(name, number): &(&str, u32)| {
            ((*name).to_owned(), Fingerprint::of_json(&json!(number)))
        };
        of.iter().map(pin).collect()
    }

    #[test]
    fn pins_are_added_to_and_survive() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("pins");
        let store = FilePins::open(&place).unwrap();
        assert!(store.pins("git").unwrap().is_empty());
        store.pin("git", &pins(&[("a", 1), ("b", 2)])).unwrap();
        store.pin("git", &pins(&[("b", 3)])).unwrap();
        store.pin("../x", &pins(&[("c", 4)])).unwrap();
        let store = FilePins::open(&place).unwrap();
        assert_eq!(store.pins("git").unwrap(), pins(&[("a", 1), ("b", 3)]));
        assert_eq!(store.pins("../x").unwrap(), pins(&[("c", 4)]));
        assert!(!dir.path().join("x.json").exists());
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named_and_not_taken_for_empty() {
        let dir = tempfile::tempdir().unwrap();
        let store = FilePins::open(dir.path().join("pins")).unwrap();
        store.pin("git", &pins(&[("a", 1)])).unwrap();
        let file = dir.path().join("pins/git.json");
        fs::write(&file, "{\"a\": 7}").unwrap();
        let error = store.pins("git").unwrap_err().to_string();
        assert!(error.contains("git.json"), "{error}");
        assert!(store.pin("git", &pins(&[("b", 1)])).is_err());
    }

    #[test]
    fn writers_at_the_same_time_lose_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let store = FilePins::open(dir.path().join("pins")).unwrap();
        std::thread::scope(|scope| {
            for number in 0..8 {
                let store = &store;
                scope.spawn(move || {
                    let name = format!("tool_{number}");
                    store.pin("git", &pins(&[(&name, number)])).unwrap();
                });
            }
        });
        assert_eq!(store.pins("git").unwrap().len(), 8);
    }
}
