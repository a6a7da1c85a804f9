//! Finds the servers that run with a config, and sends requests to each of them.

use std::io::ErrorKind;

use anyhow::{anyhow, bail};
use serde_json::{Value, json};
use toolcrib::servers::{
    OwnerClient, OwnerError, RunningServer, SocketFolder, path_segment, running_servers,
};

use crate::options::{JsonOutput, Options};
use crate::screen::{self, STRONG};
use crate::startup::{self, Started};
use crate::{Exit, runtime};

/// The help text of all commands that ask servers.
pub(in crate::command) const WHICH: &str = "Servers are found through their private sockets, which are in the state folder (`state.dir`) or, \
     with `state.dir: none`, in $XDG_RUNTIME_DIR/toolcrib. If a server with another state folder is not \
     found, name its folder with --set state.dir=FOLDER. The command works even if the config is broken.\n\nExit code 1: no \
     server runs, or one refused the request.";

/// What running servers report about a name. Servers that cannot be reached are left out.
pub(in crate::command) async fn why(started: &Started, name: &str) -> Vec<(u32, Value)> {
    answers(started, &format!("/v1/names/{}", path_segment(name))).await
}

/// The status of the running servers. Servers that cannot be reached are left out.
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

/// Sends a request to every running server and prints each answer.
pub(super) fn each(
    options: &Options,
    output: JsonOutput,
    ask: &impl AsyncFn(&OwnerClient) -> Result<Value, OwnerError>,
    page: impl Fn(&Value) -> String,
) -> anyhow::Result<Exit> {
    let (place, servers) = place_and_servers(options)?;
    each_of(&place, &servers, output, ask, page)
}

/// Sends a request to each of these servers and prints each answer.
pub(super) fn each_of(
    place: &SocketFolder,
    servers: &[RunningServer],
    output: JsonOutput,
    ask: &impl AsyncFn(&OwnerClient) -> Result<Value, OwnerError>,
    page: impl Fn(&Value) -> String,
) -> anyhow::Result<Exit> {
    let mut records = Vec::new();
    let mut has_failed = servers.is_empty();
    for server in servers {
        match runtime::block_on(ask(&server.client))? {
            Ok(answer) => {
                if output.json {
                    let mut record = answer;
                    record["ok"] = json!(true);
                    record["pid"] = json!(server.pid);
                    records.push(record);
                } else {
                    screen::out(format!("{STRONG}server {}{STRONG:#}", server.pid))?;
                    screen::out(page(&answer).trim_end())?;
                }
            }
            Err(error) => {
                has_failed = true;
                if output.json {
                    let error = error.to_string();
                    records.push(json!({"pid": server.pid, "ok": false, "error": error}));
                } else {
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
            "no server runs with this config: there is no server socket in {}. For a server with another \
             state folder, name that: `--set state.dir=FOLDER`",
            searched.join(" or ")
        ));
    }
    Ok(if has_failed { Exit::Failure } else { Exit::Success })
}

/// The servers that run with this config.
pub(in crate::command) fn servers(options: &Options) -> anyhow::Result<Vec<RunningServer>> {
    let (_, servers) = place_and_servers(options)?;
    Ok(servers)
}

/// Where servers of this config are searched for, and those that were found.
pub(super) fn place_and_servers(
    options: &Options,
) -> anyhow::Result<(SocketFolder, Vec<RunningServer>)> {
    let place = match startup::control(options)? {
        Ok(place) => place,
        Err(why) => bail!(
            "running servers cannot be found: {why}. Name a `state.dir` for them and this command (a \
             server that cannot be found reads its config and manifests again on SIGHUP)"
        ),
    };
    let servers = running_servers(&place).map_err(|error| {
        let hint = match error.kind() {
            ErrorKind::PermissionDenied => ": only the user that runs the servers can reach them",
            _ => "",
        };
        anyhow!("looking for servers in {}: {error}{hint}", place.path().display())
    })?;
    Ok((place, servers))
}

/// The elements of a list in an answer.
pub(super) fn list<'a>(answer: &'a Value, key: &str) -> Vec<&'a Value> {
    answer[key].as_array().map(|items| items.iter().collect()).unwrap_or_default()
}

/// A string in an answer.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
