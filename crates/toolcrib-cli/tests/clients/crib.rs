//! A folder with a config file and a workspace, and the binary serving from it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::process::Running;

/// A file of the workspace with known content, and that content's SHA-256.
pub(crate) const GREETING: &str = "greeting.txt";
const GREETING_CONTENT: &str = "hello, tool crib\n";
pub(crate) const GREETING_SHA256: &str =
    "fb7e0529d6986b346866b36109e46c9ee5c375a2aa446bae0ee750d4f94ce4a9";

const START_LIMIT: Duration = Duration::from_secs(30);

/// How the server is configured and started.
pub(crate) struct Crib {
    folder: TempDir,
    tools_dir: PathBuf,
}

/// How a client reaches the binary.
pub(crate) enum Server {
    /// The client starts it.
    Stdio { arguments: Vec<String> },
    /// It is already running, until this is dropped.
    Http { url: String, token: String, _running: Running },
}

impl Crib {
    /// With the manifests that toolcrib ships.
    pub(crate) fn shipped() -> Self {
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools.d");
        Self::new(|_| shipped)
    }

    /// With a separate, initially empty manifest directory.
    pub(crate) fn empty() -> Self {
        let crib = Self::new(|folder| folder.join("tools.d"));
        fs::create_dir(&crib.tools_dir).unwrap();
        crib
    }

    /// With an agent that asks a model at this address, and has the tools `say` and `note`, which are not there yet.
    pub(crate) fn with_agent(base_url: &str) -> Self {
        let crib = Self::empty();
        let path = crib.folder.path().join("config.yml");
        let mut config: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        config["providers"] = json!({"script": {"kind": "responses", "base_url": base_url}});
        config["toolsets"] = json!({"own": {"include": [{"names": ["say", "note"]}]}});
        config["agents"] = json!({"default": {"model": "script/scripted", "toolset": "own"}});
        fs::write(path, config.to_string()).unwrap();
        crib
    }

    fn new(tools_dir: impl FnOnce(&Path) -> PathBuf) -> Self {
        let folder = TempDir::new().unwrap();
        let tools_dir = tools_dir(folder.path());
        // Some tests add servers that need all of node and the network.
        let trusted = ["e.yaml", "f.yaml"].map(|file| tools_dir.join(file));
        // JSON is YAML, and quotes whatever a path contains.
        let config = json!({
            "manifests": {"dirs": [&tools_dir], "trusted": trusted},
            "state": {"dir": "state"},
            "workspace": {"root": "."},
            "audit": {"file": "audit.jsonl"},
        });
        fs::write(folder.path().join("config.yml"), config.to_string()).unwrap();
        fs::write(folder.path().join(GREETING), GREETING_CONTENT).unwrap();
        Self { folder, tools_dir }
    }

    /// Puts a manifest into the directory.
    pub(crate) fn add(&self, file: &str, manifest: &str) {
        fs::write(self.tools_dir.join(file), manifest).unwrap();
    }

    pub(crate) fn file(&self, name: &str) -> String {
        text(&self.folder.path().join(name))
    }

    pub(crate) fn over_stdio(&self) -> Server {
        Server::Stdio { arguments: self.arguments(&["mcp"]) }
    }

    pub(crate) fn over_http(&self) -> Server {
        let arguments = self.arguments(&["serve", "--listen", "127.0.0.1:0", "--json"]);
        let mut running = Running::start(Path::new(BINARY), |command| {
            // A token from the environment would be used and not printed.
            command.args(arguments).env_remove("TOOLCRIB_TOKEN");
        });
        let line: Value = serde_json::from_str(&running.first_line(START_LIMIT)).unwrap();
        let member =
            |name: &str| line[name].as_str().unwrap_or_else(|| panic!("{line}")).to_owned();
        Server::Http { url: member("url"), token: member("token"), _running: running }
    }

    fn arguments(&self, command: &[&str]) -> Vec<String> {
        let config = self.file("config.yml");
        ["--config", &config].iter().chain(command).map(|&argument| argument.to_owned()).collect()
    }
}

/// The binary under test.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_toolcrib");

/// Clients get paths inside JSON.
fn text(path: &Path) -> String {
    path.to_str().expect("temporary folders have names of plain characters").to_owned()
}
