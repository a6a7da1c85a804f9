//! `toolcrib lock`: records which definitions of tools are accepted.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use serde_json::json;
use toolcrib::control_plane::ExposedFiles;
use toolcrib::lock::lock_of;
use toolcrib::manifest::Severity;
use toolcrib::manifest::lock::{Change, Kind, Lock, LockChange, changes};

use crate::options::{JsonOutput, Options};
use crate::screen::{self, ERROR, FAINT, STRONG, WARNING, count};
use crate::startup::Started;
use crate::{Exit, runtime, startup, upstream_wait};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolcrib lock --diff                 show what has changed since the lock was written
  toolcrib lock                        record the current tools
  toolcrib lock --take-over NAME       also record the new owner of NAME
  toolcrib lock --check                fail if the lock is out of date, as in CI
  toolcrib lock --check --connect      the same, and query other MCP servers

The lock records what files declare (tools, other MCP servers, prompts, resources) and what these servers
offer. To write or compare the lock, toolcrib starts and queries them; with --check only if --connect is
given. If a server is unavailable, the lock keeps its existing entries.

A name in the lock gets another owner only with --take-over; without it nothing is written.

Exit code 0: the lock is up to date, or was written. 1: --check or --diff found changes, or a name would
have changed its owner.

The lock file is `registry.lock_file` of the config, by default toolcrib.lock next to the config. Commit it.
`registry.lock` (off, warn or enforce) decides what happens to tools that differ from it.")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct LockOptions {
    /// Write nothing; fail if the lock is out of date
    #[arg(long)]
    check: bool,
    /// Write nothing; show the changes field by field
    #[arg(long, conflicts_with = "check")]
    diff: bool,
    /// Hand this name to the source that declares it now; repeat it for several names
    #[arg(long, value_name = "NAME", conflicts_with_all = ["check", "diff"])]
    take_over: Vec<String>,
    /// Do not contact MCP servers; keep their existing lock entries
    #[arg(long)]
    offline: bool,
    /// With --check: also contact MCP servers
    #[arg(long, conflicts_with = "offline")]
    connect: bool,
    #[command(flatten)]
    output: JsonOutput,
}

impl LockOptions {
    /// A check starts nothing by itself: it compares the lock with what files declare.
    fn is_offline(&self) -> bool {
        self.offline || (self.check && !self.connect)
    }

    /// Whether the change gives a name to another source without `--take-over`.
    fn withholds(&self, change: &LockChange) -> bool {
        matches!(change.change, Change::TakenOver { .. }) && !self.take_over.contains(&change.name)
    }
}

pub(in crate::command) fn run(options: &Options, own: &LockOptions) -> anyhow::Result<Exit> {
    let started = startup::declared(options, !own.is_offline())?;
    if own.is_offline() || started.manifests.files().upstreams().next().is_none() {
        return locked(&started, own);
    }
    runtime::block_on(async {
        upstream_wait::connect(&started).await?;
        let outcome = locked(&started, own);
        started.crib.shutdown(Duration::ZERO).await;
        outcome
    })?
}

fn locked(started: &Started, own: &LockOptions) -> anyhow::Result<Exit> {
    let path = &started.config.registry.lock_file;
    let accepted = Lock::read(path)?;
    if started.manifests.files().has_errors() {
        let files = started.manifests.files();
        screen::diagnostics(files, |problem| problem.severity == Severity::Error);
        bail!("a manifest is broken, so its tools would be missing from the lock: fix it first");
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let offered = |upstream: &str| {
        if own.is_offline() { None } else { started.crib.upstreams().offered(upstream) }
    };
    let declared = lock_of(&started.crib, &started.manifests, offered, accepted.as_ref(), folder);
    let absent = if own.is_offline() { Vec::new() } else { upstream_wait::absent(&started.crib) };
    let found = changes(accepted.as_ref().unwrap_or(&Lock::empty(folder)), &declared);
    // Compare the text as well: somebody may have changed comments or the format version.
    let same = found.is_empty() && accepted.as_ref() == Some(&declared);

    let withheld: Vec<&str> = found
        .iter()
        .filter(|change| own.withholds(change))
        .map(|change| change.name.as_str())
        .collect();
    let writes = !own.check && !own.diff && withheld.is_empty();
    if writes && !same {
        declared.write(path)?;
        // Whoever accepts the contents of files has reviewed them.
        if let Some(state) = &started.config.state.dir {
            ExposedFiles::in_state(state).review();
        }
    }
    if own.output.json {
        screen::json(&json!({
            "ok": same,
            "written": writes && !same,
            "lock": path.display().to_string(),
            "tools": declared.entries.keys().filter(|(kind, _)| *kind == Kind::Tool).count(),
            "entries": declared.entries.len(),
            "withheld": withheld,
            "changes": found.iter().map(LockChange::to_value).collect::<Vec<_>>(),
        }))?;
    } else {
        if own.diff {
            for change in &found {
                screen::out(difference(own, change))?;
            }
        } else {
            for change in &found {
                screen::out(line(own, change))?;
            }
        }
        summary(own, path, &declared, &found, &withheld, same)?;
    }
    for line in &absent {
        screen::note(line);
    }
    if !absent.is_empty() {
        let kept = "the lock keeps its entries for tools of servers that are not connected";
        let check = "; `--connect` would ask them";
        let check = if own.check { check } else { "" };
        screen::note(format!("{FAINT}{kept}{check}{FAINT:#}"));
    }
    let differs = !writes && !same;
    let unsure = own.check && !absent.is_empty();
    Ok(if differs || unsure { Exit::Failure } else { Exit::Success })
}

/// One line about what was done or has to be done.
fn summary(
    own: &LockOptions,
    path: &Path,
    declared: &Lock,
    found: &[LockChange],
    withheld: &[&str],
    same: bool,
) -> anyhow::Result<()> {
    let (tools, path) = (contents(declared), path.display());
    let changed = match found.len() {
        0 => "its text differs from what `toolcrib lock` writes".to_owned(),
        1 => "1 change".to_owned(),
        more => format!("{more} changes"),
    };
    let accept = withheld.iter().fold("toolcrib lock".to_owned(), |mut command, name| {
        let _ = write!(command, " --take-over {name}");
        command
    });
    if same {
        screen::out(format!("{path} is up to date: {tools}"))
    } else if own.check {
        screen::note(format!(
            "{ERROR}error{ERROR:#}: {path} is not up to date: {changed}; see `toolcrib lock --diff`, \
             accept with `{accept}`"
        ));
        Ok(())
    } else if own.diff {
        screen::note(format!("{FAINT}{changed}: accept with `{accept}`{FAINT:#}"));
        Ok(())
    } else if !withheld.is_empty() {
        screen::note(format!(
            "{ERROR}error{ERROR:#}: {path} was not written: {} would get another owner. Rename the newcomer, \
             or hand the name over with `{accept}`",
            withheld.join(", ")
        ));
        Ok(())
    } else {
        screen::out(format!("{path} written: {tools}, {changed}"))
    }
}

/// The number of lock entries of each kind.
fn contents(lock: &Lock) -> String {
    let of = |kind: Kind| {
        let entries = lock.entries.keys().filter(|(own, _)| *own == kind).count();
        (entries > 0 || kind == Kind::Tool).then(|| count(entries, kind.as_str()))
    };
    Kind::ALL.into_iter().filter_map(of).collect::<Vec<_>>().join(", ")
}

/// A change as one line.
fn line(own: &LockOptions, change: &LockChange) -> String {
    let withheld = own.withholds(change);
    let LockChange { kind, name, change: what, owner, fields } = change;
    // Most entries are tools.
    let kind = if *kind == Kind::Tool { String::new() } else { format!("{} ", kind.as_str()) };
    let verb = if withheld { "wanted" } else { what.as_str() };
    let mut line = format!("{verb:<10} {kind}{STRONG}{name}{STRONG:#}");
    match what {
        Change::Added => {
            let _ = write!(line, " of {owner}");
        }
        Change::Removed => {
            let _ = write!(line, " of {owner}: nobody declares it");
        }
        Change::Changed => {
            let _ = write!(line, " of {owner}: {}", parts(change));
        }
        Change::Moved { from } => {
            let _ = write!(line, " from {from} to {owner}");
        }
        Change::TakenOver { from } => {
            let _ = if withheld {
                write!(line, " by {owner}: {WARNING}the lock still gives it to {from}{WARNING:#}")
            } else {
                write!(line, " by {owner}: {WARNING}it was {from}'s{WARNING:#}")
            };
            if !fields.is_empty() {
                let _ = write!(line, "; {}", parts(change));
            }
        }
    }
    line
}

/// The changed parts of a declaration: the first segments of the pointers, each once.
fn parts(change: &LockChange) -> String {
    let mut parts: Vec<&str> = change
        .fields
        .iter()
        .map(|field| field.pointer.trim_start_matches('/').split('/').next().unwrap_or_default())
        .collect();
    parts.dedup();
    if parts.is_empty() { "the digest".to_owned() } else { parts.join(", ") }
}

/// A change with all its fields.
fn difference(own: &LockOptions, change: &LockChange) -> String {
    let mut text = line(own, change);
    for field in &change.fields {
        let _ = write!(text, "\n  {}", field.pointer);
        if let Some(before) = field.shown_before() {
            let before = screen::folded(&before, 6, 6);
            let _ = write!(text, "\n    - {before}");
        }
        if let Some(after) = field.shown_after() {
            let after = screen::folded(&after, 6, 6);
            let _ = write!(text, "\n    + {after}");
        }
    }
    text
}
