//! Several processes over one database, some of which are killed: nothing is lost, doubled or taken twice.
//!
//! The workers are this test program itself, told by a variable in its environment what to do. Each says
//! what was acknowledged to it, a line each; the test holds these lines against what the database has.

use std::collections::{BTreeMap, HashSet};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use toolcrib_core::clock::Timestamp;
use toolcrib_core::run::RunStore as _;
use toolcrib_core::suspension::{Settled, StoreError, SuspensionId, SuspensionStore as _};
use toolcrib_store::{Database, Runs, Suspensions};
use toolcrib_tool::ErrorKind;

use crate::fixture::{resolved, run, suspended};

/// Names the folder of the database, for a worker.
const FOLDER: &str = "TOOLCRIB_STORE_WORKER";
/// Workers at one time.
const WORKERS: usize = 4;
/// Workers that are killed.
const KILLS: usize = 12;
/// Runs that all workers go on with.
const RUNS: u64 = 3;

/// What a worker was told is kept.
#[derive(Default)]
struct Told {
    put: HashSet<String>,
    taken: Vec<String>,
    saved: Vec<(String, u64)>,
}

impl Told {
    fn add(&mut self, line: &str) {
        let mut words = line.split(' ');
        match (words.next(), words.next(), words.next()) {
            (Some("put"), Some(id), None) => drop(self.put.insert(id.to_owned())),
            (Some("took"), Some(id), None) => self.taken.push(id.to_owned()),
            (Some("saved"), Some(id), Some(version)) => {
                self.saved.push((id.to_owned(), version.parse().expect("a number")));
            }
            // The test harness of the worker says something, too.
            _ => {}
        }
    }
}

/// Not a test unless the variable is set: what a worker does until it is killed.
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
    while Instant::now() < until {
        for _ in 0..2 {
            let call = suspended(&own, 1, u64::MAX);
            suspensions.put(&call).await.expect("there is room");
            say(format!("put {}\n", call.id()));
        }
        // All go for the same ones.
        let oldest = suspensions.all().await.expect("it works").into_iter().take(1);
        for call in oldest {
            let by = resolved(&call, &own, 2);
            if let Some(taken) = suspensions.take(call.id(), &by).await.expect("it works") {
                say(format!("took {}\n", taken.id()));
                let running = Settled::running(taken, Timestamp::from_unix_millis(2));
                suspensions.settle(&running).await.expect("it is the taker");
            }
        }
        for kept in runs.page("all", None, 1_000).await.expect("it works") {
            match runs.save(&kept).await {
                Ok(version) => say(format!("saved {} {version}\n", kept.id())),
                Err(StoreError::Conflict) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
}

fn start(folder: &Path) -> Child {
    Command::new(std::env::current_exe().expect("it runs"))
        .args(["processes::worker", "--exact", "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .expect("there is room for a process")
}

/// Kills a worker as a machine's memory killer would, and hears what it had said.
fn kill(mut worker: Child, told: &mut Told) {
    let ended = worker.try_wait().expect("it is ours");
    assert!(ended.is_none(), "a worker gave up: {ended:?}");
    worker.kill().expect("it is ours");
    worker.wait().expect("it is ours");
    let said = worker.stdout.take().expect("it was asked for");
    for line in BufReader::new(said).lines() {
        told.add(&line.expect("it is text"));
    }
}

#[tokio::test]
async fn four_processes_that_are_killed_lose_double_and_take_nothing_twice() {
    let home = tempfile::tempdir().expect("there is room");
    let database = Database::open(home.path()).expect("the folder is fit for it");
    let (suspensions, runs) = (Suspensions::new(&database), Runs::new(&database));
    for created in 0..RUNS {
        runs.save(&run("all", created)).await.expect("it is new");
    }
    let mut told = Told::default();
    let mut workers: Vec<Child> = (0..WORKERS).map(|_| start(home.path())).collect();
    for killed in 0..KILLS {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let worker = workers.remove(killed % WORKERS);
        kill(worker, &mut told);
        workers.push(start(home.path()));
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    for worker in workers {
        kill(worker, &mut told);
    }

    // A worker writes nothing before it has registered, so that all did something is worth knowing.
    assert!(
        told.put.len() > 100 && told.taken.len() > 20,
        "{}, {}",
        told.put.len(),
        told.taken.len()
    );
    let taken: HashSet<&String> = told.taken.iter().collect();
    assert_eq!(taken.len(), told.taken.len(), "no call was taken twice");

    let waiting: HashSet<String> =
        suspensions.all().await.expect("it works").iter().map(|one| one.id().to_string()).collect();
    let begun = Instant::now();
    let mut unknown = 0;
    for id in told.put.iter().chain(&told.taken) {
        let is_waiting = waiting.contains(id);
        assert!(!(is_waiting && taken.contains(id)), "{id} was taken and still waits");
        if is_waiting {
            continue;
        }
        // Whoever had it is dead: that nobody knows what became of it is said at once.
        let id: SuspensionId = id.parse().expect("it is one");
        let settled = suspensions.settled(&id).await.expect("it works");
        let result = settled.as_ref().and_then(Settled::result).expect("it is not lost");
        let kind = result.error().map(toolcrib_tool::ToolError::kind);
        assert_eq!(kind, Some(ErrorKind::OutcomeUnknown));
        unknown += 1;
    }
    assert!(unknown >= told.taken.len());
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());

    let mut versions = BTreeMap::<&str, Vec<u64>>::new();
    for (id, version) in &told.saved {
        versions.entry(id).or_default().push(*version);
    }
    for kept in runs.page("all", None, 1_000).await.expect("it works") {
        let mut seen = versions.remove(kept.id().as_str()).unwrap_or_default();
        seen.sort_unstable();
        let count = seen.len();
        seen.dedup();
        assert_eq!(seen.len(), count, "no version was given to two");
        assert!(seen.last().is_none_or(|last| *last <= kept.version()), "what was said is kept");
    }
    let file = rusqlite::Connection::open(home.path().join("toolcrib.db")).expect("it is ours");
    let sound: String =
        file.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("it can be read");
    assert_eq!(sound, "ok");
    // Those that were killed are forgotten when the next one opens it, but for the one that is here.
    drop(Database::open(home.path()).expect("several may share it"));
    let left: i64 =
        file.query_row("SELECT count(*) FROM servers", [], |row| row.get(0)).expect("it is there");
    assert!(left <= 2, "{left} servers");
}
