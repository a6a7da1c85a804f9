//! The text of a lock: how it is written, read and compared.

use std::path::Path;

use insta::assert_snapshot;
use serde_json::json;
use toolcrib_manifest::load_str;
use toolcrib_manifest::lock::{Kind, Lock, changes};
use toolcrib_tool::{Layer, Source};

#[test]
fn the_text_of_a_lock_reads_line_by_line() {
    let text = "
toolcrib: 1
namespace: fs
tools:
  - name: tail
    description: \"Read the last lines.\\u202E\"
    annotations: {read_only: true}
    input: {properties: {path: {type: string}, follow: {type: boolean}}, required: [path]}
    run: {argv: [tail, {if: follow, then: [-f]}, --, \"${args.path}\"]}
";
    let loaded = load_str("tools.d/fs.yaml", text);
    let mut lock = Lock::empty(Path::new("."));
    let source = Source::new(Layer::Manifest, "tools.d/fs.yaml");
    lock.accept(Kind::Tool, "fs_tail", &source, Some(&loaded.declarations[0].expanded()));
    lock.accept(Kind::Tool, "calculator", &Source::new(Layer::Native, "toolcrib-builtins"), None);
    assert_snapshot!(lock.to_text(), @r#"
    # What is accepted here, and as what. `toolcrib lock` writes this file: review it, commit
    # it, and change it with that command only.
    version = 1

    [tools.calculator]
    owner = "native:toolcrib-builtins"

    [tools.fs_tail]
    owner = "manifest:tools.d/fs.yaml"
    digest = "blake3:c99ac9fed011a7eee3fe6500a46add2cafb1d0376f3622777ca9bdad018706de"
    [tools.fs_tail.declares]
    "/annotations/destructive" = true
    "/annotations/idempotent" = false
    "/annotations/open_world" = true
    "/annotations/read_only" = true
    "/category" = "custom"
    "/description" = "Read the last lines.\u202E"
    "/input_schema/additionalProperties" = false
    "/input_schema/properties/follow/type" = "boolean"
    "/input_schema/properties/path/type" = "string"
    "/input_schema/required" = ["path"]
    "/input_schema/type" = "object"
    "/name" = "fs_tail"
    "/needs/bins" = ["tail"]
    "/output/format" = "text"
    "/output/keep" = "both"
    "/run/argv/0" = "tail"
    "/run/argv/1/if" = "follow"
    "/run/argv/1/then" = ["-f"]
    "/run/argv/2" = "--"
    "/run/argv/3" = "${args.path}"
    "/run/capture_bytes" = 65536
    "/run/ok_exit" = [0]
    "/run/retry_exit" = [75]
    "/timeout_seconds" = 30.0
    "#);
}

#[test]
fn changes_name_the_fields_that_are_not_the_same() {
    let tool = |description: &str, argv: &[&str]| json!({"description": description, "run": {"argv": argv}, "title": "T"});
    let a = Source::new(Layer::Manifest, "a.yaml");
    let b = Source::new(Layer::Manifest, "b.yaml");
    let (mut accepted, mut declared) = (Lock::empty(Path::new(".")), Lock::empty(Path::new(".")));
    accepted.accept(Kind::Tool, "changed", &a, Some(&tool("Old.", &["x"])));
    declared.accept(Kind::Tool, "changed", &a, Some(&tool("New.", &["x", "-y"])));
    for lock in [&mut accepted, &mut declared] {
        lock.accept(Kind::Tool, "same", &a, Some(&tool("Same.", &[])));
    }
    accepted.accept(Kind::Tool, "moved", &a, Some(&tool("Same.", &[])));
    declared.accept(Kind::Tool, "moved", &b, Some(&tool("Same.", &[])));
    accepted.accept(Kind::Tool, "stolen", &a, Some(&tool("Same.", &[])));
    declared.accept(Kind::Tool, "stolen", &b, Some(&tool("Other.", &[])));
    accepted.accept(Kind::Tool, "gone", &a, None);
    declared.accept(Kind::Tool, "new", &Source::new(Layer::Native, "crate"), None);
    let said: Vec<String> = changes(&accepted, &declared)
        .iter()
        .map(|change| {
            let fields: Vec<_> = change.fields.iter().map(|field| &*field.pointer).collect();
            format!(
                "{} {} {}: {}",
                change.change.as_str(),
                change.name,
                change.owner,
                fields.join(" ")
            )
        })
        .collect();
    assert_eq!(
        said,
        [
            "changed changed manifest:a.yaml: /description /run/argv",
            "removed gone manifest:a.yaml: ",
            "moved moved manifest:b.yaml: ",
            "added new native:crate: ",
            "taken over stolen manifest:b.yaml: /description",
        ]
    );
    assert!(changes(&accepted, &accepted).is_empty());
}

#[test]
fn a_lock_that_is_none_says_what_is_wrong_and_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("toolcrib.lock");
    let refused = |text: &str| {
        std::fs::write(&path, text).expect("written");
        let error = Lock::read(&path).expect_err("it is none").to_string();
        error.replace(&folder.path().display().to_string(), "")
    };
    assert!(Lock::read(&path).expect("nothing is wrong").is_none());
    assert_snapshot!(refused("version = 1\n<<<<<<< HEAD\n"), @"
    the lock /toolcrib.lock cannot be used: TOML parse error at line 2, column 9
      |
    2 | <<<<<<< HEAD
      |         ^
    key with no value, expected `=`
    Restore the last good one, or remove it and accept the tools anew with `toolcrib lock`
    ");
    assert_snapshot!(refused("version = 1\n[tools.x]\nowner = \"nobody\"\n"), @r#"
    the lock /toolcrib.lock cannot be used: the owner of `x` is no layer:unit: "nobody"
    Restore the last good one, or remove it and accept the tools anew with `toolcrib lock`
    "#);
}

#[test]
fn a_lock_of_a_newer_version_is_refused_and_is_not_to_be_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("toolcrib.lock");
    for text in ["version = 2\n", "version = 2\n[prompts.p]\nsigned = true\n[keys]\n"] {
        std::fs::write(&path, text).expect("written");
        let error = Lock::read(&path).expect_err("it is newer").to_string();
        let said = "was written by a newer toolcrib (version 2 of the format, this program knows up to 1)\nUse that";
        assert!(error.contains(said) && !error.contains("remove"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).expect("it is there"), text);
    }
}
