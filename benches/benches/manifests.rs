//! Manifests: how long a start takes, and how long a save takes to be live, beside what the system
//! itself needs for it.
//!
//! `cargo bench -p toolcrib-benches --bench manifests [-- start|save]`

#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

use std::fs;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use notify::event::{EventKind, ModifyKind, RenameMode};
use notify::{RecursiveMode, Watcher as _};
use toolcrib::Toolcrib;
use toolcrib::manifests::Manifests;
use toolcrib::runners::RunnerHost;

/// Saves per row; their median is shown.
const SAVES: usize = 200;
/// Starts per row.
const STARTS: usize = 5;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let wants = |name: &str| asked.is_empty() || asked.iter().any(|asked| asked == name);
    println!("One tool per file. Medians; only the ratios inside one run count.");
    if wants("start") {
        println!(
            "\n| start with | ours (ms) | reading the files (ms) | ours ÷ reading | reading and \
             parsing them (ms) | ours ÷ parsing |"
        );
        println!("|---|---|---|---|---|---|");
        for count in [1_000, 10_000] {
            start(count)?;
        }
    }
    if wants("save") {
        println!(
            "\n| save with | ours p50 (ms) | p90 (ms) | the event alone p50 (ms) | ours ÷ event |"
        );
        println!("|---|---|---|---|---|");
        for count in [1_000, 10_000] {
            save(count)?;
        }
    }
    Ok(())
}

/// A manifest of the size that people write.
fn manifest(number: usize, version: usize) -> String {
    format!(
        "toolcrib: 1
owner: platform-team
tools:
  - name: tool_{number}
    description: Version {version}. Read the last log lines of one pod. Read-only. Not for events.
    annotations: {{read_only: true, idempotent: true, open_world: false}}
    input:
      properties:
        pod: {{type: string, pattern: \"^[a-z0-9][a-z0-9.-]{{0,252}}$\"}}
        container: {{type: string, maxLength: 63}}
        lines: {{type: integer, minimum: 1, maximum: 2000, default: {}}}
      required: [pod]
    run:
      argv: [echo, \"--tail=${{args.lines}}\", {{if: container, then: [\"--container=${{args.container}}\"]}}, --, \"${{args.pod}}\"]
    limits: {{timeout: 15s, output: 64KiB}}
",
        // Every schema another one: equal ones would be shared.
        1 + number % 2000
    )
}

fn fill(dir: &Path, count: usize) -> std::io::Result<()> {
    for number in 0..count {
        fs::write(dir.join(format!("{number:05}.yaml")), manifest(number, 0))?;
    }
    Ok(())
}

fn crib(dir: &Path) -> Result<Toolcrib, Failure> {
    let found = Manifests::load(&[dir.to_owned()], RunnerHost::new(dir));
    if let Some((file, _)) = found.files().problems().next() {
        return Err(file.render(false).into());
    }
    Ok(Toolcrib::builder().manifests(&found).build()?)
}

/// What the YAML library needs by itself: the files as values, without places, schemas or checks, with
/// as many threads as ours takes.
fn parse(dir: &Path) -> Result<(), Failure> {
    let files: Vec<_> = fs::read_dir(dir)?.collect::<Result<_, _>>()?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let read = |part: &[fs::DirEntry]| -> Result<(), String> {
        for file in part {
            let text = fs::read_to_string(file.path()).map_err(|error| error.to_string())?;
            let value: serde_json::Value =
                serde_yaml::from_str(&text).map_err(|error| error.to_string())?;
            std::hint::black_box(value);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let parts = files.chunks(files.len().div_ceil(threads));
        let parts: Vec<_> = parts.map(|part| scope.spawn(move || read(part))).collect();
        for part in parts {
            part.join().map_err(|_| "a thread has panicked")??;
        }
        Ok(())
    })
}

fn start(count: usize) -> Result<(), Failure> {
    let dir = tempfile::tempdir()?;
    fill(dir.path(), count)?;
    let (mut ours, mut limit, mut parsed) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let begin = Instant::now();
        let mut bytes = 0;
        for entry in fs::read_dir(dir.path())? {
            bytes += fs::read(entry?.path())?.len();
        }
        limit.push(begin.elapsed());
        assert!(bytes > 0, "there is something to read");

        let begin = Instant::now();
        parse(dir.path())?;
        parsed.push(begin.elapsed());

        let begin = Instant::now();
        let crib = crib(dir.path())?;
        ours.push(begin.elapsed());
        assert_eq!(crib.turn().definitions().len(), count + 1, "all of them, and read_output");
    }
    let (ours, limit) = (quantile(&mut ours, 50), quantile(&mut limit, 50));
    let parsed = quantile(&mut parsed, 50);
    println!(
        "| {count} manifests | {:.0} | {:.1} | {:.1} | {:.0} | {:.2} |",
        millis(ours),
        millis(limit),
        ours.as_secs_f64() / limit.as_secs_f64(),
        millis(parsed),
        ours.as_secs_f64() / parsed.as_secs_f64()
    );
    Ok(())
}

fn save(count: usize) -> Result<(), Failure> {
    let dir = tempfile::tempdir()?;
    fill(dir.path(), count)?;
    let crib = crib(dir.path())?;
    let spare = tempfile::tempdir()?;

    // The limit: what the system takes to say that a file was renamed.
    let (heard, events) = channel();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let is_rename = |kind| matches!(kind, EventKind::Modify(ModifyKind::Name(RenameMode::To)));
        if event.is_ok_and(|event| is_rename(event.kind)) {
            let _ = heard.send(Instant::now());
        }
    })?;
    watcher.watch(spare.path(), RecursiveMode::NonRecursive)?;

    crib.manifests().ok_or("there are manifests")?.watch()?;
    // The first look, and the time in which a file counts as being written.
    std::thread::sleep(Duration::from_secs(2));
    let (mut ours, mut limit) = (Vec::new(), Vec::new());
    for version in 1..=SAVES {
        let number = version * 37 % count;
        let aside = spare.path().join("saving");
        fs::write(&aside, manifest(number, version))?;
        let text = format!("Version {version}.");
        let tool = format!("tool_{number}");
        let begin = Instant::now();
        fs::rename(&aside, dir.path().join(format!("{number:05}.yaml")))?;
        loop {
            let turn = crib.turn();
            if turn.describe(&tool).is_some_and(|tool| tool.description().starts_with(&text)) {
                break;
            }
            if begin.elapsed() > Duration::from_secs(5) {
                return Err(format!("{tool} was saved and is not live").into());
            }
            std::thread::yield_now();
        }
        ours.push(begin.elapsed());

        fs::write(&aside, manifest(number, version))?;
        let begin = Instant::now();
        fs::rename(&aside, spare.path().join("saved.yaml"))?;
        let at = events.recv_timeout(Duration::from_secs(5))?;
        limit.push(at.saturating_duration_since(begin));
        while events.try_recv().is_ok() {}
    }
    let (p50, p90) = (quantile(&mut ours, 50), quantile(&mut ours, 90));
    let limit = quantile(&mut limit, 50);
    println!(
        "| {count} manifests | {:.2} | {:.2} | {:.3} | {:.0} |",
        millis(p50),
        millis(p90),
        millis(limit),
        p50.as_secs_f64() / limit.as_secs_f64()
    );
    Ok(())
}

fn quantile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    times.get(times.len() * percent / 100).copied().unwrap_or_default()
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
