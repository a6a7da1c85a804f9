//! The clients under test, installed once in the target directory.

use std::fs::{self, File};
use std::io::{Write, stderr};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use crate::process::Running;

/// If it is `1`, every test that needs the clients is skipped.
const SKIP: &str = "TOOLCRIB_SKIP_CLIENTS";

/// Some 400 MB are downloaded from the registries once.
const INSTALL_LIMIT: Duration = Duration::from_secs(540);

/// The paths of the programs.
pub(crate) struct Clients {
    /// Python with the MCP SDK and `FastMCP`.
    pub(crate) python: PathBuf,
    /// A node that is new enough for the Inspector.
    pub(crate) node: PathBuf,
    /// The folder with the packages of npm, including the TypeScript SDKs.
    pub(crate) packages: PathBuf,
    /// The script that node runs.
    pub(crate) inspector: PathBuf,
    /// The protocol's conformance suite, for node too.
    pub(crate) conformance: PathBuf,
    /// The reference server with something of everything, for node too.
    pub(crate) everything: PathBuf,
    /// The reference server of files.
    pub(crate) filesystem: PathBuf,
}

/// Installs the clients if this is their first use. `None`, with a message on standard error, if
/// this run skips them.
pub(crate) fn clients() -> Option<&'static Clients> {
    static CLIENTS: OnceLock<Result<Clients, String>> = OnceLock::new();
    if std::env::var_os(SKIP).is_some_and(|value| value == "1") {
        let test = std::thread::current().name().unwrap_or("a client test").to_owned();
        // Not `eprintln!`, whose output the test harness discards when a test passes.
        let _ = writeln!(stderr(), "skipped: {test} ({SKIP}=1)");
        return None;
    }
    match CLIENTS.get_or_init(install) {
        Ok(clients) => Some(clients),
        Err(problem) => panic!(
            "the MCP clients could not be installed:\n{problem}\
             Install what is missing, or set {SKIP}=1 to leave these tests out."
        ),
    }
}

/// A file of this test's own sources.
pub(crate) fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(name)
}

fn install() -> Result<Clients, String> {
    // `clients` in the target directory, where `.ci/run` prepares them too.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it is target/tmp");
    let folder = target.join("clients");
    fs::create_dir_all(&folder).unwrap();
    // Two runs of cargo may share a target directory.
    let lock = File::create(folder.join("lock")).unwrap();
    lock.lock().unwrap();

    let prepared = Running::start(&source("prepare"), |command| {
        command.arg(&folder);
    })
    .finish(INSTALL_LIMIT);
    if !prepared.status.success() {
        return Err(prepared.stderr);
    }
    let server = |name: &str| {
        folder.join(format!("node_modules/@modelcontextprotocol/server-{name}/dist/index.js"))
    };
    Ok(Clients {
        conformance: folder.join("node_modules/@modelcontextprotocol/conformance/dist/index.js"),
        everything: server("everything"),
        filesystem: server("filesystem"),
        python: folder.join("venv/bin/python"),
        node: folder.join("node"),
        packages: folder.clone(),
        inspector: folder
            .join("node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"),
    })
}
