//! `toolcrib state`: copies the database of the state folder while servers run, and puts a copy in its place.

use std::path::{self, Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use clap::{Args, Subcommand};
use serde_json::json;
use toolcrib::settings::Config;
use toolcrib::stores::{StateDir, back_up, restore};

use crate::options::{JsonOutput, Options};
use crate::screen::{self, size};
use crate::{Exit, startup};

#[derive(Debug, Args)]
pub(crate) struct StateOptions {
    #[command(subcommand)]
    action: StateAction,
}

#[derive(Debug, Subcommand)]
enum StateAction {
    /// Copy everything that is stored to a new file, while servers run
    #[command(after_help = "Examples:
  toolcrib state backup /var/backups/toolcrib-$(date +%F).db

The file (mode 0600) must be new and have no other use for the server. It has what was stored when the copy began: runs with their arguments and results, waiting
calls, long outputs, answers, pins and trust, in plain text. It has no secrets of the config, no audit log and
no files of tools.")]
    Backup(BackupOptions),
    /// Put a backup in the place of what is stored; no server may run
    #[command(after_help = "Examples:
  toolcrib state restore /var/backups/toolcrib-2026-11-23.db

The database that was there before is kept beside it as toolcrib.db-before-restore. Calls that ran when the
backup was made are not run again: their outcome is unknown. Calls that waited then wait again, also those that
were decided on since: look into the audit log before you approve one.")]
    Restore(RestoreOptions),
}

#[derive(Debug, Args)]
struct BackupOptions {
    /// The new file
    file: PathBuf,
    #[command(flatten)]
    output: JsonOutput,
}

#[derive(Debug, Args)]
struct RestoreOptions {
    /// A file that `toolcrib state backup` has written
    file: PathBuf,
    #[command(flatten)]
    output: JsonOutput,
}

pub(in crate::command) fn run(options: &Options, own: &StateOptions) -> anyhow::Result<Exit> {
    let loaded = startup::config(options)?;
    let dir = loaded.config().state.dir.clone().ok_or_else(|| {
        anyhow!("there is no state folder: `state.dir` is none, so everything is kept in memory")
    })?;
    let shown = dir.display();
    match &own.action {
        StateAction::Backup(BackupOptions { file, output }) => {
            out_of_reach(loaded.config(), file)
                .and_then(|()| not_of_the_server(loaded.config(), file))
                .context("nothing was backed up")?;
            let bytes = back_up(&dir, file).context("nothing was backed up")?;
            if output.json {
                screen::json(&json!({"ok": true, "from": dir, "file": file, "bytes": bytes}))?;
            } else {
                let file = file.display();
                screen::out(format!("copied the state of {shown} to {file} ({})\n", size(bytes)))?;
            }
        }
        StateAction::Restore(RestoreOptions { file, output }) => {
            out_of_reach(loaded.config(), file).context("nothing was restored")?;
            StateDir::open(&dir).context("nothing was restored")?;
            StateDir::check_owner(&dir).context("nothing was restored")?;
            restore(&dir, file).context("nothing was restored")?;
            if output.json {
                screen::json(&json!({"ok": true, "file": file, "to": dir}))?;
            } else {
                let file = file.display();
                screen::out(format!(
                    "restored {file} to {shown}; what was there before is in toolcrib.db-before-restore\n"
                ))?;
            }
        }
    }
    Ok(Exit::Success)
}

/// Fails for a backup in a folder that tools work in: they could read all that is stored, or change what a restore
/// trusts.
fn out_of_reach(config: &Config, file: &Path) -> anyhow::Result<()> {
    let folder = folder_of(file)?;
    let mut works = std::iter::once(&config.workspace.root).chain(config.projects.values());
    let reached = works.find_map(|work| {
        let work = work.canonicalize().ok()?;
        folder.starts_with(&work).then_some(work)
    });
    match reached {
        Some(work) => bail!(
            "{} is in {}, where tools can read and change it: choose a folder that no tool can reach",
            file.display(),
            work.display()
        ),
        None => Ok(()),
    }
}

/// Fails for a backup in a place of the server: its config, the folders of its manifests, its state, its records and
/// secrets. There, a new file would be read as something else, or would be in the way of a file of the server.
fn not_of_the_server(config: &Config, file: &Path) -> anyhow::Result<()> {
    let named = folder_of(file)?.join(file.file_name().unwrap_or_default());
    let mut config = config.clone();
    config.own_files.extend(startup::DEFAULT_CONFIGS.map(PathBuf::from));
    let own = config.own_places();
    let mut places = [own.hidden, own.read_only, own.guarded].into_iter().flatten();
    let taken = places.find(|place| {
        let place = place.canonicalize().or_else(|_| {
            Ok::<_, anyhow::Error>(folder_of(place)?.join(place.file_name().unwrap_or_default()))
        });
        // What has no folder is nowhere near the file.
        place.is_ok_and(|place| named.starts_with(place))
    });
    match taken {
        Some(place) => bail!(
            "{} belongs to this server ({}): choose a folder that has nothing else of it",
            file.display(),
            place.display()
        ),
        None => Ok(()),
    }
}

/// The folder of a file, without links.
fn folder_of(file: &Path) -> anyhow::Result<PathBuf> {
    let absolute = path::absolute(file)?;
    let parent = absolute.parent().unwrap_or(Path::new("/"));
    parent.canonicalize().with_context(|| format!("{} is not accessible", parent.display()))
}
