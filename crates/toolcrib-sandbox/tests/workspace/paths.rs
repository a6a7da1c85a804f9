//! The table of paths: what each operation does with each, by every lookup, as root and not.

use std::collections::BTreeMap;

use toolcrib_sandbox::{WalkControl, WorkspaceError};

use super::fixture::Fixture;
use super::{LOOKUPS, as_everybody, kind};

/// Operation, path, outcome: `=` and the content or `ok`, or the error. `{home}` and `{root}` stand
/// for the absolute paths.
const TABLE: &[(&str, &str, &str)] = &[
    // Plain, and what only looks strange.
    ("read", "a.txt", "= alpha"),
    ("read", "./a.txt", "= alpha"),
    ("read", ".//./a.txt", "= alpha"),
    ("read", "dir//deep/er/leaf.txt", "= leaf"),
    ("read", "empty.txt", "= "),
    ("read", "with space.txt", "= space"),
    ("read", "with space.txt ", "NotFound"),
    ("read", " a.txt", "NotFound"),
    ("read", "gr\u{fc}n.txt", "= green"),
    ("read", "gru\u{308}n.txt", "= green too"),
    ("read", "-rf", "= dash"),
    ("read", "~/notes.txt", "= tilde"),
    ("read", "%2e%2e/encoded.txt", "= percent"),
    ("read", "$HOME", "= dollar"),
    ("read", "back\\slash", "= backslash"),
    ("read", "*.txt", "= star"),
    ("read", "dots...", "= dots"),
    ("read", ".../three.txt", "= three"),
    ("read", "..hidden", "= hidden"),
    ("read", "trailing.", "= dot"),
    ("read", "a.txt.", "NotFound"),
    ("read", "C:", "= drive"),
    ("read", "A.TXT", "= upper"),
    ("read", "A.txt", "NotFound"),
    ("read", "DIR/sibling.txt", "NotFound"),
    ("read", "missing.txt", "NotFound"),
    ("read", "missing/deep.txt", "NotFound"),
    ("read", "a.txt/deeper", "NotAFolder"),
    ("read", "a.txt/", "NotAFolder"),
    ("read", "a.txt/.", "NotAFolder"),
    ("read", "a.txt/..", "NotAFolder"),
    ("read", "dir", "IsAFolder"),
    ("read", "dir/", "IsAFolder"),
    ("read", ".", "IsAFolder"),
    ("read", "dir/..", "IsAFolder"),
    // Dots.
    ("read", "dir/../a.txt", "= alpha"),
    ("read", "dir/deep/../../a.txt", "= alpha"),
    ("read", "missing/../a.txt", "NotFound"),
    ("read", "..", "Outside"),
    ("read", "../", "Outside"),
    ("read", "../outside/secret.txt", "Outside"),
    ("read", "../outside/missing.txt", "Outside"),
    ("read", "../project/a.txt", "Outside"),
    ("read", "dir/../../outside/secret.txt", "Outside"),
    ("read", "dir/deep/er/../../../../outside/secret.txt", "Outside"),
    ("read", "./../outside/secret.txt", "Outside"),
    ("read", "../../../../../../../../etc/passwd", "Outside"),
    ("read", "dir/../..", "Outside"),
    ("read", "....//....//outside/secret.txt", "NotFound"),
    ("read", "..;/outside/secret.txt", "NotFound"),
    ("read", "..\\outside\\secret.txt", "NotFound"),
    ("read", "%2e%2e/outside/secret.txt", "NotFound"),
    ("read", "..%2foutside%2fsecret.txt", "NotFound"),
    ("read", "\u{2024}\u{2024}/outside/secret.txt", "NotFound"),
    ("read", "\u{ff0e}\u{ff0e}/outside/secret.txt", "NotFound"),
    ("read", "..\u{2215}outside", "NotFound"),
    ("write", "../new.txt", "Outside"),
    ("write", "../outside/secret.txt", "Outside"),
    ("write", "../outside/new.txt", "Outside"),
    ("write", "dir/../../outside/new.txt", "Outside"),
    ("append", "../outside/secret.txt", "Outside"),
    ("update", "../outside/secret.txt", "Outside"),
    ("remove", "../outside/secret.txt", "Outside"),
    ("remove", "../outside/missing.txt", "Outside"),
    ("remove_all", "../outside", "Outside"),
    ("remove_all", "..", "Outside"),
    ("list", "..", "Outside"),
    ("list", "../outside", "Outside"),
    ("list", "../missing", "Outside"),
    ("look", "../outside/secret.txt", "Outside"),
    ("look", "../outside/missing.txt", "Outside"),
    ("make", "../new", "Outside"),
    ("make", "../outside", "Outside"),
    ("make", "dir/../../new", "Outside"),
    // Absolute ones.
    ("read", "{root}/a.txt", "= alpha"),
    ("read", "{root}//a.txt", "= alpha"),
    ("read", "//{root}/./a.txt", "= alpha"),
    ("read", "{home}/./project/a.txt", "= alpha"),
    ("read", "{root}", "IsAFolder"),
    ("read", "{root}/", "IsAFolder"),
    ("read", "/", "Outside"),
    ("read", "//", "Outside"),
    ("read", "/a.txt", "Outside"),
    ("read", "/etc/passwd", "Outside"),
    ("read", "/etc/missing", "Outside"),
    ("read", "{home}", "Outside"),
    ("read", "{home}/outside/secret.txt", "Outside"),
    ("read", "{home}/outside/missing.txt", "Outside"),
    ("read", "{root}/../outside/secret.txt", "Outside"),
    ("read", "{root}/../project/a.txt", "Outside"),
    ("read", "{root}-evil/secret.txt", "Outside"),
    ("read", "{root}-evil", "Outside"),
    ("read", "{root}evil/secret.txt", "Outside"),
    ("read", "{root}.txt", "Outside"),
    ("read", "file://{root}/a.txt", "NotFound"),
    ("read", "/proc/self/environ", "Outside"),
    ("read", "/dev/stdin", "Outside"),
    ("write", "{root}/new.txt", "= ok"),
    ("write", "{root}-evil/new.txt", "Outside"),
    ("write", "/tmp/toolcrib-test-new.txt", "Outside"),
    ("make", "{root}-evil/new", "Outside"),
    ("look", "/", "Outside"),
    ("look", "/missing", "Outside"),
    ("list", "/", "Outside"),
    ("list", "{root}", "= ok"),
    // Links that stay inside.
    ("read", "link", "= alpha"),
    ("read", "link/", "NotAFolder"),
    ("read", "link_dir/sibling.txt", "= sibling"),
    ("read", "link_slash/sibling.txt", "= sibling"),
    ("read", "link_dir/deep/er/leaf.txt", "= leaf"),
    ("read", "link_dir/../a.txt", "= alpha"),
    ("read", "dir/up", "= alpha"),
    ("read", "dir/root/a.txt", "= alpha"),
    ("read", "dir/root/dir/root/a.txt", "= alpha"),
    ("read", "chain", "= alpha"),
    ("list", "link_dir", "= ok"),
    ("look", "link", "= ok"),
    ("write", "link_dir/new.txt", "= ok"),
    ("write", "link", "IsALink"),
    ("append", "link", "IsALink"),
    ("update", "link", "IsALink"),
    ("remove", "link", "= ok"),
    ("remove", "link_dir", "= ok"),
    ("remove_all", "link_dir", "= ok"),
    ("remove", "link_dir/", "NotAFolder"),
    // Links that do not, or lead nowhere.
    ("read", "out_file", "Outside"),
    ("read", "out_missing", "Outside"),
    ("read", "out_dir/secret.txt", "Outside"),
    ("read", "out_dir/missing.txt", "Outside"),
    ("read", "out_chain/secret.txt", "Outside"),
    ("read", "dir/out/secret.txt", "Outside"),
    ("read", "out_home/project/a.txt", "Outside"),
    ("read", "abs_out", "Outside"),
    ("read", "abs_in", "Outside"),
    ("read", "fd", "Outside"),
    ("read", "proc/etc/passwd", "Outside"),
    ("read", "dangling", "NotFound"),
    ("read", "loop", "Loop"),
    ("read", "self", "Loop"),
    ("read", "loop/x", "Loop"),
    ("look", "out_file", "Outside"),
    ("look", "out_missing", "Outside"),
    ("look", "dangling", "= nothing"),
    ("list", "out_dir", "Outside"),
    ("list", "out_home", "Outside"),
    ("write", "out_file", "IsALink"),
    ("write", "out_missing", "IsALink"),
    ("write", "abs_out", "IsALink"),
    ("write", "out_dir/new.txt", "Outside"),
    ("write", "out_dir/secret.txt", "Outside"),
    ("write", "dir/out/new/new.txt", "Outside"),
    ("append", "out_file", "IsALink"),
    ("update", "out_dir/secret.txt", "Outside"),
    ("write", "dangling", "IsALink"),
    ("write", "dangling/new.txt", "NotFound"),
    ("remove", "out_file", "= ok"),
    ("remove", "out_dir", "= ok"),
    ("remove_all", "out_dir", "= ok"),
    ("remove", "out_dir/secret.txt", "Outside"),
    ("remove_all", "out_dir/folder", "Outside"),
    ("remove", "loop", "= ok"),
    ("make", "out_dir/new", "Outside"),
    ("make", "out_missing", "Outside"),
    ("make", "dangling", "NotFound"),
    // Hard links: whoever reads them may; whoever writes leaves the other name alone.
    ("read", "hard.txt", "= hard"),
    ("write", "hard.txt", "= ok"),
    ("append", "hard.txt", "= ok"),
    ("update", "hard.txt", "= ok"),
    ("remove", "hard.txt", "= ok"),
    // What is no file.
    ("read", "fifo", "Special"),
    ("read", "socket", "Special"),
    ("write", "fifo", "Special"),
    ("append", "fifo", "Special"),
    ("update", "fifo", "Special"),
    ("write", "socket", "Special"),
    ("append", "socket", "Special"),
    ("look", "fifo", "= ok"),
    ("look", "socket", "= ok"),
    ("list", "fifo", "NotAFolder"),
    ("remove", "fifo", "= ok"),
    ("remove", "socket", "= ok"),
    ("read", "huge.bin", "TooLarge"),
    ("update", "huge.bin", "TooLarge"),
    ("look", "huge.bin", "= ok"),
    // What is protected can be read.
    ("read", ".git/config", "= git"),
    ("read", "tools.d/own.yaml", "= tools"),
    ("write", ".git/config", "Protected"),
    ("write", ".git/HEAD", "= ok"),
    ("write", ".GIT/hooks/pre-push", "Protected"),
    // One name to some file systems: a character that cannot be seen, and the sign of kelvin.
    ("write", ".g\u{200c}it/hooks/pre-push", "Protected"),
    ("write", ".git/hoo\u{212a}s/pre-push", "Protected"),
    ("read", "VAUL\u{200d}T/key.pem", "Sensitive"),
    ("write", ".git/hooks/pre-commit", "Protected"),
    ("write", ".git/hooks/new", "Protected"),
    ("write", "dir/../.git/hooks/new", "Protected"),
    ("write", "git/hooks/new", "Protected"),
    ("write", "git/config", "Protected"),
    ("append", "git/config", "Protected"),
    ("update", ".git/config", "Protected"),
    ("remove", ".git/config", "Protected"),
    ("remove_all", ".git", "Protected"),
    ("remove_all", ".git/hooks", "Protected"),
    ("remove_all", "sub", "Protected"),
    ("write", "sub/.git/config", "Protected"),
    ("write", "sub/.git/hooks/new", "Protected"),
    ("write", "new/.git/hooks/new", "Protected"),
    ("make", "new/.vscode", "Protected"),
    ("write", ".vscode/settings.json", "Protected"),
    ("write", ".vscode", "Protected"),
    ("write", ".mcp.json", "Protected"),
    ("write", "dir/.mcp.json", "Protected"),
    ("remove", ".mcp.json", "Protected"),
    ("write", "tools.d/new.yaml", "Protected"),
    ("remove_all", "tools.d", "Protected"),
    ("write", "config.yml", "Protected"),
    ("write", "dir/config.yml", "= ok"),
    ("write", "{root}/.mcp.json", "Protected"),
    // What is sensitive cannot be told from nothing.
    ("read", "vault/key.pem", "Sensitive"),
    ("read", "vault/missing", "Sensitive"),
    ("read", "vault", "Sensitive"),
    ("read", "VAULT/key.pem", "Sensitive"),
    ("read", "dir/../vault/key.pem", "Sensitive"),
    ("read", "dir/../vault/missing", "Sensitive"),
    ("read", "keys/key.pem", "Sensitive"),
    ("read", "keys/missing", "Sensitive"),
    ("read", "keys/missing/deeper", "Sensitive"),
    ("read", "keys_missing", "Sensitive"),
    ("look", "vault/key.pem", "Sensitive"),
    ("look", "vault/missing", "Sensitive"),
    ("look", "keys/missing", "Sensitive"),
    ("list", "vault", "Sensitive"),
    ("list", "keys", "Sensitive"),
    ("write", "vault/key.pem", "Sensitive"),
    ("write", "vault/new/new", "Sensitive"),
    ("write", "keys/new", "Sensitive"),
    ("append", "keys/key.pem", "Sensitive"),
    ("update", "keys/key.pem", "Sensitive"),
    ("make", "keys/new", "Sensitive"),
    ("remove", "vault/key.pem", "Sensitive"),
    ("remove", "keys/key.pem", "Sensitive"),
    ("remove_all", "vault", "Sensitive"),
    ("remove", "keys", "= ok"),
    // What no path may be.
    ("read", "", "Malformed"),
    ("write", "", "Malformed"),
    ("list", "", "Malformed"),
    ("read", "a.txt\0", "Malformed"),
    ("read", "a.txt\0.png", "Malformed"),
    ("read", "a.txt\n", "Malformed"),
    ("read", "a\r.txt", "Malformed"),
    ("read", "\u{1b}[31ma.txt", "Malformed"),
    ("read", "a.txt\u{7f}", "Malformed"),
    ("read", "a\u{85}.txt", "Malformed"),
    ("write", "new\0.txt", "Malformed"),
    ("write", "new\n.txt", "Malformed"),
    ("make", "new\t", "Malformed"),
    ("write", "new.txt/", "Malformed"),
    ("write", "new.txt/.", "Malformed"),
    ("write", ".", "IsAFolder"),
    ("write", "dir", "IsAFolder"),
    ("write", "dir/..", "IsAFolder"),
    ("append", "dir", "IsAFolder"),
    ("update", "missing.txt", "NotFound"),
    ("remove", ".", "IsTheRoot"),
    ("remove_all", ".", "IsTheRoot"),
    ("remove_all", "./", "IsTheRoot"),
    ("remove_all", "{root}", "IsTheRoot"),
    ("remove_all", "dir/..", "Malformed"),
    ("remove_all", "dir/root", "= ok"),
    ("remove", "dir", "NotEmpty"),
    ("remove", "missing.txt", "NotFound"),
    ("remove", "a.txt/", "NotAFolder"),
    ("remove_all", "dir", "= ok"),
    ("make", "dir", "= ok"),
    ("make", "new/er/est", "= ok"),
    ("make", "a.txt", "NotAFolder"),
    ("make", "a.txt/new", "NotAFolder"),
    ("make", ".", "= ok"),
    ("make", "new/../other", "NotFound"),
    ("write", "new/er/est.txt", "= ok"),
    ("write", "a.txt/new", "NotAFolder"),
    ("write", "new/../other.txt", "NotFound"),
    ("append", "new/log.txt", "= ok"),
    ("append", "a.txt", "= ok"),
    ("update", "a.txt", "= ok"),
    ("list", "a.txt", "NotAFolder"),
    ("list", "missing", "NotFound"),
    ("look", "a.txt/x", "= nothing"),
    ("look", "missing", "= nothing"),
];

/// Paths that have to be made.
fn long_ones() -> Vec<(&'static str, String, &'static str)> {
    let name = "n".repeat(255);
    vec![
        ("read", "a".repeat(4096), "Malformed"),
        ("read", "a".repeat(4095), "Malformed"),
        ("read", "a".repeat(256), "Malformed"),
        ("read", name.clone(), "NotFound"),
        ("write", name, "= ok"),
        ("write", "n".repeat(256), "Malformed"),
        ("read", "./".repeat(257) + "a.txt", "Malformed"),
        ("read", "./".repeat(200) + "a.txt", "= alpha"),
        ("read", "dir/../".repeat(127) + "a.txt", "= alpha"),
        ("read", "dir/../".repeat(128) + "a.txt", "Malformed"),
        ("read", "../".repeat(257), "Malformed"),
        ("make", "d/".repeat(257), "Malformed"),
        ("make", "d/".repeat(60), "= ok"),
    ]
}

fn outcome(fixture: &Fixture, operation: &str, path: &str) -> String {
    let workspace = &fixture.workspace;
    let done = |outcome: Result<(), WorkspaceError>| outcome.map(|()| "ok".to_owned());
    let outcome = match operation {
        "read" => workspace
            .read(path, 1 << 20)
            .map(|content| String::from_utf8_lossy(&content).into_owned()),
        "write" => done(workspace.write(path, b"new").map(drop)),
        "append" => done(workspace.append(path, b"more").map(drop)),
        "update" => done(workspace.update(path, 1 << 20, |mut content| {
            content.extend(b"more");
            Ok((Some(content), ()))
        })),
        "remove" => done(workspace.remove(path).map(drop)),
        "remove_all" => done(workspace.remove_all(path, 1000).map(drop)),
        "make" => done(workspace.make_folder(path).map(drop)),
        "list" => done(workspace.walk(path, 1000, &mut |_| WalkControl::Enter).map(drop)),
        "look" => workspace.look(path).map(|entry| entry.map_or("nothing", |_| "ok").to_owned()),
        other => panic!("no such operation: {other}"),
    };
    outcome.map_or_else(|error| kind(&error), |text| format!("= {text}"))
}

#[test]
fn every_row_of_the_table_comes_out_as_it_says() {
    let rows: Vec<_> = TABLE
        .iter()
        .map(|(operation, path, expected)| (*operation, (*path).to_owned(), *expected))
        .chain(long_ones())
        .collect();
    assert!(rows.len() >= 250, "{}", rows.len());
    as_everybody(|| {
        for lookup in LOOKUPS {
            let mut wrong = BTreeMap::new();
            let mut fixture = Fixture::new(lookup);
            for (operation, path, expected) in &rows {
                let filled = path
                    .replace("{root}", fixture.root().to_str().unwrap())
                    .replace("{home}", fixture.home().to_str().unwrap());
                let changes = !["read", "look", "list"].contains(operation);
                let before = changes.then(|| fixture.untouchable());
                let found = outcome(&fixture, operation, &filled);
                let legal = [".git/HEAD", "VAULT"].iter().any(|legal| path.contains(legal));
                if found != *expected {
                    wrong.insert((operation, path), (found, "is not expected"));
                } else if !legal && before.is_some_and(|before| fixture.untouchable() != before) {
                    wrong.insert((operation, path), (found, "has changed what it must not"));
                }
                assert!(fixture.locks.is_empty(), "{operation} {path}");
                if changes {
                    fixture = Fixture::new(lookup);
                }
            }
            assert!(wrong.is_empty(), "{lookup}: {} of {}: {wrong:#?}", wrong.len(), rows.len());
        }
    });
}

#[test]
fn no_answer_tells_whether_something_outside_exists() {
    for lookup in LOOKUPS {
        let fixture = Fixture::new(lookup);
        let pairs = [
            ("../outside/secret.txt", "../outside/missing.txt"),
            ("{home}/outside/secret.txt", "{home}/outside/missing.txt"),
            ("/etc/passwd", "/etc/missing"),
            ("out_dir/secret.txt", "out_dir/missing.txt"),
            ("out_dir/folder/deep.txt", "out_dir/none/deep.txt"),
            ("abs_out", "out_missing"),
            ("dir/out/secret.txt", "dir/out/secret.txt/x"),
            ("keys/key.pem", "keys/missing"),
            ("vault/key.pem", "vault/missing/deeper"),
            ("dir/../keys/key.pem", "dir/../keys/missing"),
        ];
        for (there, missing) in pairs {
            for operation in ["read", "look", "list", "update", "append", "remove", "make", "write"]
            {
                let said = |path: &str| {
                    let path = path.replace("{home}", fixture.home().to_str().unwrap());
                    match operation {
                        "read" => fixture.workspace.read(&path, 9).unwrap_err().to_string(),
                        "look" => fixture.workspace.look(&path).unwrap_err().to_string(),
                        "list" => {
                            let walked =
                                fixture.workspace.walk(&path, 9, &mut |_| WalkControl::Pass);
                            walked.unwrap_err().to_string()
                        }
                        _ if !path.contains('/') => String::new(),
                        _ => outcome(&fixture, operation, &path),
                    }
                };
                assert_eq!(said(there), said(missing), "{lookup} {operation} {there} {missing}");
            }
        }
    }
}
