//! Several processes use one database and some of them are killed: nothing is lost, duplicated or taken twice.
//!
//! The workers are this test program itself, started with a variable that tells them their task. Each prints a line for
//! every acknowledged change; the test compares the lines with the database.

use std::collections::{BTreeMap, HashSet};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use toolcrib_core::clock::Timestamp;
use toolcrib_core::run::{Journal as _, JournalEntry, RunStore as _, Seq};
use toolcrib_core::suspension::{
    ResolutionKind, Resolved, Settled, StoreError, SuspensionId, SuspensionStore as _,
};
use toolcrib_store::{Database, Runs, Suspensions};
use toolcrib_tool::ErrorKind;

use crate::fixture::suspended;
use crate::journal::{started, waits};

/// The variable that names the database folder for a worker.
const FOLDER: &str = "TOOLCRIB_STORE_WORKER";
/// Workers at one time.
const WORKERS: usize = 4;
/// Workers that are killed.
const KILLS: usize = 12;
/// Runs that all workers append to: the first only under a claim, the others without one.
const RUNS: u64 = 3;
/// Entries of one append.
const STEPS: Seq = 3;

/// The changes that were acknowledged to a worker.
#[derive(Default)]
struct Acknowledged {
    put: HashSet<String>,
    taken: Vec<String>,
    /// The id of a run, the entry, and the suspended call that it names.
    appended: Vec<(String, Seq, String)>,
}

impl Acknowledged {
    fn add(&mut self, line: &str) {
        let mut words = line.split(' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("put"), Some(id), None, None) => drop(self.put.insert(id.to_owned())),
            (Some("took"), Some(id), None, None) => self.taken.push(id.to_owned()),
            (Some("appended"), Some(run), Some(seq), Some(id)) => {
                let seq = seq.parse().expect("a number");
                self.appended.push((run.to_owned(), seq, id.to_owned()));
            }
            // The worker's test harness prints lines, too.
            _ => {}
        }
    }
}

/// Runs only in a worker process: works until it is killed.
#[tokio::test]
async fn worker() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let database = Database::open(Path::new(&folder)).expect("several may share it");
    let (suspensions, runs) = (Suspensions::new(&database), Runs::new(&database));
    let own = std::process::id().to_string();
    let say = |line: String| {
        let mut out = std::io::stdout().lock();
        out.write_all(line.as_bytes()).and_then(|()| out.flush()).expect("the test listens");
    };
    let until = Instant::now() + Duration::from_secs(60);
    let mut taken = 0;
    while Instant::now() < until {
        for _ in 0..2 {
            let call = suspended(&own, 1, u64::MAX);
            suspensions.put(&call).await.expect("there is room");
            say(format!("put {}\n", call.id()));
        }
        // All workers try to take the same calls.
        let oldest = suspensions.all().await.expect("it works").into_iter().take(1);
        for call in oldest {
            let kind =
                if taken % 2 == 0 { ResolutionKind::Approved } else { ResolutionKind::Cancelled };
            taken += 1;
            let by = Resolved::new(&call, kind, own.as_str(), Timestamp::from_unix_millis(2));
            if let Some(call) = suspensions.take(call.id(), &by).await.expect("it works") {
                say(format!("took {}\n", call.id()));
                let running = Settled::running(call, Timestamp::from_unix_millis(2));
                suspensions.settle(&running).await.expect("it is the taker");
            }
        }
        for (number, run) in runs.list("all", None, 10).await.expect("it works").iter().enumerate()
        {
            let run = run.id();
            let mut claim = None;
            if number == 0 {
                match runs.claim(run).await {
                    Ok(claimed) => claim = claimed,
                    Err(StoreError::Claimed { .. }) => continue,
                    Err(error) => panic!("{error}"),
                }
            }
            let page = runs.read(run, Seq::MAX, 1).await.expect("it works").expect("it is there");
            let steps: Vec<_> = (0..STEPS).map(|_| waits("all")).collect();
            match runs.append(run, page.last, &steps, claim.as_ref()).await {
                Ok(_) => {
                    for (seq, step) in (page.last + 1..).zip(&steps) {
                        say(format!("appended {run} {seq} {}\n", waits_as(step)));
                    }
                }
                Err(StoreError::Conflict) if claim.is_none() => {}
                Err(error) => panic!("{error}"),
            }
            if let Some(claim) = claim {
                runs.release(&claim).await.expect("it works");
            }
        }
    }
}

/// The suspended call that an entry names.
fn waits_as(entry: &JournalEntry) -> String {
    let (_, waits) = entry.waits().expect("it is about a call");
    waits.expect("it waits").0.to_string()
}

fn start(folder: &Path) -> Child {
    Command::new(std::env::current_exe().expect("it runs"))
        .args(["processes::worker", "--exact", "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .expect("there is room for a process")
}

/// Kills a worker as the OOM killer would, and collects its output.
fn kill(mut worker: Child, acknowledged: &mut Acknowledged) {
    let ended = worker.try_wait().expect("it is ours");
    assert!(ended.is_none(), "a worker gave up: {ended:?}");
    worker.kill().expect("it is ours");
    worker.wait().expect("it is ours");
    let said = worker.stdout.take().expect("it was asked for");
    for line in BufReader::new(said).lines() {
        acknowledged.add(&line.expect("it is text"));
    }
}

#[tokio::test]
async fn four_killed_processes_lose_duplicate_and_take_nothing_twice() {
    let home = tempfile::tempdir().expect("there is room");
    let database = Database::open(home.path()).expect("the folder is fit for it");
    let (suspensions, runs) = (Suspensions::new(&database), Runs::new(&database));
    for created in 0..RUNS {
        let id = SuspensionId::random().expect("there is randomness");
        runs.append(&id, 0, &[started("all", created)], None).await.expect("it is new");
    }
    let mut acknowledged = Acknowledged::default();
    let mut workers: Vec<Child> = (0..WORKERS).map(|_| start(home.path())).collect();
    for killed in 0..KILLS {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let worker = workers.remove(killed % WORKERS);
        kill(worker, &mut acknowledged);
        workers.push(start(home.path()));
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    for worker in workers {
        kill(worker, &mut acknowledged);
    }

    // A worker writes nothing before it has registered, so this also shows that all of them worked.
    assert!(
        acknowledged.put.len() > 100 && acknowledged.taken.len() > 20,
        "{}, {}",
        acknowledged.put.len(),
        acknowledged.taken.len()
    );
    let taken: HashSet<&String> = acknowledged.taken.iter().collect();
    assert_eq!(taken.len(), acknowledged.taken.len(), "no call was taken twice");

    let waiting: HashSet<String> =
        suspensions.all().await.expect("it works").iter().map(|one| one.id().to_string()).collect();
    let begun = Instant::now();
    let (mut unknown, mut cancelled) = (0, 0);
    for id in acknowledged.put.iter().chain(&acknowledged.taken) {
        let is_waiting = waiting.contains(id);
        assert!(!(is_waiting && taken.contains(id)), "{id} was taken and still waits");
        if is_waiting {
            continue;
        }
        // The server that took it is dead, so an outcome is stored at once: that it was cancelled, or that it is
        // unknown whether it ran.
        let id: SuspensionId = id.parse().expect("it is one");
        let resolved = suspensions.resolved(&id).await.expect("it works").expect("it was taken");
        let (expected, count) = match resolved.kind() {
            ResolutionKind::Cancelled => (ErrorKind::Cancelled, &mut cancelled),
            _ => (ErrorKind::OutcomeUnknown, &mut unknown),
        };
        let settled = suspensions.settled(&id).await.expect("it works");
        let result = settled.as_ref().and_then(Settled::result).expect("it is not lost");
        let kind = result.error().map(toolcrib_tool::ToolError::kind);
        assert_eq!(kind, Some(expected));
        *count += 1;
    }
    assert!(unknown + cancelled >= acknowledged.taken.len());
    assert!(unknown > 0 && cancelled > 0, "{unknown} and {cancelled}");
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());

    let mut appended = BTreeMap::<&str, BTreeMap<Seq, &str>>::new();
    for (run, seq, id) in &acknowledged.appended {
        let first = appended.entry(run).or_default().insert(*seq, id);
        assert_eq!(first, None, "no number was given to two");
    }
    assert_eq!(appended.len() as u64, RUNS, "all went on, also the one that has to be claimed");
    for run in runs.list("all", None, 10).await.expect("it works") {
        let said = appended.remove(run.id().as_str()).unwrap_or_default();
        let (mut kept, mut last) = (BTreeMap::new(), 1);
        while let Some((seq, _)) = {
            let page = runs.read(run.id(), last, 1_000).await.expect("it works");
            let page = page.expect("it is there").entries;
            kept.extend(page.iter().map(|(seq, entry)| (*seq, waits_as(entry))));
            page.last().cloned()
        } {
            last = seq;
        }
        assert_eq!((last - 1) % STEPS, 0, "nothing was appended in part");
        for (seq, id) in said {
            assert_eq!(kept.get(&seq).map(String::as_str), Some(id), "what was said is kept");
        }
        let record = runs.load(run.id()).await.expect("it can be read").expect("it is there");
        assert_eq!(record.version(), last);
        // The server that claimed it is dead.
        runs.claim(run.id()).await.expect("it is free at once").expect("it is there");
    }
    let file = rusqlite::Connection::open(home.path().join("toolcrib.db")).expect("it is ours");
    let sound: String =
        file.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("it can be read");
    assert_eq!(sound, "ok");
    // The next server to open the database removes the killed ones.
    drop(Database::open(home.path()).expect("several may share it"));
    let left: i64 =
        file.query_row("SELECT count(*) FROM servers", [], |row| row.get(0)).expect("it is there");
    assert!(left <= 2, "{left} servers");
}
