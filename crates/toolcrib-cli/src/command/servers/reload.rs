//! `toolcrib reload`: makes running servers reload the config and the manifests.

use std::cell::Cell;
use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use toolcrib::control_plane::ExposedFiles;
use toolcrib::servers::OwnerClient;
use toolcrib::tool::fully_visible;

use super::ask_servers::{WHICH, each_of, list, place_and_servers, text};
use super::report::{config_page, files_page, upstreams_page};
use crate::options::{JsonOutput, Options};
use crate::screen::{WARNING, count};
use crate::{Exit, screen, startup};

const RELOADED: &str = "These settings take effect: `policy`, `toolsets`, `secrets` in files and commands, `secret_folders`, \
     `builtins.enabled`, `output`, `approval.timeout`, `executor.tool_timeout`, `executor.max_timeout`, \
     `executor.max_concurrency`, `manifests.trusted`, and the tokens, `toolset`, `rate` and `concurrent` of \
     `server`; a revoked token's requests and sessions end. Calls that run keep what they began with. \
     An MCP server whose program or script was changed is restarted. \
     Files that programs could have created or changed count as reviewed, also without a running server. \
     Changed settings that need a restart are listed with their places. An invalid config changes nothing. SIGHUP does the \
     same. If a manifest is stale or broken, the exit code is 1.";

#[derive(Debug, Args)]
#[command(after_help = format!("{RELOADED}\n\n{WHICH}"))]
pub(crate) struct ReloadOptions {
    #[command(flatten)]
    output: JsonOutput,
}

pub(in crate::command) fn run(options: &Options, own: &ReloadOptions) -> anyhow::Result<Exit> {
    let (place, servers) = place_and_servers(options)?;
    if servers.is_empty()
        && let Some(reviewed) = review_without_server(options)
    {
        if own.output.json {
            screen::json(&json!({"servers": [], "reviewed": reviewed}))?;
        } else {
            for file in &reviewed {
                screen::out(format!("  {}", reviewed_line(&file.to_string_lossy())))?;
            }
            screen::note("no server runs with this config, so nothing else was reloaded");
        }
        return Ok(Exit::Success);
    }
    let found_unusable = Cell::new(false);
    let reload = async |server: &OwnerClient| {
        let answer = server.post("/v1/reload", None).await?;
        if !unusable_files(&answer).is_empty() {
            found_unusable.set(true);
        }
        Ok(answer)
    };
    let exit = each_of(&place, &servers, own.output, &reload, reload_page)?;
    Ok(if found_unusable.get() { Exit::Failure } else { exit })
}

/// Files that programs of earlier servers and calls could have created or changed, and that exist: they count as reviewed
/// from now on. `None` if there are none.
fn review_without_server(options: &Options) -> Option<Vec<PathBuf>> {
    // The servers that are looked for do not need a valid config, either.
    let config = startup::config(options).ok()?.into_config();
    let files = ExposedFiles::in_state(config.state.dir.as_deref()?).review();
    (!files.is_empty()).then_some(files)
}

fn reviewed_line(file: &str) -> String {
    format!(
        "{WARNING}reviewed{WARNING:#} {}: programs of this server could have created or changed it, and it is used from now on",
        fully_visible(file)
    )
}

/// The number of files in each state in which the current content is not in effect.
fn unusable_files(answer: &Value) -> Vec<(usize, &'static str)> {
    let files = list(answer, "files");
    let number = |state| files.iter().filter(|file| file["state"] == state).count();
    let states = ["stale", "broken"].map(|state| (number(state), state));
    states.into_iter().filter(|(number, _)| *number > 0).collect()
}

fn reload_page(answer: &Value) -> String {
    let mut page = String::new();
    for (key, word) in [("added", "new"), ("removed", "gone")] {
        for name in list(answer, key) {
            let _ = writeln!(page, "  {word} {}", text(name));
        }
    }
    let troubles = list(answer, "troubles");
    for own in &troubles {
        if let Some(shown) = own["shown"].as_str() {
            let _ = writeln!(page, "{shown}");
        }
    }
    let files = list(answer, "files").len();
    page += &config_page(&answer["config"]);
    for unmatched in list(answer, "unmatched") {
        let _ = writeln!(page, "  {WARNING}config{WARNING:#}: {}", fully_visible(text(unmatched)));
    }
    for file in list(answer, "reviewed") {
        let _ = writeln!(page, "  {}", reviewed_line(text(file)));
    }
    page += &files_page(answer, false);
    page += &upstreams_page(answer, false);
    let mut read = format!("{} read", count(files, "file"));
    for (number, state) in unusable_files(answer) {
        let _ = write!(read, ", {number} {state}");
    }
    page + &format!("  {read}; generation {}\n", answer["generation"])
}
