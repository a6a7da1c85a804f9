//! The same promises where a helper is kept, and what becomes of the kept one.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../process/confine.rs"]
mod confine;
#[path = "../process/sealed.rs"]
mod sealed;

use std::fs;
use std::future::{Future, pending};
use std::sync::OnceLock;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpid, kill_process, waitid};
use tokio::io::AsyncReadExt as _;
use toolcrib_sandbox::jail::{KeptHelper, keep_helper};
use toolcrib_sandbox::{
    Command, Confinement, Finished, Profile, SealedFile, SpawnError, Status, keep, run,
};

/// Runs to the end, bounded.
async fn finish(command: Command) -> Finished {
    try_finish(command).await.unwrap()
}

async fn try_finish(command: Command) -> Result<Finished, SpawnError> {
    bounded(run(command, pending())).await
}

async fn bounded<F: Future>(work: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(60), work).await.expect("the test's own time limit")
}

/// A command that runs this shell text, in a process that keeps a helper.
fn sh(text: &str) -> Command {
    static KEPT: OnceLock<KeptHelper> = OnceLock::new();
    KEPT.get_or_init(keep_helper);
    Command::new("/bin/sh").args(["-c", text])
}

fn workspace() -> Confinement {
    Confinement::new(Profile::Workspace)
}

/// The kept helpers of a process.
fn zygotes_of(parent: Pid) -> Vec<Pid> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let read = |name| fs::read_to_string(entry.path().join(name)).unwrap_or_default();
        let Some(number) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let parent = format!("PPid:\t{}\n", parent.as_raw_nonzero());
        if read("cmdline").ends_with("\0zygote\0") && read("status").contains(&parent) {
            found.extend(Pid::from_raw(number));
        }
    }
    found
}

/// In a process of its own: other tests of this one have programs started meanwhile.
async fn apart(name: &str) -> bool {
    if std::env::var_os("TOOLCRIB_TEST_APART").is_some() {
        return true;
    }
    let test = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name])
        .env("TOOLCRIB_TEST_APART", "1");
    let finished = finish(test).await;
    assert_eq!(finished.status, Status::Exited(0), "{}", finished.stdout.text());
    false
}

#[tokio::test]
async fn one_helper_is_kept_as_long_as_it_is_wanted_and_replaced_if_it_dies() {
    if !apart("one_helper_is_kept_as_long_as_it_is_wanted_and_replaced_if_it_dies").await {
        return;
    }
    let command = |text| Command::new("/bin/sh").args(["-c", text]).confine(workspace());
    let kept = keep_helper();
    assert_eq!(zygotes_of(getpid()), [], "before the first program there is none");
    for _ in 0..3 {
        assert_eq!(finish(command("echo a")).await.stdout.text(), "a\n");
    }
    let zygotes = zygotes_of(getpid());
    assert_eq!(zygotes.len(), 1, "{zygotes:?}");
    kill_process(zygotes[0], Signal::KILL).unwrap();
    // It is dead, and not yet reaped.
    waitid(WaitId::Pid(zygotes[0]), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
    assert_eq!(finish(command("echo b")).await.stdout.text(), "b\n");
    let others = zygotes_of(getpid());
    assert!(others.len() == 1 && others != zygotes, "{others:?} after {zygotes:?}");
    drop(kept);
    assert_eq!(zygotes_of(getpid()), [], "nobody keeps it");
    assert_eq!(finish(command("echo c")).await.stdout.text(), "c\n");
    assert_eq!(zygotes_of(getpid()), []);
}

#[tokio::test]
async fn a_sealed_script_is_started_by_the_kept_helper_and_sees_nothing_else_of_it() {
    let name = "a_sealed_script_is_started_by_the_kept_helper_and_sees_nothing_else_of_it";
    if !apart(name).await {
        return;
    }
    let kept = keep_helper();
    assert_eq!(zygotes_of(getpid()), [], "before the first program there is none");
    // What is open in it, what it was given, and then until its input ends.
    let script = b"#!/bin/sh\necho /proc/self/fd/*; cat \"$1\"; cat >&2\n";
    let (script, file) = (SealedFile::new(script).unwrap(), SealedFile::new(b"file\n").unwrap());
    let command = Command::new("script").sealed(script).sealed_arg(file).confine(workspace());
    let mut running = keep(&command).unwrap();
    let mut by_kept = Vec::new();
    bounded(async {
        while !by_kept.ends_with(b"file\n") {
            by_kept.push(running.output.read_u8().await.unwrap());
        }
    })
    .await;
    assert_eq!(zygotes_of(getpid()).len(), 2, "the kept one, and its copy beside the script");
    drop(running.input);
    bounded(running.process.stop(Duration::from_secs(60))).await;
    drop(kept);
    let by_itself = finish(command.stdin(" ")).await;
    assert_eq!(String::from_utf8(by_kept).unwrap(), by_itself.stdout.text());
}

#[tokio::test]
async fn a_kept_helper_ends_with_the_server() {
    if std::env::var_os("TOOLCRIB_TEST_APART").is_some() {
        finish(sh("true").confine(workspace())).await;
        println!("zygote {}", zygotes_of(getpid())[0].as_raw_nonzero());
        // As a crash would.
        kill_process(getpid(), Signal::KILL).unwrap();
    }
    let server = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", "a_kept_helper_ends_with_the_server"])
        .env("TOOLCRIB_TEST_APART", "1");
    let finished = finish(server).await;
    assert_eq!(finished.status, Status::Signaled(9));
    let text = finished.stdout.text();
    let (_, number) = text.split_once("zygote ").unwrap();
    let number = number.lines().next().unwrap();
    bounded(async {
        while fs::read_to_string(format!("/proc/{number}/cmdline"))
            .is_ok_and(|words| words.ends_with("\0zygote\0"))
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn what_is_too_large_for_an_order_is_started_all_the_same() {
    // Larger than an order, each smaller than the kernel's limit for one.
    let mut command = sh("echo ${#A} ${#B} $#").arg("sh");
    for name in ["A", "B"] {
        command = command.env(name, "x".repeat(100_000));
    }
    let finished = finish(command.confine(workspace())).await;
    assert_eq!(finished.stdout.text(), "100000 100000 0\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn programs_that_start_at_once_get_their_own_streams_and_directories() {
    let calls = (0..24).map(|number| {
        tokio::spawn(async move {
            let folder = tempfile::tempdir().unwrap();
            let folder = folder.path().canonicalize().unwrap();
            let command = sh("cat; pwd; echo $A; exit $A")
                .cwd(&folder)
                .env("A", number.to_string())
                .stdin(format!("{number}\n"))
                .confine(workspace().workspace(&folder));
            let finished = finish(command).await;
            let text = format!("{number}\n{}\n{number}\n", folder.display());
            assert_eq!(finished.stdout.text(), text);
            assert_eq!(finished.status, Status::Exited(number));
        })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap();
    }
}

#[tokio::test]
async fn a_kept_helper_is_closed_to_others() {
    finish(sh("true").confine(workspace())).await;
    let zygotes = zygotes_of(getpid());
    assert!(!zygotes.is_empty());
    for zygote in zygotes {
        let owner = fs::metadata(format!("/proc/{}/environ", zygote.as_raw_nonzero())).unwrap();
        assert_eq!(std::os::unix::fs::MetadataExt::uid(&owner), 0, "as of what cannot be dumped");
    }
}
