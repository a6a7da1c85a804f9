//! `toolcrib test`: runs the tests in manifests.

mod junit;
mod report;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, bail};
use clap::Args;
use toolcrib::manifest::Severity;
use toolcrib::manifest::declaration::Declaration;
use toolcrib::manifest_tests::{TestOptions, run_tests};
use toolcrib::manifests::Manifests;

use self::report::Report;
use super::refuse_tools;
use crate::options::{JsonOutput, Options};
use crate::serving::stop;
use crate::{Exit, runtime, screen, startup};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolcrib test                            the tests of all manifests of the config
  toolcrib test tools.d/logs.yaml          those of one file
  toolcrib test --tool tail_log            those of one tool
  toolcrib test --mock                     start nothing: argument vectors and refusals only
  toolcrib test --strict --junit out.xml   for a build: skipped tests fail, too

A test calls its tool like any caller, with the context that the test names. Nobody is asked for approval,
so calls that need it fail. Tests of unavailable tools are skipped, with the reason.

Exit code 0: all tests passed. 1: a test failed, or a file is broken; with --strict also if a test was
skipped, or if there are no tests.")]
pub(crate) struct TestCommand {
    /// Manifests, or directories of them [default: the config's directories]
    paths: Vec<PathBuf>,
    /// Only run the tests of this tool (may be repeated)
    #[arg(long, value_name = "NAME")]
    tool: Vec<String>,
    /// Start nothing: check argument vectors and refusals, and skip tests that need a run
    #[arg(long)]
    mock: bool,
    /// Fail if a test is skipped, or if there are no tests
    #[arg(long, visible_alias = "no-skip")]
    strict: bool,
    /// Run this many tests at once
    #[arg(long, value_name = "NUMBER", default_value_t = TestOptions::default().concurrency,
          value_parser = at_least_one)]
    jobs: usize,
    /// Also write an XML report for build servers to this file
    #[arg(long, value_name = "FILE", help = "Also write a JUnit report into this file")]
    junit: Option<PathBuf>,
    #[command(flatten)]
    output: JsonOutput,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|number| *number > 0).ok_or("a whole number from 1".to_owned())
}

pub(in crate::command) fn run(options: &Options, own: &TestCommand) -> anyhow::Result<Exit> {
    refuse_tools(&own.paths, startup::config(options)?.config(), |name, _| {
        format!("toolcrib test --tool {name}")
    })?;
    let started = startup::test(options, &own.paths, own.mock)?;
    screen::absent(&started.config.manifests.absent());
    let broken = broken(&started.manifests);
    let chosen = chosen(&started.manifests, &own.tool)?;
    // A file that declares only other MCP servers has nothing to test.
    let testable = !chosen.is_empty() || started.manifests.files().upstreams().next().is_none();
    let mut how = TestOptions::default();
    how.mock = own.mock;
    how.concurrency = own.jobs;
    let begun = Instant::now();
    let reports = runtime::block_on(async {
        let reports = tokio::select! {
            // Dropping the tests ends what they have started.
            () = stop::requested() => None,
            reports = run_tests(started.crib.executor(), chosen, how) => Some(reports),
        };
        started.crib.shutdown(stop::GRACE).await;
        reports
    })?;
    let Some(reports) = reports else {
        screen::note("interrupted: the tests were ended");
        return Ok(Exit::Interrupted);
    };
    let report = Report::new(reports, begun.elapsed(), broken, own.strict);
    let report = report.wants_tests(own.strict && testable);
    if let Some(path) = &own.junit {
        std::fs::write(path, junit::document(&report))
            .with_context(|| format!("writing the JUnit report {}", path.display()))?;
    }
    if own.output.json {
        screen::json(&report.to_value())?;
    } else {
        // Report broken files first: their tests did not run.
        screen::diagnostics(started.manifests.files(), |found| found.severity == Severity::Error);
        report.print()?;
    }
    Ok(if report.failed() { Exit::Failure } else { Exit::Success })
}

/// The number of broken files, whose tests are unknown.
fn broken(manifests: &Manifests) -> usize {
    let files = manifests.files();
    files.unreadable.iter().chain(&files.files).filter(|file| file.loaded.has_errors()).count()
}

/// The tools whose tests are to be run, in the order of their files.
fn chosen<'m>(manifests: &'m Manifests, names: &[String]) -> anyhow::Result<Vec<&'m Declaration>> {
    let declared: Vec<&Declaration> = manifests.files().declarations().collect();
    for name in names {
        if !declared.iter().any(|tool| tool.definition.name() == name) {
            bail!(
                "no manifest here declares a tool `{name}`; `toolcrib list` shows the tools, and \
                 those that are linked in have no tests of this kind"
            );
        }
    }
    let wanted = |tool: &&Declaration| {
        names.is_empty() || names.iter().any(|name| name == tool.definition.name())
    };
    Ok(declared.into_iter().filter(wanted).collect())
}
