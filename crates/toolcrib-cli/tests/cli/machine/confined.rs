//! Confinement from the user's view: the examples of the documentation work as printed, and a program's missing
//! access is reported with the key that grants it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::harness::crib::{Crib, Run, run};

const MANUAL: &str = include_str!("../../../../toolcrib-manifest/src/docs/manifest.md");

/// A kubectl that works if it finds its settings and a network, and otherwise fails as the real one
/// does.
const KUBECTL: &str = r#"#!/bin/bash
if ! cat "$HOME/.kube/config" > /dev/null 2>&1; then
    echo "The connection to the server localhost:8080 was refused - did you specify the right host?" >&2
    exit 1
fi
if ! (exec 3<> /dev/tcp/127.0.0.1/9) 2>&1 | grep --quiet refused; then
    echo "Unable to connect to the server: dial tcp: lookup cluster.example.com: no such host" >&2
    exit 1
fi
echo "web-1 Running ($*)"
"#;

/// An npx that stores what it downloads in its home, and starts a server with one tool.
const NPX: &str = r#"#!/bin/bash
if ! mkdir -p "$HOME/.npm/_cacache"; then
    echo "npm error code EACCES" >&2
    exit 1
fi
while IFS= read -r line; do
    [[ $line =~ \"id\":([0-9]+|\"[^\"]*\") ]] || continue
    id=${BASH_REMATCH[1]}
    version=2025-06-18
    [[ $line =~ \"protocolVersion\":\"([^\"]*)\" ]] && version=${BASH_REMATCH[1]}
    answer='"error":{"code":-32601,"message":"no such method"}'
    case $line in
    *'"initialize"'*)
        answer='"result":{"protocolVersion":"'$version'","capabilities":{"tools":{}},"serverInfo":{"name":"fake","version":"1"}}'
        ;;
    *'"tools/list"'*)
        answer='"result":{"tools":[{"name":"echo","description":"Say it again.","inputSchema":{"type":"object"}}]}'
        ;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$answer"
done
"#;

/// The code block of the manual that contains a line.
fn printed(line: &str) -> String {
    let blocks = MANUAL.split("```yaml\n").skip(1);
    let mut blocks = blocks.filter_map(|block| block.split("```").next());
    let found = blocks.find(|block| block.lines().any(|other| other == line));
    found.unwrap_or_else(|| panic!("no example has the line {line:?}")).to_owned()
}

/// The kubectl example as a manifest.
fn kubectl_example() -> String {
    let tools = printed("  run: {argv: [kubectl, get, pods], pass_env: [HOME]}");
    let tools: Vec<_> = tools.lines().map(|line| format!("  {line}")).collect();
    format!("toolcrib: 1\ntools:\n{}\n", tools.join("\n"))
}

/// A crib beside a folder of programs, with a home that contains settings.
fn crib(manifest: &str) -> Crib {
    let crib = Crib::new(&[("ours.yaml", manifest)]);
    // A HOME must not be in the workspace, nor in a folder of the PATH.
    let homes = crib.home().join("homes");
    crib.config(&format!(
        "state: {{dir: state, homes: {}}}\nmanifests: {{trusted: [tools.d/ours.yaml]}}\n",
        homes.display()
    ));
    for (name, text) in [("kubectl", KUBECTL), ("npx", NPX)] {
        let path = crib.data().join(name);
        fs::write(&path, text).expect("a program");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a mode");
    }
    for folder in [".kube", ".npm"] {
        fs::create_dir(crib.home().join(folder)).expect("a folder");
    }
    fs::write(crib.home().join(".kube/config"), "clusters: []\n").expect("settings");
    crib
}

fn with_programs(crib: &Crib, arguments: &[&str]) -> Run {
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", crib.data().display());
    run(crib.command(arguments).env("PATH", path))
}

#[test]
fn the_kubectl_example_of_the_manual_works_as_it_is_printed() {
    let crib = crib(&kubectl_example());
    let called = with_programs(&crib, &["call", "pods"]);
    assert_eq!(called.code, Some(0), "{called:?}");
    assert!(called.stdout.contains("web-1 Running (get pods)"), "{called:?}");
    let check = with_programs(&crib, &["check", "--strict", "--quiet"]);
    assert_eq!(check.code, Some(0), "{check:?}");
}

#[test]
fn the_npx_example_of_the_manual_comes_up_as_it_is_printed() {
    let block = printed("    command: [npx, --yes, \"@modelcontextprotocol/server-everything\"]");
    let crib = crib(&block);
    let listed = with_programs(&crib, &["list", "--connect"]);
    assert!(listed.stdout.contains("everything_echo"), "{listed:?}");
    assert!(crib.home().join("homes/everything/.npm/_cacache").is_dir());
}

#[test]
fn the_upstream_that_new_makes_comes_up() {
    let crib = crib("toolcrib: 1\ntools: []\n");
    let made = crib.run(&["new", "everything", "--template", "upstream"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let listed = with_programs(&crib, &["list", "--connect"]);
    assert!(listed.stdout.contains("everything_echo"), "{listed:?}");
}

#[test]
fn a_program_that_lacks_its_home_or_network_gets_a_hint_with_the_key() {
    let without_home = kubectl_example().replace(", pass_env: [HOME]", "");
    let without_network = kubectl_example().replace("workspace+net", "workspace");
    for (manifest, key) in [
        (without_home, "`pass_env: [HOME]` in `run`"),
        (without_network, "`sandbox: {profile: workspace+net}`"),
    ] {
        let crib = crib(&manifest);
        let called = with_programs(&crib, &["call", "pods"]);
        assert_eq!(called.code, Some(1), "{called:?}");
        assert!(called.stderr.contains(key), "{called:?}");
        let check = with_programs(&crib, &["check", "--strict"]);
        assert_eq!(check.code, Some(1), "{check:?}");
        assert!(check.stderr.contains("[needs-"), "{check:?}");
    }
}

#[test]
fn a_program_that_cannot_open_a_file_gets_a_hint_about_grants() {
    let crib = Crib::new(&[]);
    let secret = crib.data().join("numbers.csv");
    fs::write(&secret, "1\n").expect("a file");
    crib.write(
        "ours.yaml",
        &format!(
            "toolcrib: 1\ntools:\n  - name: numbers\n    description: Show our numbers. Read-only.\n    \
             run: {{argv: [cat, {}]}}\n",
            secret.display()
        ),
    );
    let called = crib.run(&["call", "numbers"]);
    assert_eq!(called.code, Some(1), "{called:?}");
    let key = format!("sandbox: {{read: [\"{}\"]}}", secret.display());
    assert!(called.stderr.contains(&key), "{called:?}");
}

#[test]
fn list_and_show_mark_tools_with_unsafe_argv() {
    let crib = Crib::new(&[(
        "ours.yaml",
        "toolcrib: 1\ntools:\n  - name: run_check\n    description: Run one of our checks. Read-only.\n    \
         input: {properties: {check: {type: string}}, required: [check]}\n    run:\n      \
         argv: [timeout, '5', \"${args.check}\"]\n      unsafe_argv: only our own jobs call it\n",
    )]);
    for arguments in [&["list", "--all"][..], &["show", "run_check"], &["list", "--json"]] {
        let run = crib.run(arguments);
        assert!(run.stdout.contains("only our own jobs call it"), "{run:?}");
        assert!(run.stdout.contains("unsafe_argv"), "{run:?}");
    }
    let before = crib.run(&["lock"]);
    assert_eq!(before.code, Some(0), "{before:?}");
    let path = crib.path().join("tools.d/ours.yaml");
    let text = fs::read_to_string(&path).expect("the manifest");
    fs::write(&path, text.replace("only our own", "all")).expect("the manifest");
    let diff = crib.run(&["lock", "--diff"]);
    assert!(diff.stdout.contains("unsafe_argv"), "the lock shows it: {diff:?}");
}
