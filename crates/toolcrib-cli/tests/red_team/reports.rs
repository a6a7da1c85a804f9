//! What a server tells its clients about an invalid config: none of its secrets. Users of the command line may read the
//! file themselves.

use std::fs::{self, File};

use serde_json::json;

use crate::dimensions::Row;
use crate::edits::reload;
use crate::folder::Words;
use crate::surfaces::http::Answer;
use crate::world::World;

/// Reports that clients may request.
const REPORTS: [&str; 8] = [
    "/v1/status",
    "/health",
    "/ready",
    "/metrics",
    "/v1/stats",
    "/v1/audit?limit=20",
    "/v1/tools",
    "/v1/runs",
];

/// The operator makes each mistake and reloads; requests every report and returns all answers.
pub(crate) fn attack(world: &mut World, row: &Row) -> String {
    let config = world.folder.site().join("config.yml");
    let right = fs::read_to_string(&config).unwrap();
    let changed = fs::metadata(&config).unwrap().modified().unwrap();
    let mut heard = String::new();
    for wrong in mistakes(&right) {
        assert_ne!(wrong, right, "the mistake is in the config");
        fs::write(&config, wrong).unwrap();
        reload(world);
        heard += &ask(world, row);
    }
    fs::write(&config, &right).unwrap();
    File::options().write(true).open(&config).unwrap().set_modified(changed).unwrap();
    reload(world);
    heard
}

/// The config with a mistake in or beside the operator's token, each of another kind.
fn mistakes(right: &str) -> Vec<String> {
    let token = &Words::get().operator;
    let line = format!("  token: {token}\n");
    let instead = |text: String| right.replace(&line, &text);
    let (before, server) = right.split_once("server:\n").unwrap();
    let (_, after) = server.split_once("limits:").unwrap_or((server, ""));
    vec![
        instead(format!("{line}  lisen: x\n")),
        instead(format!("  tokn: {token}\n")),
        instead(format!("{line}{line}")),
        instead(format!("  token: \"{token}\n")),
        instead(format!("  token: [{token}]\n")),
        instead(format!("  token: *{token}\n")),
        instead(format!("\t token: {token}\n")),
        instead(format!("  tokens: {{ci: {{hash: {token}}}}}\n")),
        instead(format!("{line}  listen: {token}\n")),
        format!("{before}server: {{token: {token}, lisen: x}}\nlimits:{after}"),
        format!("{before}server: {token}\nlimits:{after}"),
        right.replace("{file: secret.txt}", token),
        format!("{right}{token}: 1\n"),
    ]
}

fn ask(world: &mut World, row: &Row) -> String {
    let client = world.attacker(row.right);
    let send = |method: &str, path: &str| {
        client.send(method, path, &[], "").map_or_else(|error| error, Answer::text)
    };
    let mut heard: String = REPORTS.iter().map(|path| send("GET", path)).collect();
    heard += &send("POST", "/v1/reload");
    for method in ["tools/list", "resources/list", "prompts/list"] {
        heard += &world.request(row, method, &json!({}));
    }
    heard
}
