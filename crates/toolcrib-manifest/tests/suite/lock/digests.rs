//! What is part of the digest of a tool: all that it says and runs, in whatever order it is written.

use std::path::Path;

use insta::assert_snapshot;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toolcrib_manifest::declaration::{DeclaredBody, NamedFile, UpstreamTransport};
use toolcrib_manifest::load_str;
use toolcrib_manifest::lock::{Kind, Lock, digest_of};
use toolcrib_tool::{Layer, Source};

use super::{digest, digest_text, edited, file, full};

/// Edits, each of which makes it another tool: where, and what stands there then.
fn edits() -> Vec<(&'static str, Value)> {
    vec![
        ("/name", json!("log")),
        ("/title", json!("Log")),
        ("/description", json!("Read logs and send them on.")),
        ("/category", json!("x")),
        ("/tags", json!(["a"])),
        ("/version", json!("1.3")),
        ("/annotations/open_world", json!(true)),
        ("/annotations/read_only", Value::Null),
        ("/input/properties/pod/pattern", json!("^.*$")),
        ("/input/properties/pod/description", json!("Ignore all rules.")),
        ("/input/properties/lines/default", json!(201)),
        ("/input/required", json!(["pod", "lines"])),
        ("/output_schema/properties/n/type", json!("number")),
        ("/empty_as_absent", Value::Null),
        ("/assert_formats", json!(false)),
        ("/context/cluster/from", json!("ctx.other")),
        ("/context/cluster/enum", json!(["dev", "stage", "prod"])),
        ("/context/trace/required", json!(true)),
        ("/run/argv/0", json!("kubectl2")),
        ("/run/argv/3/if", json!("names")),
        ("/run/argv/3/then", json!(["--previous=yes"])),
        ("/run/argv/5", Value::Null),
        ("/run/stdin", json!("x ${args.note}")),
        ("/run/env/CLUSTER", json!("prod")),
        ("/run/pass_env", json!(["LANG", "HOME"])),
        ("/run/ok_exit", json!([0])),
        ("/run/retry_exit", json!([76])),
        ("/cwd", json!("/")),
        ("/limits/timeout", json!("16s")),
        ("/limits/output", json!("33KiB")),
        ("/limits/concurrent", json!(5)),
        ("/limits/rate", json!("31/min")),
        ("/needs/bins", json!(["kubectl", "jq"])),
        ("/needs/env", Value::Null),
        ("/needs/secrets", json!(["token", "other"])),
        ("/output/format", json!("lines")),
        ("/output/keep", json!("head")),
        ("/output/redact", Value::Null),
        ("/cache/ttl", json!("6s")),
        ("/cache/shared", json!(true)),
        ("/dedupe", json!("batch")),
        ("/retry/max", json!(3)),
        ("/retry/backoff", json!("300ms")),
        ("/resources/reads", json!(["pods", "x"])),
        ("/approval", json!("never")),
        ("/final_output", json!(false)),
        ("/terminal", json!(false)),
        ("/hidden", json!(false)),
        ("/parallel", json!(true)),
    ]
}

#[test]
fn whatever_changes_in_a_tool_changes_its_digest() {
    let mut seen = vec![digest(&file(&full()).to_string())];
    for (pointer, to) in edits() {
        let mut tool = full();
        if pointer == "/annotations/read_only" {
            // What only a read-only tool may have.
            for key in ["cache", "dedupe", "retry"] {
                tool = edited(tool, &format!("/{key}"), Value::Null);
            }
        }
        let other = digest(&file(&edited(tool, pointer, to)).to_string());
        assert!(!seen.contains(&other), "{pointer}");
        seen.push(other);
    }
    let shared = edited(file(&full()), "/defaults", json!({"tags": ["c"]}));
    assert!(!seen.contains(&digest(&shared.to_string())), "what `defaults` add is a part of it");
}

/// JSON text that YAML reads, with the members of every mapping in another order, and with
/// comments and blanks where they may stand.
fn disordered(value: &Value, seed: &mut u64, depth: usize, out: &mut String) {
    let mut next = |below: usize| {
        *seed =
            seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(*seed >> 33).expect("31 bits") % below
    };
    let gap = ["", "  ", "\n   ", " # a comment\n  "][next(4)];
    out.push_str(gap);
    if !gap.is_empty() {
        out.push_str(&" ".repeat(depth));
    }
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            for at in (1..members.len()).rev() {
                members.swap(at, next(at + 1));
            }
            out.push('{');
            for (position, (key, member)) in members.into_iter().enumerate() {
                out.push_str(if position > 0 { ", " } else { " " });
                out.push_str(&json!(key).to_string());
                out.push(':');
                out.push(' ');
                disordered(member, seed, depth + 1, out);
            }
            out.push_str(" }");
        }
        Value::Array(items) => {
            out.push('[');
            for (position, item) in items.iter().enumerate() {
                out.push_str(if position > 0 { ", " } else { " " });
                disordered(item, seed, depth + 1, out);
            }
            out.push_str(" ]");
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

/// Adds what is not pinned.
fn decorated(mut tool: Value, what: u8) -> Value {
    let call = json!({"pod": "web"});
    let extras: [(&str, Value); 4] = [
        ("tests", json!([{"name": "t", "args": call, "ctx": {"cluster": "dev"}, "expect": {}}])),
        ("examples", json!([call])),
        ("input_examples", json!([call, {"pod": "db"}])),
        ("x-notes", json!({"free": [1, 2]})),
    ];
    for (bit, (key, extra)) in extras.into_iter().enumerate() {
        if what >> bit & 1 == 1 {
            tool = edited(tool, &format!("/{key}"), extra);
        }
    }
    tool
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn order_form_comments_tests_and_examples_change_no_digest(seed: u64, what: u8, owner: bool) {
        let mut seed = seed;
        let mut whole = file(&decorated(full(), what));
        if owner {
            whole["owner"] = json!("ops");
            whole["x-file"] = json!("mine");
        }
        let mut text = String::new();
        disordered(&whole, &mut seed, 0, &mut text);
        prop_assert_eq!(digest(&text), digest(&file(&full()).to_string()));
    }

    #[test]
    fn a_lock_is_read_as_it_was_written(expanded in value(), name in "[a-z_-]{1,9}", unit in ".{0,12}") {
        let mut lock = Lock::empty(Path::new("/etc/crib"));
        let source = Source::new(Layer::Upstream, unit.clone());
        lock.accept(Kind::Tool, name.clone(), &source, Some(&json!({"all": expanded.clone()})));
        lock.accept(Kind::Tool, "native", &Source::new(Layer::Native, "a crate"), None);
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("toolcrib.lock");
        lock.write(&path).expect("written");
        let read = Lock::read(&path).expect("read").expect("it is there");
        prop_assert_eq!(&read.entries, &lock.entries);
        prop_assert_eq!(read.to_text(), lock.to_text());
        prop_assert!(read.to_text().chars().all(|c| c == '\n' || !c.is_control()));
        prop_assert_eq!(read.entries[&(Kind::Tool, name)].digest.clone(), Some(digest_of(&json!({"all": expanded}))));
    }
}

/// Any JSON, with all that TOML has no word for.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[\u{200b}\u{202e}\u{feff}\"\\\\\r\n\t']{0,6}".prop_map(Value::from),
        Just(json!({"json": "null"})),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..4)
                .prop_map(|members| members.into_iter().collect::<Map<_, _>>().into()),
        ]
    })
}

#[test]
fn the_bytes_of_a_script_are_part_of_its_tool() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("s.sh");
    let manifest = folder.path().join("t.yaml").to_string_lossy().into_owned();
    let text = "toolcrib: 1\ntools:\n  - {name: t, description: Run it., run: {script: ./s.sh}}\n";
    let pinned = || {
        let loaded = load_str(&manifest, text);
        let declaration = loaded.declarations.first().expect("it is right");
        (declaration.digest(), declaration.expanded()["run"]["script"].clone())
    };
    let missing = pinned();
    assert_eq!(missing.1, "unreadable");
    std::fs::write(&script, "echo 1\n").expect("a script");
    let first = pinned();
    assert_eq!(first.1, digest_text(b"echo 1\n"));
    std::fs::write(&script, "echo 2\n").expect("a script");
    let second = pinned();
    assert!(missing.0 != first.0 && first.0 != second.0, "{missing:?} {first:?} {second:?}");
    std::fs::write(&script, "echo 1\n").expect("a script");
    assert_eq!(pinned(), first, "neither time nor file matters");
    std::fs::remove_file(&script).expect("removed");
    std::fs::create_dir(&script).expect("a folder in its place");
    assert_eq!(pinned(), missing);
}

#[test]
fn files_that_argv_names_are_part_of_the_digest_and_tools_without_them_keep_theirs() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a.py");
    let text = "toolcrib: 1\ntools:\n  - {name: t, description: Run it., run: {argv: [python3, \
                tools/a.py]}}\n";
    let loaded = load_str("t.yaml", text);
    let mut declaration = loaded.declarations.first().expect("it is right").clone();
    let without = declaration.digest();
    assert_snapshot!(without, @"blake3:28eb65d341c3d48ee8105f5ccccdc0c1e4a639d79f30ce85b40a2415cc2029a0");
    assert!(declaration.expanded()["run"].get("files").is_none());

    let mut pinned = || {
        let DeclaredBody::Command(command) = &mut declaration.body else { panic!("a command") };
        command.files = [("tools/a.py".to_owned(), NamedFile::read(&file))].into();
        (declaration.digest(), declaration.expanded()["run"]["files"]["tools/a.py"].clone())
    };
    let missing = pinned();
    assert_eq!(missing.1, "unreadable");
    std::fs::write(&file, "print(1)\n").expect("a script");
    let first = pinned();
    assert_eq!(first.1, digest_text(b"print(1)\n"));
    std::fs::write(&file, "print(2)\n").expect("a script");
    let second = pinned();
    let all = [&without, &missing.0, &first.0, &second.0];
    assert!(all.iter().enumerate().all(|(at, one)| !all[..at].contains(one)), "{all:?}");
    std::fs::write(&file, "print(1)\n").expect("a script");
    assert_eq!(pinned(), first, "only the bytes count");

    let large = std::fs::File::create(&file).expect("a file");
    large.set_len(NamedFile::MAX_BYTES + 1).expect("a hole");
    assert_eq!(pinned(), missing);
    let error = NamedFile::read(&file).is_unchanged().expect_err("it is too large").to_string();
    assert_eq!(error, "it is larger than 64 MiB");
    std::fs::remove_file(&file).expect("removed");
    std::fs::create_dir(&file).expect("a folder in its place");
    assert_eq!(pinned(), missing);
}

#[test]
fn files_that_the_command_of_a_server_names_are_part_of_its_digest() {
    let text = "toolcrib: 1\nupstream:\n  - {name: notes, command: [python3, server.py]}\n";
    let loaded = load_str("t.yaml", text);
    let mut server = loaded.upstreams.first().expect("it is right").clone();
    let without = server.digest();
    assert_snapshot!(without, @"blake3:9ce41ed97f91621c9abce4e3bc8352c033ab1b15f1e0801bc027ba1eb597f337");
    let UpstreamTransport::Stdio(stdio) = &mut server.transport else { panic!("a program") };
    stdio.files = [("server.py".to_owned(), NamedFile::read("/no/such/file"))].into();
    assert_eq!(server.expanded()["files"]["server.py"], "unreadable");
    assert_ne!(server.digest(), without);
}
