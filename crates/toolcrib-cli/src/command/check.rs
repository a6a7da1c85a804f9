//! `toolcrib check`: what is wrong with manifests and names, without running anything.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use toolcrib::Toolcrib;
use toolcrib::manifest::Severity;
use toolcrib::manifest::directory::DirectoryLoad;
use toolcrib::manifests::Manifests;

use super::{JsonOutput, Options};
use crate::screen::{self, ERROR, WARNING, count};
use crate::{Exit, startup};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolcrib check                       the directories of the config
  toolcrib check tools.d my-tool.yaml  directories and files
  toolcrib check --strict tools.d      warnings and shadowed names fail, too")]
pub(crate) struct CheckOptions {
    /// Directories of manifests, or single files [default: the config's directories]
    paths: Vec<PathBuf>,
    /// Let warnings and shadowed names fail the check
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    output: JsonOutput,
}

pub(super) fn run(options: &Options, own: &CheckOptions) -> anyhow::Result<Exit> {
    let paths = if own.paths.is_empty() {
        startup::config(options)?.manifests.dirs
    } else {
        own.paths.clone()
    };
    let found = Manifests::load(&paths, Path::new("."));
    let crib = Toolcrib::builder().native_tools().entries(found.entries()).build()?;
    let snapshot = crib.executor().registry().snapshot();
    let conflicts = snapshot.conflicts();

    let errors = count_of(found.files(), Severity::Error);
    let warnings = count_of(found.files(), Severity::Warning);
    let failed = errors > 0 || own.strict && (warnings > 0 || !conflicts.is_empty());

    if own.output.json {
        let problems: Vec<Value> = found
            .files()
            .problems()
            .map(|(file, problem)| problem.to_value(&file.path.to_string_lossy(), &file.text))
            .collect();
        screen::json(&json!({
            "ok": !failed,
            "files": found.files().files.len(),
            "tools": found.entries().count(),
            "diagnostics": problems,
            "shadowed": conflicts.iter().map(|conflict| json!({
                "name": conflict.loser.name(),
                "source": conflict.loser.source.to_string(),
                "kept_by": conflict.winner.to_string(),
            })).collect::<Vec<Value>>(),
        }))?;
    } else {
        screen::diagnostics(found.files(), |_| true);
        let (style, word) = if own.strict { (ERROR, "error") } else { (WARNING, "warning") };
        for conflict in conflicts {
            screen::note(format!(
                "{style}{word}{style:#}: the name `{}` is declared twice: {} keeps it, {} is shadowed",
                conflict.loser.name(),
                conflict.winner,
                conflict.loser.source
            ));
        }
        screen::out(format!(
            "{} in {}: {}, {}",
            count(found.entries().count(), "tool"),
            count(found.files().files.len(), "file"),
            count(errors, "error"),
            count(warnings, "warning")
        ))?;
    }
    Ok(if failed { Exit::Failure } else { Exit::Success })
}

fn count_of(files: &DirectoryLoad, severity: Severity) -> usize {
    files.problems().filter(|(_, problem)| problem.severity == severity).count()
}
