//! Reading a small file through a `Workspace` beside plain `std::fs`, cap-std, and a path that is
//! made canonical and compared before it is opened.
//!
//! `cargo bench -p toolcrib-benches --bench files`

#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

use std::fs;
use std::path::Path;
use std::time::Instant;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use toolcrib_benches::{Contender, interleaved};
use toolcrib_sandbox::Workspace;

/// Rounds; their median is shown.
const ROUNDS: usize = 15;
/// Reads in a round.
const READS: u64 = 20_000;
/// Four folders deep.
const PATH: &str = "one/two/three/four/file.txt";
const BYTES: usize = 1024;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let dir = tempfile::tempdir()?;
    let root = dir.path().canonicalize()?;
    let file = root.join(PATH);
    fs::create_dir_all(file.parent().ok_or("the file is in a folder")?)?;
    fs::write(&file, vec![b'x'; BYTES])?;
    // What is sensitive in a root costs a look at where the file is.
    let guarded = Workspace::builder(&root).sensitive([root.join("secrets")]).open()?;
    let rounds = interleaved(
        &mut [
            through("ours", Workspace::open(&root)?),
            through("ours/guarded", guarded),
            through("ours/steps", Workspace::builder(&root).in_steps().open()?),
            plain(&file),
            canonical(&root),
            capability(&root)?,
        ],
        ROUNDS,
        READS,
    );
    println!("Medians of {ROUNDS} interleaved rounds; only the ratios inside one run count.\n");
    println!("| contender | ns per read of 1 KiB | `ours` ÷ this |");
    println!("|---|---:|---:|");
    for name in rounds.names() {
        println!("| {name} | {:.0} | {:.2} |", rounds.median(name), rounds.ratio("ours", name));
    }
    Ok(())
}

/// Opened below the root, locked for readers, looked at, read, closed.
fn through(name: &'static str, workspace: Workspace) -> Contender {
    Contender::new(name, move |times| timed(times, || workspace.read(PATH, 1 << 20).ok()))
}

/// No rules at all.
fn plain(file: &Path) -> Contender {
    let file = file.to_owned();
    Contender::new("std::fs", move |times| timed(times, || fs::read(&file).ok()))
}

/// What is done where paths are compared as texts; somebody who renames can still lead it astray.
fn canonical(root: &Path) -> Contender {
    let root = root.to_owned();
    Contender::new("canonicalize, then std::fs", move |times| {
        timed(times, || {
            let path = root.join(PATH).canonicalize().ok()?;
            path.starts_with(&root).then(|| fs::read(path).ok())?
        })
    })
}

/// The same promise about the root; no locks, and whatever a name stands for is opened.
fn capability(root: &Path) -> Result<Contender, Failure> {
    let dir = Dir::open_ambient_dir(root, ambient_authority())?;
    Ok(Contender::new("cap-std", move |times| timed(times, || dir.read(PATH).ok())))
}

fn timed(times: u64, read: impl Fn() -> Option<Vec<u8>>) -> std::time::Duration {
    let start = Instant::now();
    for _ in 0..times {
        let content = read();
        assert_eq!(content.map(|content| content.len()), Some(BYTES));
    }
    start.elapsed()
}
