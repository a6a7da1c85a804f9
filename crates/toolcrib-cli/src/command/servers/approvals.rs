//! `toolcrib approvals`: calls in running servers that wait for a person's approval.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use toolcrib::servers::{OwnerError, RunningServer, path_segment};
use toolcrib::tool::units::HumanDuration;
use toolcrib::tool::{canonical_json, fully_visible, is_unseen};

use super::ask_servers::{self, WHICH};
use crate::options::{JsonOutput, Options};
use crate::screen::columns::Columns;
use crate::screen::{self, FAINT, STRONG};
use crate::{Exit, runtime};

/// The HTTP status for an unknown id, or a call that was already decided.
const NOT_FOUND: u16 = 404;
/// The HTTP status for a call that this server cannot decide on in its current state; another one
/// may.
const CONFLICT: u16 = 409;
/// The length of an id.
const ID_DIGITS: usize = 32;
/// The minimum length of an id prefix that decides on a call. Ids are random and callers learn
/// theirs: with 48 bits nobody can make enough calls to get an id with a given prefix.
const DECIDED_DIGITS: usize = 12;
/// The number of characters of the arguments in a listing.
const ARGUMENTS_SHOWN: usize = 60;

#[derive(Debug, Args)]
#[command(after_help = format!("Examples:
  toolcrib approvals
  toolcrib approvals show 7f3a
  toolcrib approvals approve 7f3a09c2d41e
  toolcrib approvals approve 7f3a09c2d41e --arguments '{{\"path\": \"notes.txt\"}}'
  toolcrib approvals deny 7f3a09c2d41e --message 'use the staging host'

An approved call runs with its caller's rights. Secrets in arguments are masked.\n\n{WHICH} `show`, \
`approve` and `deny` also exit with 1 if no call with the id is waiting, and `approve` also if the call was \
refused or has failed: its rule, its tool or its client may have changed."))]
pub(crate) struct ApprovalsOptions {
    #[command(subcommand)]
    command: Option<ApprovalsCommand>,
    #[command(flatten)]
    output: JsonOutput,
}

#[derive(Debug, Subcommand)]
enum ApprovalsCommand {
    /// List the waiting calls, oldest first (the default)
    List(ListOptions),
    /// Show one call: arguments, injected values, the rule that asked, and what the call would do
    Show(ShowOptions),
    /// Approve a call, which then runs
    Approve(ApproveOptions),
    /// Deny a call
    Deny(DenyOptions),
}

#[derive(Debug, Args)]
struct ListOptions {
    #[command(flatten)]
    output: JsonOutput,
}

#[derive(Debug, Args)]
struct ShowOptions {
    /// The id from `toolcrib approvals`, or a unique prefix of it
    id: String,
    #[command(flatten)]
    output: JsonOutput,
}

#[derive(Debug, Args)]
struct ApproveOptions {
    /// The id from `toolcrib approvals`, or a prefix of at least 12 characters
    id: String,
    /// Run the call with these arguments instead: a JSON object, checked like any other arguments
    #[arg(long, value_name = "JSON", value_parser = object)]
    arguments: Option<Value>,
    #[command(flatten)]
    output: JsonOutput,
}

#[derive(Debug, Args)]
struct DenyOptions {
    /// The id from `toolcrib approvals`, or a prefix of at least 12 characters
    id: String,
    /// The reason, for the model that made the call
    #[arg(long, value_name = "TEXT")]
    message: Option<String>,
    #[command(flatten)]
    output: JsonOutput,
}

fn object(text: &str) -> Result<Value, String> {
    match serde_json::from_str(text) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err("the arguments of a call are a JSON object".to_owned()),
        Err(error) => Err(format!("this is not JSON: {error}")),
    }
}

pub(in crate::command) fn run(options: &Options, own: &ApprovalsOptions) -> anyhow::Result<Exit> {
    let servers = ask_servers::servers(options)?;
    let output = match &own.command {
        None => own.output,
        Some(ApprovalsCommand::List(list)) => list.output,
        Some(ApprovalsCommand::Show(show)) => show.output,
        Some(ApprovalsCommand::Approve(approve)) => approve.output,
        Some(ApprovalsCommand::Deny(deny)) => deny.output,
    };
    if servers.is_empty() {
        if output.json {
            screen::json(&json!({"servers": [], "approvals": []}))?;
        }
        screen::note(
            "no server runs with this config. Waiting calls are kept in `state.dir`: start a server (`toolcrib \
             serve`), then list and decide them",
        );
        return Ok(Exit::Failure);
    }
    match &own.command {
        None | Some(ApprovalsCommand::List(_)) => list(&servers, output),
        Some(ApprovalsCommand::Show(own)) => show(&servers, own),
        Some(ApprovalsCommand::Approve(own)) => {
            let mut decision = json!({"decision": "approve"});
            if let Some(arguments) = &own.arguments {
                decision["arguments"] = arguments.clone();
            }
            decide(&servers, &own.id, &decision, own.output)
        }
        Some(ApprovalsCommand::Deny(own)) => {
            let mut decision = json!({"decision": "deny"});
            if let Some(message) = &own.message {
                decision["message"] = json!(message);
            }
            decide(&servers, &own.id, &decision, own.output)
        }
    }
}

/// The calls that wait in these servers, without duplicates, and why some servers could not be
/// asked. Servers that share a state folder have the same calls.
fn waiting(servers: &[RunningServer]) -> anyhow::Result<(Vec<Value>, Vec<String>)> {
    let (mut waiting, mut problems) = (Vec::<Value>::new(), Vec::new());
    for server in servers {
        match runtime::block_on(server.client.get("/v1/approvals"))? {
            Ok(answer) => {
                for call in answer["approvals"].as_array().into_iter().flatten() {
                    if !waiting.iter().any(|known| known["id"] == call["id"]) {
                        waiting.push(of_server(server, call.clone()));
                    }
                }
            }
            Err(error) => problems.push(format!("server {}: {error}", server.pid)),
        }
    }
    Ok((waiting, problems))
}

fn list(servers: &[RunningServer], output: JsonOutput) -> anyhow::Result<Exit> {
    let (waiting, problems) = waiting(servers)?;
    let exit = if problems.is_empty() { Exit::Success } else { Exit::Failure };
    for problem in problems {
        screen::note(problem);
    }
    if output.json {
        let servers: Vec<_> = servers.iter().map(|server| server.pid).collect();
        screen::json(&json!({"servers": servers, "approvals": waiting}))?;
    } else if waiting.is_empty() {
        screen::note("no call waits for approval");
    } else {
        let columns = Columns::new(["ID", "TOOL", "ASKED BY", "EXPIRES IN", "ARGUMENTS"]);
        screen::out(columns.rows(waiting.iter().map(|call| {
            [
                escaped(&call["id"]),
                escaped(&call["tool"]),
                asker(call),
                remaining(&call["expires_at"]),
                shortened(&visible_json(&canonical_json(&call["arguments"]))),
            ]
        })))?;
        for call in &waiting {
            if let Some(obstacle) = call["obstacle"].as_str() {
                let id: String = escaped(&call["id"]).chars().take(DECIDED_DIGITS).collect();
                let obstacle = fully_visible(obstacle);
                screen::note(format!("{id} would be refused even if it were approved: {obstacle}"));
            }
        }
        screen::note(format!(
            "{FAINT}decide with `toolcrib approvals approve ID` or `deny ID`; the first 12 characters of an id \
             are enough{FAINT:#}"
        ));
    }
    Ok(exit)
}

fn of_server(server: &RunningServer, mut call: Value) -> Value {
    call["pid"] = json!(server.pid);
    call
}

/// JSON for a terminal: characters that move the cursor, change the text direction or are invisible
/// are written as JSON escapes, so that different values look different.
fn visible_json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for character in json.chars() {
        // JSON has escaped these inside strings; here they are white space.
        if matches!(character, '\n' | ' ') || !is_unseen(character) {
            shown.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(shown, "\\u{unit:04x}");
            }
        }
    }
    shown
}

/// A short text, escaped for a terminal.
fn escaped(value: &Value) -> String {
    fully_visible(text(value)).into_owned()
}

fn show(servers: &[RunningServer], own: &ShowOptions) -> anyhow::Result<Exit> {
    let id = match whole_id(servers, &own.id)? {
        Ok(id) => id,
        Err(error) => return error.report(own.output),
    };
    let path = format!("/v1/approvals/{}", path_segment(&id));
    let ask = async |server: &RunningServer| server.client.get(&path).await;
    let (server, call) = match first(servers, &id, &ask)? {
        Ok(found) => found,
        Err(error) => return error.report(own.output),
    };
    let call = of_server(server, call);
    if own.output.json {
        screen::json(&call)?;
    } else {
        screen::out(page(&call).trim_end())?;
    }
    Ok(Exit::Success)
}

fn decide(
    servers: &[RunningServer],
    given: &str,
    decision: &Value,
    output: JsonOutput,
) -> anyhow::Result<Exit> {
    if given.len() < DECIDED_DIGITS {
        // Otherwise a client could make calls until one has a short prefix, and get that one
        // approved.
        let message = format!(
            "`{}` is too short to decide on a call: give at least {DECIDED_DIGITS} characters of the id",
            fully_visible(given)
        );
        return ApprovalError { kind: "too_short".to_owned(), message }.report(output);
    }
    let id = match whole_id(servers, given)? {
        Ok(id) => id,
        Err(error) => return error.report(output),
    };
    let path = format!("/v1/approvals/{}", path_segment(&id));
    let post = async |server: &RunningServer| server.client.post(&path, Some(decision)).await;
    let (server, answer) = match first(servers, &id, &post)? {
        Ok(answered) => answered,
        Err(error) => return error.report(output),
    };
    let approves = decision["decision"] == "approve";
    // A denied call is refused, as intended.
    let is_bad = |outcome: &Value| matches!(text(&outcome["status"]), "failed" | "refused");
    let exit = if approves && is_bad(&answer["outcome"]) { Exit::Failure } else { Exit::Success };
    if output.json {
        screen::json(&of_server(server, answer))?;
    } else if approves {
        let said = approved(&answer["outcome"]);
        screen::out(format!("approved {STRONG}{id}{STRONG:#}{said}"))?;
    } else {
        screen::out(format!("denied {STRONG}{id}{STRONG:#}"))?;
    }
    Ok(exit)
}

/// The outcome of an approved call, as the rest of a sentence.
fn approved(outcome: &Value) -> String {
    let why = format!("{} ({})", escaped(&outcome["message"]), escaped(&outcome["kind"]));
    match text(&outcome["status"]) {
        "succeeded" => ": the call succeeded".to_owned(),
        "refused" => format!(", but the call was refused: {why}"),
        "failed" => format!(", and the call failed: {why}"),
        "waiting" => ": the call waits again, for something else".to_owned(),
        _ => ": the call is still running".to_owned(),
    }
}

/// Why an operation on a call was not possible.
struct ApprovalError {
    /// The stable error kind.
    kind: String,
    message: String,
}

impl ApprovalError {
    /// Prints the error, also as JSON if requested.
    fn report(self, output: JsonOutput) -> anyhow::Result<Exit> {
        let Self { kind, message } = self;
        if output.json {
            screen::json(&json!({"error": {"kind": kind, "message": message}}))?;
        } else {
            screen::note(message);
        }
        Ok(Exit::Failure)
    }
}

/// The whole id of a waiting call, given a unique prefix. An unknown prefix is reported as unknown,
/// an ambiguous one with its matches.
fn whole_id(
    servers: &[RunningServer],
    given: &str,
) -> anyhow::Result<Result<String, ApprovalError>> {
    // A call that was just decided no longer waits: the server reports that.
    if given.len() >= ID_DIGITS {
        return Ok(Ok(given.to_owned()));
    }
    let (waiting, problems) = waiting(servers)?;
    for problem in problems {
        screen::note(problem);
    }
    let fits =
        waiting.iter().filter(|call| !given.is_empty() && text(&call["id"]).starts_with(given));
    let fits: Vec<_> = fits.collect();
    match fits.as_slice() {
        [] => Ok(Err(unknown(given))),
        [call] => Ok(Ok(text(&call["id"]).to_owned())),
        several => {
            let ids = several
                .iter()
                .map(|call| format!("\n  {}  {}", escaped(&call["id"]), escaped(&call["tool"])));
            let message = format!(
                "{} waiting calls have an id that starts with {given}; give more of the id:{}",
                several.len(),
                ids.collect::<String>()
            );
            Ok(Err(ApprovalError { kind: "ambiguous".to_owned(), message }))
        }
    }
}

fn unknown(id: &str) -> ApprovalError {
    let message = format!(
        "no call with the id {} is waiting: it was decided, has expired or never waited; `toolcrib \
         approvals` lists those that wait",
        fully_visible(id)
    );
    ApprovalError { kind: "not_found".to_owned(), message }
}

/// The answer of the first server that knows the call and can perform the operation. If there is
/// none, the refusal is returned.
fn first<'s>(
    servers: &'s [RunningServer],
    id: &str,
    ask: &impl AsyncFn(&RunningServer) -> Result<Value, OwnerError>,
) -> anyhow::Result<Result<(&'s RunningServer, Value), ApprovalError>> {
    let mut refusal = None;
    let refused = |server: &RunningServer, error: &OwnerError| ApprovalError {
        kind: error.kind().unwrap_or("unreachable").to_owned(),
        message: format!("server {}: {error}", server.pid),
    };
    for server in servers {
        match runtime::block_on(ask(server))? {
            Ok(answer) => return Ok(Ok((server, answer))),
            Err(error) if error.kind() == Some("not_found") => {}
            // A call that waits in another server has to be decided there.
            Err(error) if [Some(NOT_FOUND), Some(CONFLICT)].contains(&error.status()) => {
                refusal.get_or_insert(refused(server, &error));
            }
            Err(error) => return Ok(Err(refused(server, &error))),
        }
    }
    Ok(Err(refusal.unwrap_or_else(|| unknown(id))))
}

/// One call with everything that a person needs for the decision.
fn page(call: &Value) -> String {
    let mut page = format!(
        "{STRONG}{}{STRONG:#} {FAINT}{}{FAINT:#}\n",
        escaped(&call["tool"]),
        escaped(&call["id"])
    );
    let mut line = |head: &str, value: &str| {
        if !value.is_empty() {
            let _ = writeln!(page, "  {head:<10} {value}");
        }
    };
    line("asked by", &asker(call));
    line("session", &escaped(&call["session"]));
    line("rule", &escaped(&call["rule"]));
    line("reason", &escaped(&call["reason"]));
    line("waits", &remaining(&call["expires_at"]));
    line("server", &call["pid"].to_string());
    line("digest", &escaped(&call["digest"]));
    for (key, head) in
        [("arguments", "arguments"), ("injected", "injected values"), ("plan", "plan")]
    {
        let shown = match &call[key] {
            Value::Null => continue,
            Value::Object(entries) if entries.is_empty() && key == "injected" => continue,
            Value::String(text) if text.lines().all(|line| fully_visible(line) == line) => {
                text.clone()
            }
            value => visible_json(&serde_json::to_string_pretty(value).unwrap_or_default()),
        };
        let _ = writeln!(page, "  {head}\n{}", indented(&shown));
    }
    page
}

fn indented(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(|line| format!("    {line}")).collect();
    lines.join("\n")
}

/// Who made the call: user, tenant and client, as far as known.
fn asker(call: &Value) -> String {
    let asker = &call["asker"];
    let known = ["user", "tenant", "client"].into_iter().filter(|key| !asker[*key].is_null());
    let said = known.map(|key| {
        let value = &asker[key];
        let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("{key} {}", fully_visible(&shown))
    });
    let said: Vec<_> = said.collect();
    if said.is_empty() { "the host".to_owned() } else { said.join(", ") }
}

/// How long a call will still wait, given its expiry.
fn remaining(expires_at: &Value) -> String {
    let end = text(expires_at);
    let Some(seconds) = unix_seconds(end) else { return end.to_owned() };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    match Duration::from_secs(seconds).checked_sub(now) {
        None => "expired".to_owned(),
        Some(left) => HumanDuration(Some(Duration::from_secs(left.as_secs()))).to_string(),
    }
}

/// Converts a server's RFC 3339 time in UTC to seconds since 1970.
fn unix_seconds(time: &str) -> Option<u64> {
    let (date, clock) = time.strip_suffix('Z')?.split_once('T')?;
    let part = |text: &str| text.parse::<u64>().ok();
    let mut date = date.splitn(3, '-').map(part);
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let mut clock = clock.split('.').next()?.splitn(3, ':').map(part);
    let (hours, minutes, seconds) = (clock.next()??, clock.next()??, clock.next()??);
    // Counting years from March puts the leap day at the end.
    let (year, month) =
        if month < 3 { (year.checked_sub(1)?, month + 9) } else { (year, month - 3) };
    let day_of_year = (153 * month + 2) / 5 + day.checked_sub(1)?;
    let days =
        (year * 365 + year / 4 + year / 400 + day_of_year).checked_sub(year / 100 + 719_468)?;
    Some(days * 86_400 + hours * 3600 + minutes * 60 + seconds)
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= ARGUMENTS_SHOWN {
        return text.to_owned();
    }
    text.chars().take(ARGUMENTS_SHOWN - 1).chain(['…']).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_caller_sent_hides_on_the_screen_of_an_approver() {
        let call =
            json!({"tool": "bash", "arguments": {"command": "a\u{202e}b\u{9b}2J\u{2028}c\nd"}});
        let page = page(&call);
        for unseen in ['\u{202e}', '\u{9b}', '\u{2028}'] {
            assert!(!page.contains(unseen), "{page:?}");
        }
        assert!(page.contains(r"a\u202eb\u009b2J\u2028c\nd"), "{page}");
    }

    #[test]
    fn two_commands_that_differ_never_look_the_same() {
        let shown = |command: &str| {
            page(&json!({"tool": "bash", "arguments": {"command": command}, "plan": command}))
        };
        for (one, other) in [
            ("echo hi #\nrm x", r"echo hi #\nrm x"),
            ("a\u{202e}b", r"a\u{202e}b"),
            ("a\u{202e}b", r"a\u202eb"),
            ("a\u{e0041}b", r"a\udb40\udc41b"),
        ] {
            assert_ne!(shown(one), shown(other));
        }
    }

    #[test]
    fn the_page_of_a_waiting_call_is_complete() {
        let call = json!({
            "id": "7f3a", "tool": "remove", "pid": 7,
            "arguments": {"path": "a.txt", "token": "[masked]"}, "injected": {"user": "ada"},
            "rule": "policy.rules[0]", "reason": "the tool may destroy something",
            "plan": {"argv": ["rm", "a.txt"]},
            "asker": {"user": "ada", "tenant": "acme", "client": null},
            "session": null, "expires_at": "1970-01-01T00:00:00Z",
        });
        let page = page(&call);
        for said in [
            "7f3a",
            "user ada, tenant acme",
            "policy.rules[0]",
            "may destroy",
            "expired",
            "\"token\": \"[masked]\"",
            "\"user\": \"ada\"",
            "\"rm\"",
        ] {
            assert!(page.contains(said), "{said}: {page}");
        }
        assert!(!page.contains("session"), "{page}");
    }

    #[test]
    fn times_are_read_as_servers_write_them() {
        for (time, seconds) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2024-02-29T23:59:59.250Z", Some(1_709_251_199)),
            ("2026-11-22T16:10:00Z", Some(1_795_363_800)),
            ("tomorrow", None),
            ("0000-00-00T00:00:00Z", None),
        ] {
            assert_eq!(unix_seconds(time), seconds, "{time}");
        }
    }

    #[test]
    fn arguments_are_an_object() {
        assert!(object(r#"{"a": 1}"#).is_ok());
        assert!(object("[]").unwrap_err().contains("object"));
        assert!(object("{").unwrap_err().contains("not JSON"));
    }
}
