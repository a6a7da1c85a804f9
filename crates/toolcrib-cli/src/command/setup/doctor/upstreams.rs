//! Checks other MCP servers: which are down, with their last output.

use std::time::Duration;

use serde_json::Value;
use toolcrib::tool::fully_visible;

use super::findings::Findings;
use crate::command::servers::ask_servers;
use crate::options::Options;
use crate::screen::count;
use crate::serving::stop::Interrupted;
use crate::startup::{self, Started};
use crate::{runtime, upstream_wait};

/// Asks the servers that run with this config, and with `connect` the MCP servers themselves.
///
/// Fails if it is interrupted.
pub(super) fn look(
    options: &Options,
    connect: bool,
    findings: &mut Findings,
) -> anyhow::Result<()> {
    let started =
        if connect { startup::look(options, true) } else { startup::without_state(options) };
    // The reason that it cannot start is reported with the tools.
    let Ok(started) = started else { return Ok(()) };
    let declared = started.manifests.files().upstreams().count();
    if declared == 0 {
        return Ok(());
    }
    let looked = runtime::block_on(async {
        if connect {
            own(&started, findings).await
        } else {
            of_servers(&started, declared, findings).await;
            Ok(())
        }
    });
    looked.unwrap_or_else(|error| {
        findings.fail("upstreams", format!("{error:#}"), "their state is unknown");
        Ok(())
    })
}

/// Reports the connections of this command.
async fn own(started: &Started, findings: &mut Findings) -> anyhow::Result<()> {
    if let Err(refused) = upstream_wait::connect(started).await {
        if refused.is::<Interrupted>() {
            return Err(refused);
        }
        findings.fail(
            "upstreams",
            format!("none is started: {refused:#}"),
            "run this as the owner of the state folder",
        );
        return Ok(());
    }
    let records = upstream_wait::records(&started.crib);
    for record in records.as_array().into_iter().flatten() {
        tell(None, record, findings);
    }
    started.crib.shutdown(Duration::ZERO).await;
    Ok(())
}

/// Reports the connections of the running servers.
async fn of_servers(started: &Started, declared: usize, findings: &mut Findings) {
    let statuses = ask_servers::statuses(started).await;
    if statuses.is_empty() {
        findings.note(
            "upstreams",
            format!(
                "{} declared, and no server runs that is connected to them: `toolcrib doctor --connect` \
                 tries each",
                count(declared, "MCP server")
            ),
        );
    }
    for (pid, status) in statuses {
        for record in status["upstreams"].as_array().into_iter().flatten() {
            tell(Some(pid), record, findings);
        }
    }
}

/// Reports one MCP server, according to a server or to this command's connection.
fn tell(server: Option<u32>, record: &Value, findings: &mut Findings) {
    let name = fully_visible(record["name"].as_str().unwrap_or_default()).into_owned();
    let of = server.map(|pid| format!(" of the server {pid}")).unwrap_or_default();
    for unmatched in record["unmatched"].as_array().into_iter().flatten().filter_map(Value::as_str)
    {
        findings.warn(
            "upstreams",
            format!("{name}{of}: {}", fully_visible(unmatched)),
            "correct the name in the manifest, or remove the entry",
        );
    }
    let Some(reason) = record["reason"].as_str() else {
        let state = record["state"].as_str().unwrap_or("unknown");
        let text = format!("{name}{of} is {state}");
        match record["disabled"].as_u64() {
            _ if state != "connected" => findings.warn(
                "upstreams",
                format!("{text}: it has not answered yet"),
                "its tools are unavailable until it is connected",
            ),
            None | Some(0) => findings.good("upstreams", text),
            Some(disabled) => findings.warn(
                "upstreams",
                format!(
                    "{text}; {disabled} of its tools cannot be called, because they were refused or their \
                     definitions changed since they were first seen"
                ),
                "`toolcrib list --all --connect` says why; `toolcrib accept NAME` shows a changed definition",
            ),
        }
        return;
    };
    // The most informative line of its output.
    let detail = record["detail"].as_str().map(|line| format!(" ({})", fully_visible(line)));
    let text = format!("{name}{of} is down: {reason}{}", detail.unwrap_or_default());
    findings.warn("upstreams", text, "its tools are unavailable until it is connected");
    let said = record["said"].as_array().into_iter().flatten().filter_map(Value::as_str);
    findings.lines(said.map(|line| fully_visible(line).into_owned()).collect());
}
