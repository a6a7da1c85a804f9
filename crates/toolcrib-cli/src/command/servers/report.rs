//! Formats a server's report on its config, its files and its upstream MCP servers.

use std::fmt::Write as _;

use serde_json::Value;
use toolcrib::tool::fully_visible;

use super::ask_servers::{list, text};
use crate::screen::{FAINT, WARNING, count};

/// The result of reloading the config.
pub(super) fn config_page(config: &Value) -> String {
    let mut page = String::new();
    let keys = |key: &str| list(config, key).into_iter().map(text).collect::<Vec<_>>().join(", ");
    if let Some(problem) = config["problem"].as_str() {
        let _ = writeln!(
            page,
            "  {WARNING}config refused{WARNING:#}, the previous one stays in effect: {problem}"
        );
    }
    for (key, says) in [("added_clients", "added"), ("removed_clients", "removed")] {
        for name in list(config, key) {
            let _ = writeln!(page, "  config: client {} {says}", text(name));
        }
    }
    let at = |key: &Value| match config["restart_origins"][text(key)].as_str() {
        Some(origin) => format!("{} ({})", text(key), fully_visible(origin)),
        None => text(key).to_owned(),
    };
    let needs_restart: Vec<_> = list(config, "needs_restart").into_iter().map(at).collect();
    if !needs_restart.is_empty() {
        let keys = needs_restart.join(", ");
        let _ = writeln!(page, "  config: changed, and needs a restart: {keys}");
    }
    for (key, says) in [
        ("changed", "in effect now"),
        ("ended_clients", "ended requests that these clients may no longer make"),
    ] {
        let keys = keys(key);
        if !keys.is_empty() {
            let _ = writeln!(page, "  config: {says}: {keys}");
        }
    }
    page
}

/// The upstream MCP servers; those that are connected and unchanged only if `all` is set.
pub(super) fn upstreams_page(answer: &Value, all: bool) -> String {
    let mut page = String::new();
    for own in list(answer, "upstreams") {
        let change = match own["change"].as_str() {
            Some("added") => "new, ",
            Some("reconnected") => "reconnected, ",
            Some("restarted") => {
                let name = text(&own["name"]);
                let _ =
                    writeln!(page, "  upstream {name}: being restarted, its program was changed");
                continue;
            }
            Some("updated") => "with other settings, ",
            Some(_) => {
                let _ = writeln!(page, "  upstream {}: gone", text(&own["name"]));
                continue;
            }
            None => "",
        };
        let state = text(&own["state"]);
        let is_fine = state == "connected" && list(own, "unmatched").is_empty();
        if is_fine && change.is_empty() && !all {
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
        for unmatched in list(own, "unmatched") {
            let _ = writeln!(
                page,
                "    {WARNING}unmatched{WARNING:#} {}",
                fully_visible(text(unmatched))
            );
        }
    }
    page
}

/// The files; live ones only if `all` is set.
pub(super) fn files_page(answer: &Value, all: bool) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_file_without_tools_has_no_tool_count() {
        let file =
            |tools: u64| json!({"files": [{"file": "a.yaml", "state": "live", "tools": tools}]});
        assert_eq!(files_page(&file(0), true), "  live a.yaml\n");
        assert!(files_page(&file(2), true).contains("2 tools"));
    }
}
