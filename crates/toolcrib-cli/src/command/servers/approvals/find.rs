//! Finds a waiting call in the running servers.

use serde_json::{Value, json};
use toolcrib::servers::{OwnerError, RunningServer};
use toolcrib::tool::fully_visible;

use super::ApprovalError;
use super::page::{escaped, text};
use crate::{runtime, screen};

/// The HTTP status for an unknown id, or a call that was already decided.
const NOT_FOUND: u16 = 404;
/// The HTTP status for a call that this server cannot decide on in its current state; another one
/// may.
const CONFLICT: u16 = 409;
/// The length of an id.
const ID_DIGITS: usize = 32;

/// The whole id of a waiting call, given a unique prefix. An unknown prefix is reported as unknown,
/// an ambiguous one with its matches.
pub(super) fn whole_id(
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

/// The answer of the first server that knows the call and can perform the operation. If there is
/// none, the refusal is returned.
pub(super) fn first<'s>(
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

/// The calls that wait in these servers, without duplicates, and why some servers could not be
/// asked. Servers that share a state folder have the same calls.
pub(super) fn waiting(servers: &[RunningServer]) -> anyhow::Result<(Vec<Value>, Vec<String>)> {
    let (mut waiting, mut problems) = (Vec::<Value>::new(), Vec::new());
    for server in servers {
        match runtime::block_on(server.client.get("/v1/approvals"))? {
            Ok(answer) => {
                for call in answer["approvals"].as_array().into_iter().flatten() {
                    match waiting.iter_mut().find(|known| known["id"] == call["id"]) {
                        None => waiting.push(of_server(server, call.clone())),
                        // This server can go on with it, and the other one cannot.
                        Some(known)
                            if call["obstacle"].is_null() && !known["obstacle"].is_null() =>
                        {
                            *known = of_server(server, call.clone());
                        }
                        Some(_) => {}
                    }
                }
            }
            Err(error) => problems.push(format!("server {}: {error}", server.pid)),
        }
    }
    Ok((waiting, problems))
}

/// Adds which server has told of a call.
pub(super) fn of_server(server: &RunningServer, mut call: Value) -> Value {
    call["pid"] = json!(server.pid);
    call
}

fn unknown(id: &str) -> ApprovalError {
    let message = format!(
        "no call with the id {} is waiting: it was decided, has expired or never waited; `toolcrib \
         approvals` lists those that wait",
        fully_visible(id)
    );
    ApprovalError { kind: "not_found".to_owned(), message }
}
