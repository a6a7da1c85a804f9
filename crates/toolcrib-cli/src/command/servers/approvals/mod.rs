//! `toolcrib approvals`: calls in running servers that wait for a person's approval.

mod find;
mod page;

use clap::builder::UnknownArgumentValueParser;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use toolcrib::servers::{RunningServer, path_segment};
use toolcrib::tool::{canonical_json, fully_visible};

use self::find::{first, of_server, waiting, whole_id};
use self::page::{asker, escaped, page, remaining, text, visible_json};
use super::ask_servers::{self, WHICH};
use crate::options::{JsonOutput, Options};
use crate::screen::columns::Columns;
use crate::screen::{self, FAINT, STRONG};
use crate::{Exit, arguments};

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
    // `--json` holds wherever it stands: `approvals --json show ID`, `approvals show ID --json`.
    /// Answer as JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum ApprovalsCommand {
    /// List the waiting calls, oldest first (the default)
    List,
    /// Show one call: arguments, injected values, the rule that asked, and what the call would do
    Show(ShowOptions),
    /// Approve a call, which then runs
    Approve(ApproveOptions),
    /// Deny a call
    Deny(DenyOptions),
}

#[derive(Debug, Args)]
struct ShowOptions {
    /// The id from `toolcrib approvals`, or a unique prefix of it
    id: String,
}

#[derive(Debug, Args)]
struct ApproveOptions {
    /// The id from `toolcrib approvals`, or a prefix of at least 12 characters
    id: String,
    /// Run the call with these arguments instead: a JSON object, checked like any other arguments
    #[arg(long, value_name = "JSON", value_parser = arguments::object)]
    arguments: Option<Value>,
}

#[derive(Debug, Args)]
struct DenyOptions {
    /// The id from `toolcrib approvals`, or a prefix of at least 12 characters
    id: String,
    /// The reason, for the model that made the call
    #[arg(long, value_name = "TEXT")]
    message: Option<String>,
    /// There is no such option: the error names `--message`
    #[arg(long, hide = true, value_parser = UnknownArgumentValueParser::suggest_arg("--message"))]
    reason: Option<String>,
}

pub(in crate::command) fn run(options: &Options, own: &ApprovalsOptions) -> anyhow::Result<Exit> {
    let servers = ask_servers::servers(options)?;
    let output = JsonOutput { json: own.json };
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
        None | Some(ApprovalsCommand::List) => list(&servers, output),
        Some(ApprovalsCommand::Show(own)) => show(&servers, own, output),
        Some(ApprovalsCommand::Approve(own)) => {
            let mut decision = json!({"decision": "approve"});
            if let Some(arguments) = &own.arguments {
                decision["arguments"] = arguments.clone();
            }
            decide(&servers, &own.id, &decision, output)
        }
        Some(ApprovalsCommand::Deny(own)) => {
            let mut decision = json!({"decision": "deny"});
            if let Some(message) = &own.message {
                decision["message"] = json!(message);
            }
            decide(&servers, &own.id, &decision, output)
        }
    }
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
        let is_terminal = screen::terminal_width().is_some();
        let columns = Columns::new(["ID", "TOOL", "ASKED BY", "EXPIRES IN", "ARGUMENTS"]);
        screen::out(columns.rows(waiting.iter().map(|call| {
            let arguments = visible_json(&canonical_json(&call["arguments"]));
            let id = escaped(&call["id"]);
            [
                // On a terminal, as many digits as decide, so that there is room for the rest.
                if is_terminal { id.chars().take(DECIDED_DIGITS).collect() } else { id },
                escaped(&call["tool"]),
                asker(call),
                remaining(&call["expires_at"]),
                screen::shortened(&arguments, ARGUMENTS_SHOWN).into_owned(),
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

fn show(servers: &[RunningServer], own: &ShowOptions, output: JsonOutput) -> anyhow::Result<Exit> {
    let id = match whole_id(servers, &own.id)? {
        Ok(id) => id,
        Err(error) => return error.report(output),
    };
    let path = format!("/v1/approvals/{}", path_segment(&id));
    let ask = async |server: &RunningServer| server.client.get(&path).await;
    let (server, call) = match first(servers, &id, &ask)? {
        Ok(found) => found,
        Err(error) => return error.report(output),
    };
    let call = of_server(server, call);
    if output.json {
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
