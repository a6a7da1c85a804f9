//! Limits of a confined program: threads, memory and open files. Each attempt is limited itself.

use std::path::PathBuf;

use super::{LIMIT, is_here};
use crate::{
    Command, Confinement, Finished, KillRung, Profile, Status, find_program, run_blocking,
};

/// The interpreter itself, not a version manager's shim; `None` if there is none.
fn python() -> Option<PathBuf> {
    let ask = Command::new("python3").args(["-c", "import sys; print(sys.executable, end='')"]);
    let path = run_blocking(ask, LIMIT).ok()?.stdout.text();
    (!path.is_empty()).then(|| path.into())
}

fn run_python(text: &str, confinement: Confinement) -> Option<Finished> {
    let Some(python) = python() else {
        eprintln!("skipped: there is no python3");
        return None;
    };
    let command = Command::new(python).args(["-I", "-S", "-B", "-c", text]).confine(confinement);
    Some(run_blocking(command, LIMIT).unwrap())
}

/// Starts at most 400 threads with small stacks that all wait; prints how many there were.
const THREADS: &str = "
import threading
threading.stack_size(65536)
done, count = threading.Event(), 0
for _ in range(400):
    try:
        threading.Thread(target=done.wait, daemon=True).start()
    except RuntimeError:
        break
    count += 1
print(count, flush=True)
done.set()
";

#[test]
fn threads_end_at_their_limit_under_pure() {
    if !is_here(KillRung::PidNamespace) {
        return;
    }
    let Some(finished) = run_python(THREADS, Confinement::new(Profile::Pure)) else { return };
    let count: u32 = finished.stdout.text().trim().parse().unwrap();
    // One of the 64 is the first thread, and one may be the supervising process.
    assert!((60..64).contains(&count), "{count} {}", finished.stderr.text());
}

#[test]
fn a_process_that_takes_too_much_memory_ends() {
    // Uses a gigabyte more than allowed, page by page, without the C library's allocator.
    const HOG: &str = "
import mmap
kept = []
try:
    for _ in range(24):
        block = mmap.mmap(-1, 128 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        block[::4096] = b'x' * len(block[::4096])
        kept.append(block)
except (OSError, MemoryError):
    pass
print(len(kept) * 128)
";
    for (profile, most) in
        [(Profile::Pure, 1024), (Profile::Workspace, 2048), (Profile::WorkspaceNet, 2048)]
    {
        let Some(finished) = run_python(HOG, Confinement::new(profile)) else { return };
        let taken: u32 = finished.stdout.text().trim().parse().unwrap();
        assert!((most / 2..most).contains(&taken), "{profile}: {taken} MiB");
    }
    let mut confinement = Confinement::new(Profile::Workspace);
    confinement.limits.memory = Some(256 << 20);
    let Some(finished) = run_python(HOG, confinement) else { return };
    assert_eq!(finished.stdout.text(), "128\n");
}

#[test]
fn runtimes_that_reserve_much_and_use_little_start_under_the_limit() {
    for (program, arguments, expected) in [
        ("node", &["-e", "console.log(6 * 7, new Array(1e6).fill(1).length)"][..], "42 1000000\n"),
        ("java", &["-version"], ""),
        ("go", &["version"], "go"),
    ] {
        if find_program(program).is_err() {
            eprintln!("skipped: there is no {program}");
            continue;
        }
        for profile in [Profile::Workspace, Profile::WorkspaceNet] {
            let command = Command::new(program).args(arguments.iter().copied());
            let finished = run_blocking(command.confine(Confinement::new(profile)), LIMIT).unwrap();
            assert_eq!(finished.status, Status::Exited(0), "{program}: {finished:?}");
            assert!(finished.stdout.text().starts_with(expected), "{program}: {finished:?}");
        }
    }
}

#[test]
fn every_confined_program_has_bounds_of_memory_processes_and_files() {
    for profile in [Profile::Pure, Profile::Workspace, Profile::WorkspaceNet] {
        let limits = crate::Limits::of(profile);
        assert!(limits.memory.is_some() && limits.processes.is_some(), "{limits:?}");
        let text = "ulimit -n; ulimit -H -n";
        let command = Command::new("sh").args(["-c", text]).confine(Confinement::new(profile));
        let finished = run_blocking(command, LIMIT).unwrap();
        let most = limits.open_files.unwrap().to_string();
        assert_eq!(finished.stdout.text(), format!("{most}\n{most}\n"), "{profile}");
    }
}
