//! Servers that `npx` and `uvx` start under confinement, with a persistent HOME.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::harness::crib::{Crib, run};

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
    let reference = include_str!("../../../../toolcrib-manifest/src/docs/manifest.md");
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
