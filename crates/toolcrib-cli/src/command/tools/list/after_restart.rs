//! Names that would have another owner after a restart of the running servers.

use serde_json::{Value, json};
use toolcrib::tool::fully_visible;

use crate::screen::{STRONG, WARNING};

/// One name in one running server.
struct Divergence {
    pid: u32,
    kind: String,
    name: String,
    /// The current owner in that server.
    live: Option<String>,
    /// The owner after a restart.
    fresh: String,
}

/// What a restart of the running servers would change. This listing shows the state after a
/// restart.
pub(super) struct AfterRestart(Vec<Divergence>);

impl AfterRestart {
    /// Reads the answers to `GET /v1/status`.
    pub(super) fn of(statuses: &[(u32, Value)]) -> Self {
        let mut found = Vec::new();
        for (pid, status) in statuses {
            for own in status["after_restart"].as_array().into_iter().flatten() {
                let text = |key: &str| own[key].as_str().map(str::to_owned);
                if let (Some(name), Some(fresh)) = (text("name"), text("fresh")) {
                    let kind = text("kind").unwrap_or_else(|| "tool".to_owned());
                    found.push(Divergence { pid: *pid, kind, name, live: text("live"), fresh });
                }
            }
        }
        Self(found)
    }

    /// Whether a running server has another tool with this name than the listed one.
    pub(super) fn concerns(&self, tool: &str) -> bool {
        self.0.iter().any(|own| own.kind == "tool" && own.name == tool)
    }

    /// One line for each name and server.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|Divergence { pid, kind, name, live, fresh }| {
            let kind = if kind == "tool" { String::new() } else { format!("{kind} ") };
            let live = match live {
                Some(live) => format!("has the one of {}", fully_visible(live)),
                None => "has none".to_owned(),
            };
            format!(
                "{WARNING}after a restart{WARNING:#} {kind}{STRONG}{}{STRONG:#}: the running server {pid} \
                 {live}; a restart would give the name to {}",
                fully_visible(name),
                fully_visible(fresh)
            )
        })
    }

    /// The changes as JSON.
    pub(super) fn records(&self) -> Value {
        self.0
            .iter()
            .map(|Divergence { pid, kind, name, live, fresh }| {
                json!({"pid": pid, "kind": kind, "name": name, "live": live, "fresh": fresh})
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_restart_would_change_are_listed_per_server() {
        let status = json!({"after_restart": [
            {"kind": "tool", "name": "dup", "live": "manifest b.yaml", "fresh": "manifest a.yaml"},
            {"kind": "prompt", "name": "p", "live": null, "fresh": "manifest a.yaml"},
        ]});
        let after = AfterRestart::of(&[(7, status), (8, json!({}))]);
        assert!(after.concerns("dup") && !after.concerns("p"));
        let lines: Vec<_> =
            after.lines().map(|line| anstream::adapter::strip_str(&line).to_string()).collect();
        assert_eq!(
            lines,
            [
                "after a restart dup: the running server 7 has the one of manifest b.yaml; a restart \
                 would give the name to manifest a.yaml",
                "after a restart prompt p: the running server 7 has none; a restart would give the name \
                 to manifest a.yaml",
            ]
        );
        assert_eq!(after.records()[0]["pid"], 7);
    }
}
