//! Other MCP servers that manifests name, while the manifests change: connections follow, and what has
//! not changed is not touched.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcrib::mcp::upstream::UpstreamState;
use toolcrib::{ErrorKind, ToolCall};

use crate::crib::{Followed, says};

/// The scripted server of the MCP crate's tests.
const SERVER: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../toolcrib-mcp/tests/mcp/upstream/server.py");

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// A crib without manifests that is connected to whatever comes.
async fn connected() -> Followed {
    let followed = Followed::with(&[]);
    followed.crib.connect().await;
    followed
}

impl Followed {
    /// The script of a server, in a folder of its own: a server that could write another's script would
    /// be started anew when that comes.
    fn script(&self, name: &str) -> std::path::PathBuf {
        let folder = self.outer.path().join(format!("{name}.d"));
        fs::create_dir_all(&folder).unwrap();
        folder.join(name)
    }

    /// A file that names a server with these tools; the name of its script is `script`.
    fn named(&self, server: &str, script: &str, tools: &[&str]) -> String {
        let tool = |name: &&str| json!({"name": name, "description": "It is.", "inputSchema": {}});
        let script = self.script(script);
        let tools: Vec<Value> = tools.iter().map(tool).collect();
        fs::write(&script, json!({"tools": tools}).to_string()).unwrap();
        format!(
            "toolcrib: 1\nupstream:\n  - name: {server}\n    command: [python3, -I, -S, '{SERVER}', \
             '{}']\n    sandbox: {{read: ['{SERVER}'], write: ['{}']}}\n",
            script.display(),
            script.parent().unwrap().display(),
        )
    }

    /// The processes that serve a script.
    fn pids(&self, script: &str) -> BTreeSet<u32> {
        let script = self.script(script);
        let argument = script.as_os_str().as_encoded_bytes();
        let serves = |pid: &u32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            // Whoever looks after a confined one has the same arguments further back.
            !line.starts_with(b"toolcrib-jail\0")
                && line.split(|byte| *byte == 0).any(|part| part == argument)
        };
        let all = fs::read_dir("/proc").unwrap().flatten();
        let pids = all.filter_map(|process| process.file_name().to_str()?.parse().ok());
        pids.filter(serves).collect()
    }

    /// How many sessions a script's servers have opened.
    fn sessions(&self, script: &str) -> usize {
        let log = self.script(script).with_extension("log");
        fs::read_to_string(log).unwrap_or_default().matches("\"initialize\"").count()
    }

    fn is_there(&self, tool: &str) -> bool {
        self.tool(tool).is_some()
    }

    fn origin(&self, tool: &str) -> String {
        let snapshot = self.crib.executor().registry().snapshot();
        let origin = snapshot.get(tool).unwrap().source.origin.clone().unwrap();
        format!("{}:{}", origin.file.rsplit('/').next().unwrap(), origin.line)
    }

    async fn ended(&self) {
        self.crib.shutdown(Duration::ZERO).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_comes_changes_and_goes_with_the_file_that_names_it() {
    let followed = connected().await;
    followed.save("servers.yaml", &followed.named("notes", "one", &["get", "both"]));
    followed.until("its tools are there", |it| it.is_there("notes_get"));
    let first = followed.pids("one");
    assert_eq!(first.len(), 1);

    followed.save("servers.yaml", &followed.named("notes", "two", &["put", "both"]));
    followed.until("the other's tools are there", |it| it.is_there("notes_put"));
    assert!(followed.is_there("notes_both") && !followed.is_there("notes_get"));
    assert!(followed.pids("one").is_empty());
    assert_eq!(followed.pids("two").len(), 1);

    fs::remove_file(followed.path("servers.yaml")).unwrap();
    followed.until("the file is gone", |it| it.state("servers.yaml").is_none());
    let gone = Instant::now();
    followed.until("the server is gone", |it| it.pids("two").is_empty());
    assert!(gone.elapsed() < Duration::from_secs(1), "{:?}", gone.elapsed());
    followed.until("its tools are gone", |it| !it.is_there("notes_put"));
    followed.until("nothing is left of it", |it| it.crib.upstreams().status().is_empty());
    followed.ended().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_not_changed_keeps_its_connection_and_the_call_that_runs() {
    let followed = connected().await;
    let text = followed.named("notes", "one", &["slow", "get"]);
    followed.save("servers.yaml", &text);
    followed.until("its tools are there", |it| it.is_there("notes_get"));
    let pids = followed.pids("one");
    assert_eq!((pids.len(), followed.origin("notes_get").as_str()), (1, "servers.yaml:3"));

    let turn = followed.crib.turn();
    let running =
        tokio::spawn(async move { turn.call(ToolCall::new("1", "notes_slow", "{}")).await });
    // Read again by force, with a comment, beside others before and behind it, under another name.
    followed.crib.manifests().unwrap().reload();
    followed.save("servers.yaml", &format!("# Servers.\n{text}"));
    followed.save("aside.yaml", &followed.named("first", "two", &["get"]));
    followed.save("local.yaml", &says("local", "words"));
    followed.until("the others are there", |it| it.is_there("first_get") && it.is_there("local"));
    followed.until("its place is known", |it| it.origin("notes_get") == "servers.yaml:4");
    fs::rename(followed.path("servers.yaml"), followed.path("renamed.yaml")).unwrap();
    followed.until("its name is known", |it| it.origin("notes_get") == "renamed.yaml:4");
    followed.crib.manifests().unwrap().reload();
    fs::remove_file(followed.path("aside.yaml")).unwrap();
    followed.until("the other is gone", |it| !it.is_there("first_get"));
    // The change that the reload could have meant is done, too.
    followed.crib.connect().await;

    let result = running.await.unwrap();
    assert!(result.is_success(), "{}", result.text());
    assert_eq!(followed.pids("one"), pids);
    assert_eq!((followed.sessions("one"), followed.sessions("two")), (1, 1));
    followed.ended().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_cannot_be_used_keeps_its_last_good_servers() {
    let followed = connected().await;
    let text = followed.named("notes", "one", &["get"]);
    followed.save("servers.yaml", &text);
    followed.until("its tools are there", |it| it.is_there("notes_get"));
    let pids = followed.pids("one");

    followed.save("servers.yaml", "toolcrib: 1\nupstream: [");
    followed.until("the file is stale", |it| it.state("servers.yaml") == Some("stale"));
    followed.crib.connect().await;
    assert!(followed.crib.turn().call(ToolCall::new("1", "notes_get", "{}")).await.is_success());
    followed.save("servers.yaml", &text);
    followed.until("the file is good", |it| it.state("servers.yaml") == Some("live"));
    followed.crib.connect().await;
    assert_eq!((followed.pids("one"), followed.sessions("one")), (pids, 1));
    followed.ended().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_of_a_server_that_does_not_come_back_changed_are_unavailable() {
    let followed = connected().await;
    let text = followed.named("notes", "one", &["get"]);
    followed.save("servers.yaml", &text);
    followed.until("its tools are there", |it| it.is_there("notes_get"));

    followed.save("servers.yaml", &text.replace("python3", "no-such-program-here"));
    let reason = "the MCP server `notes` is not connected: it cannot be started";
    followed.until("it is said why", |it| {
        let snapshot = it.crib.executor().registry().snapshot();
        snapshot.get("notes_get").unwrap().unavailable_reason() == Some(reason)
    });
    let refused = followed.crib.turn().call(ToolCall::new("1", "notes_get", "{}")).await;
    assert_eq!(refused.error_kind(), Some(ErrorKind::Unavailable));
    assert!(followed.pids("one").is_empty());

    followed.save("servers.yaml", &text);
    followed.until("it is back", |it| it.is_there("notes_get"));
    assert!(followed.crib.turn().call(ToolCall::new("1", "notes_get", "{}")).await.is_success());
    followed.ended().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_file_takes_the_name_of_a_server_over() {
    let followed = connected().await;
    followed.save("b.yaml", &followed.named("notes", "one", &["get"]));
    followed.until("its tools are there", |it| it.is_there("notes_get"));
    let pids = followed.pids("one");

    followed.save("a.yaml", &followed.named("notes", "two", &["steal"]));
    followed.until("the other file is read", |it| it.state("a.yaml") == Some("live"));
    followed.crib.connect().await;
    assert_eq!(followed.pids("one"), pids);
    assert!(followed.is_there("notes_get") && followed.pids("two").is_empty());

    fs::remove_file(followed.path("b.yaml")).unwrap();
    followed.until("the other's turn has come", |it| it.is_there("notes_steal"));
    assert!(!followed.is_there("notes_get"));
    followed.ended().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_read_before_anything_is_connected_to_counts_and_after_the_end_nothing_does() {
    let followed = Followed::with(&[]);
    followed.save("servers.yaml", &followed.named("notes", "one", &["get"]));
    followed.until("the file is read", |it| it.state("servers.yaml") == Some("live"));
    assert!(followed.crib.upstreams().status().is_empty());
    let upstreams = followed.crib.connect().await;
    assert!(upstreams.settled(PATIENCE).await);
    assert_eq!(upstreams.status()[0].state, UpstreamState::Connected);

    followed.ended().await;
    assert!(followed.pids("one").is_empty());
    followed.save("more.yaml", &followed.named("more", "two", &["get"]));
    followed.until("the file is read", |it| it.state("more.yaml") == Some("live"));
    followed.crib.connect().await;
    assert!(followed.crib.upstreams().status().is_empty());
    assert_eq!((followed.sessions("one"), followed.sessions("two")), (1, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_go_with_the_crib_that_follows_them() {
    let followed = connected().await;
    followed.save("servers.yaml", &followed.named("notes", "one", &["get"]));
    followed.until("its tools are there", |it| it.is_there("notes_get"));
    let Followed { outer, dir, crib } = followed;
    drop(crib);
    let left = Followed { crib: toolcrib::Toolcrib::builder().build().unwrap(), outer, dir };
    let gone = Instant::now();
    while !left.pids("one").is_empty() {
        assert!(gone.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
