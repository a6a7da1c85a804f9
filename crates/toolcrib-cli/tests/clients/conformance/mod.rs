//! The protocol's own conformance suite, against a server with the tools, prompts and resources that
//! the suite asks for.
//!
//! All of them are declared in `conformance/tools.d`, by manifests and a worker. Known failures are in
//! `conformance/baseline.json`, which only shrinks: a check that is listed there and passes fails the
//! test, too.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use toolcrib::core::suspension::MemorySuspensions;
use toolcrib::http::{HttpServer, ServerConfig};
use toolcrib::manifests::Manifests;
use toolcrib::mcp::{McpOptions, McpServer, TaskOptions};
use toolcrib::runners::{RunnerHost, TrustEverything};
use toolcrib::settings::ConfigLayers;
use toolcrib::{ToolCall, Toolcrib};

use crate::installed;
use crate::process::Running;

/// One run of the suite holds some 50 scenarios, of a second or less each.
const SUITE_LIMIT: Duration = Duration::from_secs(240);

#[test]
fn revision_2025_11_25_is_kept() {
    assert_kept("2025-11-25");
}

#[test]
fn revision_2026_07_28_is_kept() {
    assert_kept("2026-07-28");
}

/// The checks of a revision that are known to fail, and those that do.
fn assert_kept(revision: &str) {
    let Some(clients) = installed::clients() else { return };
    let served = Served::start();
    served.assert_tools_answer();
    let results = TempDir::new().unwrap();
    let finished = Running::start(&clients.node, |command| {
        command
            .arg(&clients.conformance)
            .args(["server", "--url", &served.url, "--requirements", revision, "--output-dir"])
            .arg(results.path());
    })
    .finish(SUITE_LIMIT);

    let seen = Seen::read(results.path());
    assert!(seen.passed > 0, "{}{}", finished.stdout, finished.stderr);
    println!("{revision}: {} checks passed, {} failed", seen.passed, seen.failed.len());
    let baseline: BTreeMap<String, BTreeSet<String>> =
        serde_json::from_str(&fs::read_to_string(source("baseline.json")).unwrap()).unwrap();
    let known = &baseline[revision];
    let failed: BTreeSet<_> = seen.failed.keys().cloned().collect();
    let new: Vec<_> = seen.failed.iter().filter(|(check, _)| !known.contains(*check)).collect();
    assert!(new.is_empty(), "{revision}: these checks fail: {new:#?}");
    let fixed: Vec<_> = known.difference(&failed).collect();
    assert!(
        fixed.is_empty(),
        "{revision}: these pass now; take them out of the baseline: {fixed:#?}"
    );
}

/// The results that the suite has written.
#[derive(Default)]
struct Seen {
    passed: usize,
    /// The failures, as `scenario/check`.
    failed: BTreeMap<String, String>,
}

impl Seen {
    /// Warnings count as failures: they concern things that a server should do.
    fn read(results: &Path) -> Self {
        let mut seen = Self::default();
        for scenario in fs::read_dir(results).unwrap() {
            let scenario = scenario.unwrap();
            let name = scenario.file_name().into_string().unwrap();
            // `server-NAME-2026-11-21T14-30-54-097Z`
            let name = name.strip_prefix("server-").unwrap_or(&name);
            let name = name.rsplitn(7, '-').last().unwrap_or(name);
            let text = fs::read_to_string(scenario.path().join("checks.json")).unwrap();
            let checks: Vec<Value> = serde_json::from_str(&text).unwrap();
            for check in checks {
                match check["status"].as_str() {
                    Some("FAILURE" | "WARNING") => {
                        let id = format!("{name}/{}", check["id"].as_str().unwrap());
                        let why = format!("{} {}", check["errorMessage"], check["details"]);
                        seen.failed.insert(id, why);
                    }
                    Some("SUCCESS") => seen.passed += 1,
                    _ => {}
                }
            }
        }
        seen
    }
}

fn source(name: &str) -> PathBuf {
    installed::source("conformance").join(name)
}

/// A server with the suite's tools, in this process, until it is dropped.
struct Served {
    url: String,
    runtime: tokio::runtime::Runtime,
    crib: Toolcrib,
    _folder: TempDir,
}

impl Served {
    fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let tools = folder.path().join("tools.d");
        fs::create_dir(&tools).unwrap();
        for file in fs::read_dir(source("tools.d")).unwrap() {
            let file = file.unwrap();
            fs::copy(file.path(), tools.join(file.file_name())).unwrap();
        }
        let config = ConfigLayers::new().load().unwrap().into_config();
        let host = RunnerHost::new(folder.path()).with_trust(TrustEverything);
        let manifests = Manifests::load(&[tools], host);
        let problems: Vec<_> =
            manifests.files().files.iter().filter(|file| file.loaded.has_errors()).collect();
        assert!(problems.is_empty(), "{problems:#?}");
        let crib = Toolcrib::builder()
            .settings(&config)
            .manifests(&manifests)
            .suspensions(Arc::new(MemorySuspensions::new()))
            .build()
            .unwrap();
        crib.manifests().unwrap().watch().unwrap();

        let options = McpOptions::default()
            .turn(crib.turn_options())
            .catalog(crib.catalog().clone())
            // The suite does not wait for a task to begin.
            .tasks(TaskOptions { after: Duration::from_millis(100), ..TaskOptions::default() });
        let mcp = McpServer::new(crib.executor().clone(), options);
        let listen = ServerConfig {
            listen: "127.0.0.1:0".parse().unwrap(),
            no_auth: true,
            stream_lifetime: toolcrib::tool::units::TimeLimit(Some(Duration::from_secs(1))),
            ..ServerConfig::default()
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let server = runtime.block_on(HttpServer::bind(listen, crib.clone(), mcp)).unwrap();
        let url = server.mcp_url();
        runtime.spawn(server.serve(std::future::pending()));
        Self { url, runtime, crib, _folder: folder }
    }

    /// The suite accepts any answer, even a failure, so the tools' answers are checked here.
    fn assert_tools_answer(&self) {
        let call = |name: &str| {
            let call = ToolCall::new("1", name, "{}");
            self.runtime.block_on(self.crib.turn().call(call))
        };
        for (name, text) in [
            ("test_simple_text", "This is a simple text response for testing."),
            ("test_tool_with_logging", "logged"),
            ("test_tool_with_progress", "done"),
            ("test_image_content", "[image image/png, 70 bytes]"),
        ] {
            let result = call(name);
            assert!(result.is_success() && result.text() == text, "{name}: {}", result.text());
        }
        // Started before the suite, which expects the question earlier than a task would be
        // created.
        let asked = call("test_tool_with_task").text().into_owned();
        assert!(asked.contains("it waits for an answer: What is your name?"), "{asked}");
        let failed = call("test_error_handling").text().into_owned();
        assert!(
            failed.contains("This tool intentionally returns an error for testing"),
            "{failed}"
        );
    }
}
