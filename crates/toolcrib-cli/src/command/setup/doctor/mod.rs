//! `toolcrib doctor`: what this machine can enforce, and which promises do not hold here and why.

mod findings;
mod machine;
mod promises;
mod providers;
mod settings;
mod storage;
mod tools;
mod unit;
mod upstreams;

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use findings::{Finding, FindingLevel, Findings};
use promises::Promise;

use crate::options::{ConnectChoice, JsonOutput, Options};
use crate::screen::{self, ERROR, FAINT, STRONG, WARNING, count};
use crate::{Exit, startup};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolcrib doctor
  toolcrib doctor --json | jq '.findings[] | select(.verdict == \"failure\")'
  toolcrib doctor --json | jq '.promises[] | select(.stands != \"holds\")'
  systemctl cat toolcrib | toolcrib doctor --unit -     which lines of the unit take a promise away

Doctor runs no tools and no commands for secrets, and leaves nothing behind. It asks every provider of models once for
its models. The state of other MCP servers
comes from the servers that run with this config; with --connect, doctor starts or connects to each of them,
with the secrets that it needs. Exit code 1: at least one check failed.")]
pub(crate) struct DoctorOptions {
    #[command(flatten)]
    connect: ConnectChoice,
    /// Check only this systemd unit and its drop-ins, in this order; `-` reads standard input (may be repeated)
    #[arg(long, value_name = "FILE", conflicts_with = "connect")]
    unit: Vec<PathBuf>,
    #[command(flatten)]
    output: JsonOutput,
}

pub(in crate::command) fn run(options: &Options, own: &DoctorOptions) -> anyhow::Result<Exit> {
    let mut findings = Findings::default();
    if !own.unit.is_empty() {
        unit::look(&own.unit, &mut findings)?;
        return show(&findings, &[], own.output);
    }
    findings.section("Machine");
    let machine = machine::look(&mut findings);
    findings.section("Settings");
    let promises = match startup::config(options) {
        Ok(loaded) => {
            settings::look(&loaded, &mut findings);
            findings.section("Tools");
            tools::look(options, &loaded, &mut findings);
            upstreams::look(options, own.connect.connect, &mut findings)?;
            providers::look(options, &loaded, &mut findings);
            promises::promises(&machine, Some(loaded.config()))
        }
        // Standard error already names the errors and their positions.
        Err(error) => {
            findings.fail(
                "config",
                format!("{error:#}"),
                "servers and calls do not start with these settings",
            );
            promises::promises(&machine, None)
        }
    };
    show(&findings, &promises, own.output)
}

/// Prints what was found; failures are the exit code's business, too.
fn show(findings: &Findings, promises: &[Promise], output: JsonOutput) -> anyhow::Result<Exit> {
    let failed = findings.count(FindingLevel::Failure) > 0;
    if output.json {
        let records: Vec<Value> = findings.list.iter().map(record).collect();
        let promises: Vec<Value> = promises.iter().map(Promise::to_value).collect();
        screen::json(&json!({"ok": !failed, "findings": records, "promises": promises}))?;
    } else {
        screen::out(page(findings, promises))?;
    }
    Ok(if failed { Exit::Failure } else { Exit::Success })
}

fn record(finding: &Finding) -> Value {
    json!({
        "section": finding.section.to_lowercase(),
        "about": finding.about,
        "verdict": finding.verdict.as_str(),
        "message": finding.says,
        "help": finding.help,
        "lines": finding.lines,
    })
}

/// The column in which the text of a finding starts.
const INDENT: usize = 11;

fn page(findings: &Findings, promises: &[Promise]) -> String {
    let mut page = String::new();
    let mut section = "";
    for finding in &findings.list {
        if section != finding.section {
            section = finding.section;
            let _ = writeln!(page, "{STRONG}{section}{STRONG:#}");
        }
        let word = format!("{:<8}", finding.verdict.as_str());
        let word = match finding.verdict {
            FindingLevel::Good => word,
            FindingLevel::Note => format!("{FAINT}{word}{FAINT:#}"),
            FindingLevel::Warning => format!("{WARNING}{word}{WARNING:#}"),
            FindingLevel::Failure => format!("{ERROR}{word}{ERROR:#}"),
        };
        let about = finding.about;
        let says = screen::folded(&finding.says, INDENT + about.len() + 2, INDENT);
        let _ = writeln!(page, "  {word} {STRONG}{about}{STRONG:#}: {says}");
        if let Some(help) = finding.help {
            let help = screen::folded(help, INDENT, INDENT);
            let _ = writeln!(page, "{:INDENT$}{FAINT}{help}{FAINT:#}", "");
        }
        for line in &finding.lines {
            let line = screen::folded(line, INDENT + 2, INDENT + 2);
            let _ = writeln!(page, "{:INDENT$}{FAINT}| {line}{FAINT:#}", "");
        }
    }
    if !promises.is_empty() {
        promises::page(promises, &mut page);
    }
    let failures = count(findings.count(FindingLevel::Failure), "failure");
    let _ =
        writeln!(page, "\n{failures}, {}", count(findings.count(FindingLevel::Warning), "warning"));
    page
}
