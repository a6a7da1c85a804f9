//! Starting a program, and draining one that writes without end.

use std::fs;
use std::hint::black_box;
use std::io::Read;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use toolcrib_sandbox::{Command, Confinement, Profile, Status, run};

use crate::Contender;

/// Bytes of output in the draining measurement: 100 MB.
pub const OUTPUT_BYTES: u64 = 100_000_000;

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// A process started with std, with the environment ours gets too.
#[expect(clippy::disallowed_methods, reason = "std is what ours is held against")]
fn std_command(program: &str) -> std::process::Command {
    // By its path: to look a bare name up on a changed PATH, std would fork, which costs the more
    // the larger this process is.
    let mut command = std::process::Command::new(located(program));
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.stdin(Stdio::null());
    command
}

/// Has the helper that was built with this program used, if there is one.
fn use_helper() {
    let own = std::env::current_exe().expect("a program has a file");
    let built = own.ancestors().nth(2).map(|folder| folder.join("toolcrib-jail"));
    if let Some(helper) = built.filter(|file| file.is_file()) {
        toolcrib_sandbox::jail::set_helper(helper);
    }
}

fn located(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
        .expect("a program every system has")
}

/// One run of `true`, from its start until it has ended and its output is read:
///
/// - `ours`: [`toolcrib_sandbox::run`] with all its hygiene;
/// - `pure`, `workspace`, `workspace+net`: the same under a profile;
/// - `std`: [`std::process::Command::output`].
///
/// The helper is `toolcrib-jail` of the same build (`cargo build --release --bin toolcrib-jail`);
/// without it this very program, which starts more slowly.
pub fn spawn_contenders() -> Vec<Contender> {
    use_helper();
    let ours = Profile::ALL.into_iter().rev().map(|profile| {
        let name = if profile == Profile::Trusted { "ours" } else { profile.as_str() };
        let runtime = runtime();
        Contender::new(name, move |times| {
            runtime.block_on(async {
                let start = Instant::now();
                for _ in 0..times {
                    let command = Command::new("true").confine(Confinement::new(profile));
                    let finished = run(command, std::future::pending()).await;
                    assert_eq!(finished.expect("it starts").status, Status::Exited(0));
                }
                start.elapsed()
            })
        })
    });
    let std = Contender::new("std", |times| {
        let start = Instant::now();
        for _ in 0..times {
            let output = std_command("true").output().expect("it starts");
            assert!(output.status.success());
        }
        start.elapsed()
    });
    ours.chain([std]).collect()
}

/// [`OUTPUT_BYTES`] of output read to their end:
///
/// - `ours`: [`toolcrib_sandbox::run`], which keeps a head and a tail;
/// - `limit`: a pipe read into one buffer of 64 KiB, nothing kept.
pub fn drain_contenders() -> Vec<Contender> {
    let runtime = runtime();
    let ours = Contender::new("ours", move |times| {
        let start = Instant::now();
        for _ in 0..times {
            let command = Command::new("head").args(["-c", &OUTPUT_BYTES.to_string(), "/dev/zero"]);
            let finished = runtime.block_on(run(command, std::future::pending()));
            assert_eq!(finished.expect("it starts").stdout.total, OUTPUT_BYTES);
        }
        start.elapsed()
    });
    let limit = Contender::new("limit", |times| {
        let start = Instant::now();
        for _ in 0..times {
            assert_eq!(read_all(), OUTPUT_BYTES);
        }
        start.elapsed()
    });
    vec![ours, limit]
}

fn read_all() -> u64 {
    let mut command = std_command("head");
    command.args(["-c", &OUTPUT_BYTES.to_string(), "/dev/zero"]).stdout(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut stdout = child.stdout.take().expect("piped");
    let mut buffer = vec![0; 64 * 1024];
    let mut total = 0;
    loop {
        match stdout.read(&mut buffer).expect("readable") {
            0 => break,
            count => total += count as u64,
        }
        black_box(&buffer);
    }
    assert!(child.wait().expect("it ends").success());
    total
}

/// What a run of `work` adds to the most memory this process has held at once, in KiB, and how
/// long it took. `None` where the kernel does not say.
pub fn peak_growth(work: impl FnOnce() -> Duration) -> (Option<u64>, Duration) {
    // Sets the mark back to what is held now; without it, earlier work would hide this one's.
    let reset = fs::write("/proc/self/clear_refs", "5").is_ok();
    let before = peak_kib();
    let elapsed = work();
    let growth = peak_kib().zip(before).map(|(after, before)| after.saturating_sub(before));
    (growth.filter(|_| reset), elapsed)
}

fn peak_kib() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}
