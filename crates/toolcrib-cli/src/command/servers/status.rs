//! `toolcrib status`: the state of running servers and their problems.

use std::fmt::Write as _;

use clap::Args;
use serde_json::{Value, json};
use toolcrib::servers::OwnerClient;
use toolcrib::tool::fully_visible;

use super::ask_servers::{WHICH, each, list, text};
use super::report::{config_page, files_page, upstreams_page};
use super::reset::paused;
use crate::Exit;
use crate::options::{JsonOutput, Options};
use crate::screen::{WARNING, count, size};
use crate::startup::{self, Started};

/// What is stored, and why it cannot be, if it cannot.
fn state_page(state: &Value) -> String {
    let mut page = String::new();
    let kinds = list(state, "kinds");
    let kinds: Vec<String> = kinds
        .iter()
        .filter(|kind| kind["entries"].as_u64() > Some(0))
        .map(|kind| {
            let oldest = kind["oldest"].as_str().map(|at| format!(", the oldest of {at}"));
            let bytes = size(kind["bytes"].as_u64().unwrap_or_default());
            let name = text(&kind["kind"]);
            let is_one = kind["entries"].as_u64() == Some(1);
            let name = name.strip_suffix('s').filter(|_| is_one).unwrap_or(name);
            format!("{} {name} ({bytes}{})", kind["entries"], oldest.unwrap_or_default())
        })
        .collect();
    let all = size(state["bytes"].as_u64().unwrap_or_default());
    if !kinds.is_empty() {
        let _ = writeln!(page, "  state: {all}: {}", kinds.join(", "));
    }
    if let Some(problem) = state["problem"].as_str() {
        let problem = fully_visible(problem);
        let _ = writeln!(page, "  {WARNING}state cannot be stored{WARNING:#}: {problem}");
    }
    page
}

/// The places of the audit log that lose or lost records.
fn audit_page(answer: &Value) -> String {
    let mut page = String::new();
    for place in list(answer, "audit") {
        let name = fully_visible(text(&place["place"]));
        if let Some(problem) = place["problem"].as_str() {
            let problem = fully_visible(problem);
            let _ =
                writeln!(page, "  {WARNING}audit{WARNING:#} {name}: cannot be reached: {problem}");
        }
        if let Some(lost @ 1..) = place["lost"].as_u64() {
            let _ = writeln!(page, "  {WARNING}audit{WARNING:#} {name}: {lost} records were lost");
        }
    }
    page
}

/// The number of unavailable tools that `status` names.
const UNAVAILABLE_SHOWN: usize = 5;
/// The text that the reason of a tool contains if it needs the operator's trust.
const TRUST: &str = "`toolcrib trust";

#[derive(Debug, Args)]
#[command(after_help = WHICH)]
pub(crate) struct StatusOptions {
    #[command(flatten)]
    output: JsonOutput,
}

pub(in crate::command) fn run(options: &Options, own: &StatusOptions) -> anyhow::Result<Exit> {
    // A server keeps what it has loaded. Only this command sees what a changed file would need.
    let untrusted = startup::silently(options).map(|now| untrusted(&now)).unwrap_or_default();
    let status = async |server: &OwnerClient| {
        let mut answer = server.get("/v1/status").await?;
        let known: Vec<_> =
            list(&answer, "unavailable_tools").iter().map(|tool| tool["name"].clone()).collect();
        let changed = untrusted.iter().filter(|tool| !known.contains(&tool["name"]));
        answer["changed_tools"] = changed.cloned().collect();
        Ok(answer)
    };
    each(options, own.output, &status, status_page)
}

/// The tools that need the operator's trust according to the current files.
fn untrusted(now: &Started) -> Vec<Value> {
    let snapshot = now.crib.executor().registry().snapshot();
    let reasons = snapshot.entries().filter_map(|tool| {
        let reason = tool.unavailable_reason().filter(|reason| reason.contains(TRUST))?;
        Some(json!({"name": tool.name(), "reason": reason}))
    });
    reasons.collect()
}

fn status_page(answer: &Value) -> String {
    let number = |key: &str| answer[key].as_u64().unwrap_or_default();
    let amount = |key: &str| usize::try_from(number(key)).unwrap_or(usize::MAX);
    let mut page = format!(
        "  {}, {} unavailable, {} shadowed; generation {}\n",
        count(amount("tools"), "tool"),
        number("unavailable"),
        number("shadowed"),
        number("generation")
    );
    let unavailable = list(answer, "unavailable_tools");
    for tool in unavailable.iter().take(UNAVAILABLE_SHOWN) {
        let (name, reason) = (text(&tool["name"]), fully_visible(text(&tool["reason"])));
        let _ = writeln!(page, "  {WARNING}unavailable{WARNING:#} {name}: {reason}");
    }
    if let Some(more @ 1..) = unavailable.len().checked_sub(UNAVAILABLE_SHOWN) {
        let _ = writeln!(page, "  {more} more unavailable: see `toolcrib list --all`");
    }
    for tool in list(answer, "paused_tools") {
        let name = text(&tool["name"]);
        let left = tool["seconds_left"].as_u64().unwrap_or_default();
        let _ = writeln!(page, "  {WARNING}paused{WARNING:#} {name}: {}", paused(name, left));
    }
    let changed = list(answer, "changed_tools");
    for tool in changed.iter().take(UNAVAILABLE_SHOWN) {
        let (name, reason) = (text(&tool["name"]), fully_visible(text(&tool["reason"])));
        let _ = writeln!(
            page,
            "  {WARNING}changed{WARNING:#} {name}: its files have changed since the server loaded them; the \
             tool {reason}"
        );
    }
    if let Some(more @ 1..) = changed.len().checked_sub(UNAVAILABLE_SHOWN) {
        let _ = writeln!(page, "  {more} more changed: see `toolcrib list --all`");
    }
    for name in list(answer, "reserved") {
        let _ = writeln!(page, "  {WARNING}reserved{WARNING:#} {}", text(name));
    }
    for own in list(answer, "after_restart") {
        let live = own["live"].as_str().unwrap_or("nobody");
        // Most entries are tools.
        let kind = own["kind"].as_str().filter(|kind| *kind != "tool");
        let kind = kind.map(|kind| format!("{kind} ")).unwrap_or_default();
        let _ = writeln!(
            page,
            "  {WARNING}a restart would change{WARNING:#} {kind}{}: {live} has it, {} would",
            text(&own["name"]),
            text(&own["fresh"])
        );
    }
    page + &state_page(&answer["state"])
        + &audit_page(answer)
        + &config_page(&answer["config"])
        + &upstreams_page(answer, true)
        + &files_page(answer, true)
}
