//! `toolcrib check`: reports problems of manifests and names, without running anything.

mod fix;
mod report;
mod sarif;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::bail;
use clap::{Args, ValueEnum};
use toolcrib::lint;
use toolcrib::mcp::upstream::UpstreamState;

use super::refuse_tools;
use crate::options::Options;
use crate::{Exit, runtime, screen, startup, upstream_wait};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolcrib check                            the directories of the config
  toolcrib check tools.d my-tool.yaml       directories and files
  toolcrib check --strict tools.d           warnings fail, too
  toolcrib check --fix tools.d              apply unambiguous fixes
  toolcrib check --format sarif > out.sarif for code scanning
  toolcrib check --connect                  also ask the MCP servers that upstreams name

Problems go to standard error, as a compiler's do, and the last line to standard output; to read all of it
page by page, use `toolcrib check 2>&1 | less`. With --json and --format everything goes to standard output.

The last line counts all manifests in these directories, including those in `available`, which servers
never load, but not the built-in tools: `toolcrib list` shows the tools that can be called.

Errors come first, then warnings, then hints. An error keeps a file from being loaded. A warning
marks a probable mistake. A hint never fails a check. For example, a program that is not installed here is
a hint, because the server's machine may have it; a script that is missing beside its manifest is a
warning.")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct CheckOptions {
    /// Directories of manifests, or single files [default: the config's directories]
    paths: Vec<PathBuf>,
    /// Let warnings fail the check
    #[arg(long)]
    strict: bool,
    /// Apply unambiguous fixes and print the changes
    #[arg(long)]
    fix: bool,
    /// The output format
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Show at most this many problems as text; 0 shows all
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    limit: usize,
    /// Also show where a provider's schema format changes a definition
    #[arg(long)]
    providers: bool,
    /// Leave out hints
    #[arg(short, long)]
    quiet: bool,
    /// Also start or connect to the config's MCP servers, and check the filters and overrides of their
    /// tools against what they offer. They are those of the config's directories, so it takes no paths
    #[arg(long)]
    connect: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people, on standard error
    Text,
    /// One JSON object
    Json,
    /// SARIF 2.1.0
    Sarif,
}

pub(in crate::command) fn run(options: &Options, own: &CheckOptions) -> anyhow::Result<Exit> {
    if own.connect && !own.paths.is_empty() {
        bail!(
            "`--connect` asks the MCP servers that the config's manifest directories declare, so it takes no \
             paths: run `toolcrib check --connect`, and `toolcrib check PATH` for the files of a path"
        );
    }
    let loaded = startup::config(options)?;
    refuse_tools(&own.paths, loaded.config(), |_, file| {
        format!("toolcrib check {}", file.display())
    })?;
    let looked_for =
        lint::CheckOptions { restated: own.providers, config_loaded: loaded.file().is_some() };
    let config = loaded.config();
    let mut has_nothing = false;
    let paths = if own.paths.is_empty() {
        let absent = config.manifests.absent();
        screen::absent(&absent);
        has_nothing = loaded.file().is_none() && absent.len() == config.manifests.dirs.len();
        config.manifests.dirs.iter().filter(|dir| !absent.contains(dir)).cloned().collect()
    } else {
        own.paths.clone()
    };
    let mut found = lint::check(&paths, config, looked_for)?;
    let edits = if own.fix {
        let edits = fix::apply_fixes(&found.files);
        if edits.iter().any(|file| !file.applied.is_empty()) {
            found = lint::check(&paths, config, looked_for)?;
        }
        Some(edits)
    } else {
        None
    };
    // Names of the config apply only to the config's own files.
    let mut about_config = Vec::new();
    if own.paths.is_empty() {
        loaded.locate_directories(&mut found.files);
        let started = startup::without_state(options).ok();
        let unmatched = started.map(|started| {
            let mut found = started.crib.unmatched_names(config);
            found.extend(started.crib.unmatched_patterns(config));
            found
        });
        let mut findings = unmatched.unwrap_or_default();
        findings.extend(config.refused_settings());
        findings.extend(config.missing_secrets());
        about_config = loaded.located(&findings);
    }
    let mut report = report::Report::new(&found, &about_config, own.strict, own.quiet, edits);
    if own.connect {
        report = report.with_upstreams(connected(options)?);
    }
    report.failed |= has_nothing;
    match own.format {
        Format::Sarif => screen::json(&sarif::log(&report))?,
        Format::Json => screen::json(&report.to_value())?,
        Format::Text if own.json => screen::json(&report.to_value())?,
        Format::Text => report.print(own.limit)?,
    }
    if has_nothing {
        screen::note("nothing was checked: there is neither a config here nor a manifest");
    }
    Ok(if report.failed { Exit::Failure } else { Exit::Success })
}

/// What the upstreams of the config say of their declarations: those that cannot be connected to, and
/// filters and overrides that match nothing.
fn connected(options: &Options) -> anyhow::Result<Vec<String>> {
    let started = startup::look(options, true)?;
    runtime::block_on(async {
        upstream_wait::connect(&started).await?;
        let down = started.crib.upstreams().status().into_iter().filter_map(|status| {
            let UpstreamState::Down { reason, detail, said, .. } = &status.state else {
                return None;
            };
            let shown = detail.as_ref().or(said.last());
            let shown = shown.map(|line| format!(" ({line})")).unwrap_or_default();
            Some(format!("upstream {}: it is not checked, because {reason}{shown}", status.name))
        });
        let found = down.chain(upstream_wait::unmatched(&started.crib)).collect();
        started.crib.shutdown(Duration::ZERO).await;
        anyhow::Ok(found)
    })?
}
