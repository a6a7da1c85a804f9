//! Commands for servers that run: `status`, `reload`, `stats`, `release` and `reset`.

use anyhow::{anyhow, bail};
use clap::Args;
use comfy_table::{CellAlignment, Table, presets};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::ErrorKind;
use toolcrib::servers::{
    ControlPlace, OwnerClient, OwnerError, RunningServer, path_segment, running_servers,
};

use toolcrib::tool::fully_visible;

use crate::options::{JsonOutput, Options};
use crate::screen::{self, FAINT, STRONG, WARNING, count};
use crate::startup::{self, Started};
use crate::{Exit, runtime};

pub(in crate::command) const WHICH: &str = "Servers are found by the config: each has a private socket for its owner in the state folder \
     (`state.dir`), or with `state.dir: none`, in $XDG_RUNTIME_DIR/toolcrib. A server with another state folder \
     leaves a link there and in the default state folder; otherwise name its folder with --set \
     state.dir=FOLDER. A broken config does not matter.\n\nExit code 1: no server runs, or one \
     refused.";

/// Stands for mistakes of the config that were shown.
const SHOWN_ABOVE: &str = "the mistakes shown above";

/// Unavailable tools that `status` names.
const UNAVAILABLE_SHOWN: usize = 5;
/// What the reason of a tool names that needs the operator's word.
const TRUST: &str = "`toolcrib trust";

const RELOADED: &str = "Takes effect: `policy`, `toolsets`, `manifests.trusted`, and of `server` the tokens, `toolset`, \
     `rate` and `concurrent`; a revoked token's requests and sessions end. Other settings need a \
     restart and are named. A config that cannot be used changes nothing. SIGHUP does the same.";

#[derive(Debug, Args)]
#[command(after_help = WHICH)]
pub(crate) struct StatusOptions {
    #[command(flatten)]
    output: JsonOutput,
}

#[derive(Debug, Args)]
#[command(after_help = format!("{RELOADED}\n\n{WHICH}"))]
pub(crate) struct ReloadOptions {
    #[command(flatten)]
    output: JsonOutput,
}

#[derive(Debug, Args)]
#[command(after_help = WHICH)]
pub(crate) struct StatsOptions {
    #[command(flatten)]
    output: JsonOutput,
}

#[derive(Debug, Args)]
#[command(after_help = WHICH)]
pub(crate) struct ReleaseOptions {
    /// The name that its owner gave up
    name: String,
    #[command(flatten)]
    output: JsonOutput,
}

#[derive(Debug, Args)]
#[command(after_help = WHICH)]
pub(crate) struct ResetOptions {
    /// The tool that is paused
    name: String,
    #[command(flatten)]
    output: JsonOutput,
}

pub(in crate::command) fn status(options: &Options, own: &StatusOptions) -> anyhow::Result<Exit> {
    // A server goes on with what it has loaded. What a file on disk needs by now is seen only here.
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

/// The tools that, as their files are now, need the operator's word.
fn untrusted(now: &Started) -> Vec<Value> {
    let snapshot = now.crib.executor().registry().snapshot();
    let reasons = snapshot.entries().filter_map(|tool| {
        let reason = tool.unavailable_reason().filter(|reason| reason.contains(TRUST))?;
        Some(json!({"name": tool.name(), "reason": reason}))
    });
    reasons.collect()
}

pub(in crate::command) fn reload(options: &Options, own: &ReloadOptions) -> anyhow::Result<Exit> {
    each(
        options,
        own.output,
        &async |server: &OwnerClient| server.post("/v1/reload", None).await,
        reload_page,
    )
}

pub(in crate::command) fn stats(options: &Options, own: &StatsOptions) -> anyhow::Result<Exit> {
    each(
        options,
        own.output,
        &async |server: &OwnerClient| server.get("/v1/stats").await,
        stats_page,
    )
}

pub(in crate::command) fn release(options: &Options, own: &ReleaseOptions) -> anyhow::Result<Exit> {
    let path = format!("/v1/names/{}/release", path_segment(&own.name));
    let released = async |server: &OwnerClient| server.post(&path, None).await;
    each(options, own.output, &released, |answer| release_page(&own.name, answer))
}

pub(in crate::command) fn reset(options: &Options, own: &ResetOptions) -> anyhow::Result<Exit> {
    let path = format!("/v1/tools/{}/reset", path_segment(&own.name));
    let reset = async |server: &OwnerClient| server.post(&path, None).await;
    each(options, own.output, &reset, |answer| reset_page(&own.name, answer))
}

/// What running servers say of a name: those that could be asked.
pub(in crate::command) async fn why(started: &Started, name: &str) -> Vec<(u32, Value)> {
    answers(started, &format!("/v1/names/{}", path_segment(name))).await
}

/// The status of the running servers: of those that could be asked.
pub(in crate::command) async fn statuses(started: &Started) -> Vec<(u32, Value)> {
    answers(started, "/v1/status").await
}

async fn answers(started: &Started, path: &str) -> Vec<(u32, Value)> {
    let place = started.control.as_ref().ok();
    let servers = place.map(running_servers).and_then(Result::ok).unwrap_or_default();
    let mut answers = Vec::new();
    for server in servers {
        if let Ok(answer) = server.client.get(path).await {
            answers.push((server.pid, answer));
        }
    }
    answers
}

/// Asks every server that runs, and shows what each says.
fn each(
    options: &Options,
    output: JsonOutput,
    ask: &impl AsyncFn(&OwnerClient) -> Result<Value, OwnerError>,
    page: impl Fn(&Value) -> String,
) -> anyhow::Result<Exit> {
    let (place, servers, shown) = place_and_servers(options)?;
    // What was shown of the config already is not repeated for each server.
    let briefly = |text: String| match &shown {
        Some(problem) if !problem.is_empty() => text.replace(problem.as_str(), SHOWN_ABOVE),
        _ => text,
    };
    let mut records = Vec::new();
    let mut has_failed = servers.is_empty();
    for server in &servers {
        match runtime::block_on(ask(&server.client))? {
            Ok(mut answer) => {
                if output.json {
                    let mut record = answer;
                    record["ok"] = json!(true);
                    record["pid"] = json!(server.pid);
                    records.push(record);
                } else {
                    screen::out(format!("{STRONG}server {}{STRONG:#}", server.pid))?;
                    if let Some(problem) = answer["config"]["problem"].as_str() {
                        answer["config"]["problem"] = briefly(problem.to_owned()).into();
                    }
                    screen::out(page(&answer).trim_end())?;
                }
            }
            Err(error) => {
                has_failed = true;
                if output.json {
                    let error = error.to_string();
                    records.push(json!({"pid": server.pid, "ok": false, "error": error}));
                } else {
                    let error = briefly(error.to_string());
                    screen::note(format!("server {}: {error}", server.pid));
                }
            }
        }
    }
    if output.json {
        screen::json(&json!({"servers": records}))?;
    } else if servers.is_empty() {
        let searched: Vec<_> =
            place.searched().map(|folder| folder.display().to_string()).collect();
        screen::note(format!(
            "no server runs with this config: there is no socket of one in {}. For a server with another \
             state folder, name that: `--set state.dir=FOLDER`",
            searched.join(" or ")
        ));
    }
    Ok(if has_failed { Exit::Failure } else { Exit::Success })
}

/// The servers that run with this config.
pub(in crate::command) fn servers(options: &Options) -> anyhow::Result<Vec<RunningServer>> {
    let (_, servers, _) = place_and_servers(options)?;
    Ok(servers)
}

/// Where servers of this config are looked for, those that are found, and the mistakes of the config that
/// were shown.
fn place_and_servers(
    options: &Options,
) -> anyhow::Result<(ControlPlace, Vec<RunningServer>, Option<String>)> {
    let (place, shown) = startup::control(options)?;
    let place = match place {
        Ok(place) => place,
        Err(why) => bail!(
            "running servers cannot be found: {why}. Name a `state.dir` for them and this command (a \
             server that cannot be found reads its config and manifests again on SIGHUP)"
        ),
    };
    let servers = running_servers(&place).map_err(|error| {
        let hint = match error.kind() {
            ErrorKind::PermissionDenied => ": only the user of the servers can ask them",
            _ => "",
        };
        anyhow!("looking for servers in {}: {error}{hint}", place.path().display())
    })?;
    Ok((place, servers, shown))
}

/// What to know of a tool that a server has paused.
pub(in crate::command) fn paused(name: &str, seconds_left: u64) -> String {
    let left = match seconds_left {
        0 => "paused after repeated timeouts while one call is tried".to_owned(),
        left => format!("paused after repeated timeouts, {left} s left"),
    };
    format!("{left}; `toolcrib reset {name}` ends the pause")
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
        // Most are tools.
        let kind = own["kind"].as_str().filter(|kind| *kind != "tool");
        let kind = kind.map(|kind| format!("{kind} ")).unwrap_or_default();
        let _ = writeln!(
            page,
            "  {WARNING}a restart would change{WARNING:#} {kind}{}: {live} has it, {} would",
            text(&own["name"]),
            text(&own["fresh"])
        );
    }
    page + &config_page(&answer["config"])
        + &upstreams_page(answer, true)
        + &files_page(answer, true)
}

/// What came of reading the config again.
fn config_page(config: &Value) -> String {
    let mut page = String::new();
    let keys = |key: &str| list(config, key).into_iter().map(text).collect::<Vec<_>>().join(", ");
    if let Some(problem) = config["problem"].as_str() {
        let _ = writeln!(
            page,
            "  {WARNING}config refused{WARNING:#}, the one before is in effect: {problem}"
        );
    }
    for (key, says) in [("added_clients", "added"), ("removed_clients", "removed")] {
        for name in list(config, key) {
            let _ = writeln!(page, "  config: client {} {says}", text(name));
        }
    }
    for (key, says) in [
        ("changed", "in effect now"),
        ("ended_clients", "ended what these clients may no longer do"),
        ("needs_restart", "changed, and needs a restart"),
    ] {
        let keys = keys(key);
        if !keys.is_empty() {
            let _ = writeln!(page, "  config: {says}: {keys}");
        }
    }
    page
}

/// The MCP servers behind it, those that are connected and as they were only where `all` are wanted.
fn upstreams_page(answer: &Value, all: bool) -> String {
    let mut page = String::new();
    for own in list(answer, "upstreams") {
        let change = match own["change"].as_str() {
            Some("added") => "new, ",
            Some("reconnected") => "connected to anew, ",
            Some("updated") => "with other settings, ",
            Some(_) => {
                let _ = writeln!(page, "  upstream {}: gone", text(&own["name"]));
                continue;
            }
            None => "",
        };
        let state = text(&own["state"]);
        if state == "connected" && change.is_empty() && !all {
            continue;
        }
        let state = match own["reason"].as_str() {
            Some(reason) => {
                let detail =
                    own["detail"].as_str().map(|detail| format!(" {FAINT}({detail}){FAINT:#}"));
                format!("{WARNING}{state}{WARNING:#}: {reason}{}", detail.unwrap_or_default())
            }
            None if state == "connected" => {
                let number =
                    |key: &str| usize::try_from(own[key].as_u64().unwrap_or(0)).unwrap_or(0);
                let disabled = match number("disabled") {
                    0 => String::new(),
                    some => format!(", {WARNING}{some} disabled{WARNING:#}"),
                };
                let left_out = match number("left_out") {
                    0 => String::new(),
                    some => format!(", {WARNING}at least {some} left out{WARNING:#}"),
                };
                format!("{state}, {}{disabled}{left_out}", count(number("tools"), "tool"))
            }
            None => state.to_owned(),
        };
        let _ = writeln!(page, "  upstream {}: {change}{state}", text(&own["name"]));
    }
    page
}

/// The files, those that are live only where `all` are wanted.
fn files_page(answer: &Value, all: bool) -> String {
    let mut page = String::new();
    for own in list(answer, "unreadable") {
        let (dir, reason) = (text(&own["directory"]), text(&own["reason"]));
        let _ = writeln!(page, "  {WARNING}unreadable{WARNING:#} {dir}: {reason}");
    }
    for file in list(answer, "files") {
        let (name, state) = (text(&file["file"]), text(&file["state"]));
        let tools = usize::try_from(file["tools"].as_u64().unwrap_or_default()).unwrap_or(0);
        match file["reason"].as_str() {
            Some(reason) => {
                let keeps = match state {
                    "stale" => format!(", keeps {}", count(tools, "tool")),
                    _ => String::new(),
                };
                let _ = writeln!(page, "  {WARNING}{state}{WARNING:#} {name}{keeps}: {reason}");
            }
            None if all => {
                // Prompts, resources and other MCP servers are not counted here.
                let holds = if tools == 0 {
                    String::new()
                } else {
                    format!(" {FAINT}{}{FAINT:#}", count(tools, "tool"))
                };
                let _ = writeln!(page, "  {state} {name}{holds}");
            }
            None => {}
        }
    }
    page
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
    page += &files_page(answer, false);
    page += &upstreams_page(answer, false);
    page + &format!("  {} read; generation {}\n", count(files, "file"), answer["generation"])
}

fn release_page(name: &str, answer: &Value) -> String {
    match (answer["released"].as_bool(), answer["owner"].as_str()) {
        (Some(true), Some(owner)) => format!("  `{name}` now belongs to {owner}"),
        (Some(true), None) => format!("  `{name}` is for whoever declares it first"),
        (_, Some(owner)) => format!("  `{name}` was not reserved: it belongs to {owner}"),
        (_, None) => format!("  `{name}` was not reserved"),
    }
}

fn reset_page(name: &str, answer: &Value) -> String {
    match answer["paused"].as_u64().unwrap_or_default() {
        0 => format!("  `{name}` was not paused"),
        1 => format!("  `{name}` was paused for one identity: its calls pass again"),
        several => format!("  `{name}` was paused for {several} identities: its calls pass again"),
    }
}

fn stats_page(answer: &Value) -> String {
    let tools = list(answer, "tools");
    if tools.is_empty() {
        return "  nothing has been called".to_owned();
    }
    let (unit, seconds_of_unit) = unit(&tools);
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header([
        "  TOOL",
        "CALLS",
        "FAILED",
        "REFUSED",
        "DENIED",
        "TIMEOUTS",
        "CACHED",
        "RUNNING",
        &format!("AVG {unit}"),
        &format!("P50 {unit}"),
        &format!("P99 {unit}"),
    ]);
    for tool in &tools {
        let number = |key: &str| tool[key].to_string();
        let time = |key: &str| {
            let seconds = tool[key].as_f64();
            seconds.map_or_else(|| "-".to_owned(), |time| digits(time / seconds_of_unit))
        };
        table.add_row([
            format!("  {}", text(&tool["tool"])),
            number("executions"),
            number("failures"),
            number("refused"),
            number("denied"),
            number("timeouts"),
            number("cache_hits"),
            number("in_flight"),
            time("average_seconds"),
            time("p50_seconds"),
            time("p99_seconds"),
        ]);
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if index > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// The unit of all durations in the table, and its seconds: milliseconds, unless an average is ten seconds or
/// more.
fn unit(tools: &[&Value]) -> (&'static str, f64) {
    let averages = tools.iter().filter_map(|tool| tool["average_seconds"].as_f64());
    if averages.fold(0.0, f64::max) >= 10.0 { ("s", 1.0) } else { ("ms", 1e-3) }
}

/// The number with two digits behind the point.
fn digits(number: f64) -> String {
    // A run is never shown as if it had taken no time at all.
    if number > 0.0 && number < 0.01 { "<0.01".to_owned() } else { format!("{number:.2}") }
}

fn list<'a>(answer: &'a Value, key: &str) -> Vec<&'a Value> {
    answer[key].as_array().map(|items| items.iter().collect()).unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_tools_is_not_said_to_have_none() {
        let file =
            |tools: u64| json!({"files": [{"file": "a.yaml", "state": "live", "tools": tools}]});
        assert_eq!(files_page(&file(0), true), "  live a.yaml\n");
        assert!(files_page(&file(2), true).contains("2 tools"));
    }

    #[test]
    fn each_column_of_durations_has_one_unit() {
        let tool = |name: &str, seconds: f64| {
            json!({
                "tool": name, "executions": 7, "failures": 1, "refused": 2, "denied": 3, "timeouts": 0,
                "cache_hits": 0, "in_flight": 0, "average_seconds": seconds, "p50_seconds": seconds,
                "p99_seconds": null,
            })
        };
        let page = stats_page(&json!({"tools": [tool("fast", 0.000_001_9), tool("slow", 2.5)]}));
        let rows: Vec<Vec<&str>> = page
            .lines()
            .map(|line| line.split("  ").filter(|cell| !cell.is_empty()).collect())
            .collect();
        let trimmed = |row: usize| rows[row].iter().map(|cell| cell.trim()).collect::<Vec<_>>();
        assert_eq!(trimmed(0)[..5], ["TOOL", "CALLS", "FAILED", "REFUSED", "DENIED"]);
        assert_eq!(trimmed(0)[8..], ["AVG ms", "P50 ms", "P99 ms"]);
        assert_eq!(trimmed(1)[..5], ["fast", "7", "1", "2", "3"]);
        assert_eq!(trimmed(1)[8..], ["<0.01", "<0.01", "-"]);
        assert_eq!(trimmed(2)[8..], ["2500.00", "2500.00", "-"]);
        let page = stats_page(&json!({"tools": [tool("slow", 40.0)]}));
        assert!(page.contains("P50 s") && page.contains("40.00"), "{page}");
    }
}
