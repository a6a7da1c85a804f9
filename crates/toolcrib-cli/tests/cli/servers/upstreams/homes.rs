//! Servers that `npx` and `uvx` start under confinement, with a persistent HOME.
//!
//! Most tests use a replacement. The real programs run if they are installed, with a package in a local file,
//! so that nothing is downloaded.

use std::fs;
use std::io::{Write as _, stderr};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::harness::crib::{Crib, run};
use crate::harness::server::command;

/// Replaces `npx` and `uvx`: at the first start it "downloads" a server into its HOME, and then it runs that server.
const FETCHER: &str = r#"#!/bin/sh
set -e
cache="$HOME/.cache/$(basename "$0")"
if [ ! -x "$cache/server" ]; then
    mkdir -p "$cache"
    cat > "$cache/server" <<'SERVER'
#!/bin/sh
while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id": *\([0-9][0-9]*\).*/\1/p')
    case "$line" in
    *'"initialize"'*) result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"fetched","version":"1"}}' ;;
    *'"tools/list"'*) result='{"tools":[{"name":"now","description":"Do it.","inputSchema":{"type":"object"}}]}' ;;
    *) continue ;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
SERVER
    chmod +x "$cache/server"
    echo fetched >> "$HOME/downloads"
fi
exec "$cache/server"
"#;

/// The example of the manifest reference.
fn example() -> String {
    let reference = include_str!("../../../../../toolcrib-manifest/src/docs/manifest.md");
    let block = reference.split("```yaml\n").find(|block| block.contains("keep_home: true"));
    let block = block.and_then(|block| block.split("```").next());
    block.expect("an example").to_owned()
}

fn with_fetchers(crib: &Crib, arguments: &[&str]) -> crate::harness::crib::Run {
    let folder = crib.path().join("programs");
    fs::create_dir_all(&folder).expect("a folder");
    for name in ["npx", "uvx"] {
        let path = folder.join(name);
        fs::write(&path, FETCHER).expect("a program");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("its mode");
    }
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    run(crib.command(arguments).env("PATH", path).env("TOOLCRIB__WORKSPACE__ROOT", "work"))
}

fn downloads(home: &Path) -> usize {
    fs::read_to_string(home.join("downloads")).unwrap_or_default().lines().count()
}

#[test]
fn the_example_of_the_reference_starts_and_downloads_once_without_trust() {
    let crib = Crib::new(&[("servers.yaml", &example())]);
    crib.config("state: {dir: state}\nworkspace: {root: work}\n");
    let check = with_fetchers(&crib, &["check", "--strict"]);
    assert_eq!(check.code, Some(0), "{check:?}");
    for _ in 0..2 {
        let list = with_fetchers(&crib, &["list", "--connect"]);
        assert!(list.stdout.contains("everything_now"), "{list:?}");
        assert!(list.stdout.contains("time_now"), "{list:?}");
    }
    for name in ["everything", "time"] {
        let home = crib.path().join("state-homes").join(name);
        assert_eq!(downloads(&home), 1, "{name}");
        let mode = fs::metadata(&home).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{name}");
    }
}

#[test]
fn a_kept_home_is_no_other_tools_and_not_where_tools_work() {
    let other = "toolcrib: 1\ntools:\n  - name: peek\n    description: Look.\n    run: {argv: [cat, HOME/downloads]}\n";
    let crib = Crib::new(&[("servers.yaml", &example())]);
    crib.config("state: {dir: state}\nworkspace: {root: work}\n");
    with_fetchers(&crib, &["list", "--connect"]);
    let home = crib.path().join("state-homes/everything");
    assert_eq!(downloads(&home), 1);
    crib.write("peek.yaml", &other.replace("HOME", &home.display().to_string()));
    let run = with_fetchers(&crib, &["call", "peek"]);
    assert!(run.code == Some(1) && !run.stdout.contains("fetched"), "{run:?}");

    crib.config("state: {dir: state, homes: work/homes}\nworkspace: {root: work}\n");
    let list = with_fetchers(&crib, &["list", "--connect"]);
    assert!(list.stderr.contains("where tools work: set `state.homes`"), "{list:?}");
    crib.config("state: {dir: none}\nworkspace: {root: work}\n");
    let list = with_fetchers(&crib, &["list", "--connect"]);
    assert!(list.stderr.contains("set `state.dir` or `state.homes`"), "{list:?}");
}

/// A server as an npm package.
const NODE_SERVER: &str = r"#!/usr/bin/env node
const lines = require('readline').createInterface({input: process.stdin});
lines.on('line', line => {
    const message = JSON.parse(line);
    const results = {
        'initialize': {protocolVersion: '2025-11-25', capabilities: {tools: {}}, serverInfo: {name: 'local', version: '1'}},
        'tools/list': {tools: [{name: 'home', description: 'Do it.', inputSchema: {type: 'object'}}]},
        'tools/call': {content: [{type: 'text', text: process.env.HOME}]},
    };
    const result = results[message.method];
    if (result) console.log(JSON.stringify({jsonrpc: '2.0', id: message.id, result}));
});
";

/// The same server as a Python package.
const PYTHON_SERVER: &str = r#"import json, os, sys

def main():
    tools = [{"name": "home", "description": "Do it.", "inputSchema": {"type": "object"}}]
    hello = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "local", "version": "1"}}
    results = {"initialize": hello, "tools/list": {"tools": tools},
               "tools/call": {"content": [{"type": "text", "text": os.environ["HOME"]}]}}
    for line in sys.stdin:
        message = json.loads(line)
        if message["method"] in results:
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": results[message["method"]]}
            print(json.dumps(answer), flush=True)
"#;

/// Writes a wheel from its files; a wheel is a ZIP archive.
const WHEEL: &str = r#"import sys, zipfile
info = "local_notes-1.0.0.dist-info/"
files = {
    "local_notes.py": open(sys.argv[2]).read(),
    info + "METADATA": "Metadata-Version: 2.1\nName: local-notes\nVersion: 1.0.0\n",
    info + "WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    info + "entry_points.txt": "[console_scripts]\nlocal-notes = local_notes:main\n",
}
files[info + "RECORD"] = "".join(name + ",,\n" for name in [*files, info + "RECORD"])
with zipfile.ZipFile(sys.argv[1], "w") as wheel:
    for name, text in files.items():
        wheel.writestr(name, text)
"#;

/// Whether a program is installed; a test that needs it says on standard error that it is skipped.
fn is_installed(program: &str) -> bool {
    let found = command(program).arg("--version").output().is_ok_and(|run| run.status.success());
    if !found {
        // Not `eprintln!`, which the test harness swallows when a test passes.
        let _ = writeln!(stderr(), "skipped: {program} is not installed");
    }
    found
}

/// Starts a server twice under confinement; the second time from what it kept. Its HOME is its own folder.
fn starts_from_its_own_home(crib: &Crib, manifest: &str) {
    crib.write("servers.yaml", manifest);
    crib.config("state: {dir: state}\nworkspace: {root: work}\n");
    fs::create_dir(crib.path().join("work")).expect("a folder");
    let check = crib.run(&["check", "--strict"]);
    assert_eq!(check.code, Some(0), "{check:?}");
    let home = crib.path().join("state-homes/notes");
    for _ in 0..2 {
        let called = crib.run(&["call", "notes_home"]);
        assert!(called.stdout.contains(&home.display().to_string()), "{called:?}");
    }
}

#[test]
fn the_real_npx_starts_a_local_package_under_confinement() {
    if !is_installed("npx") {
        return;
    }
    let crib = Crib::new(&[]);
    let package = crib.data().join("package");
    fs::create_dir(&package).expect("a folder");
    let about =
        r#"{"name": "local-notes", "version": "1.0.0", "bin": {"local-notes": "server.js"}}"#;
    fs::write(package.join("package.json"), about).expect("a package");
    fs::write(package.join("server.js"), NODE_SERVER).expect("a server");
    let archive = crib.data().join("local-notes-1.0.0.tgz");
    let mut tar = command("tar");
    tar.arg("-czf").arg(&archive).arg("-C").arg(crib.data()).arg("package");
    assert!(tar.status().expect("it runs").success());
    starts_from_its_own_home(
        &crib,
        &format!(
            "toolcrib: 1\nupstream:\n  - name: notes\n    command: [npx, --yes, --offline, \
             '--package={0}', local-notes]\n    sandbox: {{read: ['{0}']}}\n    keep_home: true\n",
            archive.display()
        ),
    );
    assert!(crib.path().join("state-homes/notes/.npm/_npx").is_dir(), "its cache is kept");
}

#[test]
fn the_real_uvx_starts_a_local_package_under_confinement() {
    if !is_installed("uvx") {
        return;
    }
    let crib = Crib::new(&[]);
    let module = crib.data().join("local_notes.py");
    fs::write(&module, PYTHON_SERVER).expect("a server");
    let wheel = crib.data().join("local_notes-1.0.0-py3-none-any.whl");
    let mut zip = command("python3");
    zip.args(["-I", "-S", "-c", WHEEL]).arg(&wheel).arg(&module);
    assert!(zip.status().expect("it runs").success());
    starts_from_its_own_home(
        &crib,
        &format!(
            "toolcrib: 1\nupstream:\n  - name: notes\n    command: [uvx, --offline, --from, '{0}', \
             local-notes]\n    sandbox: {{read: ['{0}']}}\n    keep_home: true\n",
            wheel.display()
        ),
    );
    assert!(crib.path().join("state-homes/notes/.cache/uv").is_dir(), "its cache is kept");
}
