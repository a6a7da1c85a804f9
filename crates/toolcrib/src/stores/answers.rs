//! Answers to requests with an `Idempotency-Key`, in files of one directory.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use toolcrib_http::{AnswerRecord, AnswerStore, Claim};

use super::private_dir::private_dir;

/// How long a key is kept.
const KEPT: Duration = Duration::from_secs(24 * 3600);
/// Keys that are kept at once.
const KEYS: usize = 10_000;
/// Bytes of all their files.
const BYTES: u64 = 64 * 1024 * 1024;
/// The end of the name of a key's file.
const SUFFIX: &str = ".json";

/// Keeps answers in a directory, a JSON file for each key: for a day, 10,000 keys and 64 MiB at most, the
/// oldest of which make room. Answers survive a restart, and several servers may share the directory: a
/// request is worked on by one of them.
///
/// The files hold results in plain text.
#[derive(Debug)]
pub struct FileAnswers {
    dir: PathBuf,
    limits: Limits,
    /// The keys' files, the oldest first; none until somebody asks.
    files: Mutex<Option<Files>>,
}

#[derive(Debug, Clone, Copy)]
struct Limits {
    kept: Duration,
    keys: usize,
    bytes: u64,
}

#[derive(Debug, Default)]
struct Files {
    by_age: VecDeque<(SystemTime, String, u64)>,
    bytes: u64,
}

impl FileAnswers {
    /// Opens a directory, made if it is not there. Fails if others may look into it.
    pub fn open(dir: impl Into<PathBuf>) -> io::Result<Self> {
        Self::within(dir.into(), Limits { kept: KEPT, keys: KEYS, bytes: BYTES })
    }

    fn within(dir: PathBuf, limits: Limits) -> io::Result<Self> {
        private_dir(&dir)?;
        Ok(Self { dir, limits, files: Mutex::new(None) })
    }

    fn path(&self, key: &str) -> PathBuf {
        self.dir.join(format!("{key}{SUFFIX}"))
    }

    /// Removes what is too old or too much; `new` is a key that was answered, and the size of its file.
    fn make_room(&self, new: Option<(&str, u64)>) -> io::Result<()> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let files = match &mut *files {
            Some(files) => files,
            none => none.insert(Files::found(&self.dir)?),
        };
        let now = SystemTime::now();
        if let Some((key, bytes)) = new {
            files.bytes += bytes;
            files.by_age.push_back((now, key.to_owned(), bytes));
        }
        while let Some((made, key, bytes)) = files.by_age.front() {
            let is_old = now.duration_since(*made).is_ok_and(|age| age > self.limits.kept);
            let fits = files.by_age.len() <= self.limits.keys && files.bytes <= self.limits.bytes;
            if !is_old && fits {
                break;
            }
            removed(fs::remove_file(self.path(key)))?;
            files.bytes -= bytes;
            files.by_age.pop_front();
        }
        Ok(())
    }

    /// Writes a record to a file of its own. Once this returns it survives the loss of power.
    fn write(&self, path: &Path, record: &AnswerRecord) -> io::Result<u64> {
        let text = serde_json::to_vec(record)?;
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(&text)?;
        file.sync_all()?;
        File::open(&self.dir)?.sync_all()?;
        Ok(text.len() as u64)
    }
}

impl Files {
    /// Those that are there, whoever made them.
    fn found(dir: &Path) -> io::Result<Self> {
        let mut by_age = Vec::new();
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(key) = name.to_str().and_then(|name| name.strip_suffix(SUFFIX)) else {
                continue;
            };
            // One that another server removes meanwhile is none.
            let Ok(found) = entry.metadata() else { continue };
            by_age.push((found.modified()?, key.to_owned(), found.len()));
        }
        by_age.sort_unstable();
        let bytes = by_age.iter().map(|(_, _, bytes)| bytes).sum();
        Ok(Self { by_age: by_age.into(), bytes })
    }
}

impl AnswerStore for FileAnswers {
    fn claim(&self, key: &str, request: &str) -> io::Result<Claim> {
        self.make_room(None)?;
        let path = self.path(key);
        let record = AnswerRecord { request: request.to_owned(), answer: None };
        match self.write(&path, &record) {
            Ok(_) => Ok(Claim::New),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // One that is not whole is of a server that was ended while it wrote it.
                let known = serde_json::from_slice(&fs::read(&path)?).unwrap_or(record);
                Ok(Claim::Known(known))
            }
            Err(error) => Err(error),
        }
    }

    fn settle(&self, key: &str, record: &AnswerRecord) -> io::Result<()> {
        let (path, unfinished) = (self.path(key), self.path(key).with_extension("part"));
        removed(fs::remove_file(&unfinished))?;
        let bytes = self.write(&unfinished, record)?;
        fs::rename(&unfinished, &path)?;
        File::open(&self.dir)?.sync_all()?;
        self.make_room(Some((key, bytes)))
    }

    fn release(&self, key: &str) -> io::Result<()> {
        removed(fs::remove_file(self.path(key)))
    }
}

/// What is not there any more is removed.
fn removed(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use toolcrib_http::KeptAnswer;

    use super::*;

    fn answered(request: &str, body: &str) -> AnswerRecord {
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        let answer = KeptAnswer { status: 200, headers, body: body.to_owned() };
        AnswerRecord { request: request.to_owned(), answer: Some(answer) }
    }

    fn keys(dir: &Path) -> Vec<String> {
        let files = fs::read_dir(dir).unwrap();
        let mut names: Vec<_> =
            files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn an_answer_survives_and_what_was_cut_short_is_told_from_what_was_answered() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("answers");
        let store = FileAnswers::open(&dir).unwrap();
        assert_eq!(store.claim("a", "1").unwrap(), Claim::New);
        assert_eq!(store.claim("b", "2").unwrap(), Claim::New);
        store.settle("a", &answered("1", "{}")).unwrap();

        let again = FileAnswers::open(&dir).unwrap();
        assert_eq!(again.claim("a", "1").unwrap(), Claim::Known(answered("1", "{}")));
        let cut = AnswerRecord { request: "2".to_owned(), answer: None };
        assert_eq!(again.claim("b", "2").unwrap(), Claim::Known(cut.clone()));
        // A server that was ended while it wrote leaves half a file, or none.
        fs::write(dir.join("b.json"), "{\"requ").unwrap();
        assert_eq!(again.claim("b", "2").unwrap(), Claim::Known(cut));
        again.release("b").unwrap();
        again.release("b").unwrap();
        assert_eq!(again.claim("b", "3").unwrap(), Claim::New);
        assert_eq!(keys(&dir), ["a.json", "b.json"]);
    }

    #[test]
    fn what_is_too_old_or_too_much_makes_room() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("answers");
        let limits = Limits { kept: KEPT, keys: 2, bytes: 100_000 };
        let store = FileAnswers::within(dir.clone(), limits).unwrap();
        for key in ["a", "b", "c"] {
            store.claim(key, "1").unwrap();
            store.settle(key, &answered("1", "{}")).unwrap();
        }
        assert_eq!(keys(&dir), ["b.json", "c.json"]);
        // Those of before a restart count, too.
        let few = Limits { bytes: 1_500, ..limits };
        let store = FileAnswers::within(dir.clone(), few).unwrap();
        store.claim("d", "1").unwrap();
        store.settle("d", &answered("1", &"x".repeat(1_000))).unwrap();
        assert!(keys(&dir).contains(&"d.json".to_owned()));
        assert!(!keys(&dir).contains(&"b.json".to_owned()), "{:?}", keys(&dir));

        let yesterday = SystemTime::now() - KEPT - Duration::from_secs(60);
        let file = File::options().write(true).open(dir.join("d.json")).unwrap();
        file.set_modified(yesterday).unwrap();
        let store = FileAnswers::within(dir.clone(), limits).unwrap();
        assert_eq!(store.claim("d", "2").unwrap(), Claim::New);
    }

    #[test]
    fn of_many_who_claim_a_key_one_gets_it() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("answers");
        let stores = [FileAnswers::open(&dir).unwrap(), FileAnswers::open(&dir).unwrap()];
        let new = std::thread::scope(|scope| {
            let claims: Vec<_> = (0..8)
                .map(|number| {
                    let store = &stores[number % 2];
                    scope.spawn(move || store.claim("a", "1").unwrap() == Claim::New)
                })
                .collect();
            claims.into_iter().map(|claim| claim.join().unwrap()).collect::<Vec<_>>()
        });
        assert_eq!(new.iter().filter(|is_new| **is_new).count(), 1);
    }
}
