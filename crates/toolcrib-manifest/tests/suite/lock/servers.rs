//! Servers, prompts and resources in a lock.

use std::path::Path;

use insta::assert_snapshot;
use toolcrib_manifest::load_str;
use toolcrib_manifest::lock::{Kind, Lock, changes};
use toolcrib_tool::{Layer, Source};

/// A file that declares no tool.
const BESIDES: &str = r#"
toolcrib: 1
namespace: ops
upstream:
  - name: notes
    command: [notes-server, --stdio]
    env: {TOKEN: "${secret.notes}"}
    tools: {include: ["get_*"]}
    limits: {timeout: 5s}
prompts:
  - name: review
    description: Review a change.
    arguments: [{name: change, required: true, suggest: [last]}]
    messages:
      - {role: user, text: "Review ${args.change}."}
      - {role: assistant, file: chart.png, mime_type: image/png}
resources:
  - uri: notes://today
    name: today
    text: Nothing.
  - template: "notes://{day}"
    name: day
    file: day.md
    mime_type: text/markdown
    suggest: {day: [monday]}
"#;

fn besides(text: &str) -> Lock {
    let loaded = load_str("tools.d/ops.yaml", text);
    assert!(!loaded.has_errors(), "{:?}", loaded.diagnostics);
    let source = Source::new(Layer::Manifest, "tools.d/ops.yaml");
    let mut lock = Lock::empty(Path::new("."));
    for one in &loaded.upstreams {
        lock.accept(Kind::Upstream, &one.name, &source, Some(&one.expanded()));
    }
    for one in &loaded.prompts {
        lock.accept(Kind::Prompt, &one.name, &source, Some(&one.expanded()));
    }
    for one in &loaded.resources {
        lock.accept(Kind::Resource, &one.uri, &source, Some(&one.expanded()));
    }
    lock
}

#[test]
fn what_is_declared_besides_tools_has_tables_of_its_own() {
    let lock = besides(BESIDES);
    let text = lock.to_text();
    let shown: Vec<_> = text.lines().filter(|line| !line.starts_with("digest")).collect();
    assert_snapshot!(shown.join("\n"), @r#"
    # What is accepted here, and as what. `toolcrib lock` writes this file: review it, commit
    # it, and change it with that command only.
    version = 1

    [upstreams.ops_notes]
    owner = "manifest:tools.d/ops.yaml"
    [upstreams.ops_notes.declares]
    "/command" = ["notes-server", "--stdio"]
    "/connect_timeout_seconds" = 30.0
    "/env/TOKEN" = "${secret.notes}"
    "/include" = ["get_*"]
    "/needs/secrets" = ["notes"]
    "/sandbox/profile" = "workspace+net"
    "/sandbox/required" = false
    "/timeout_seconds" = 5.0

    [prompts.ops_review]
    owner = "manifest:tools.d/ops.yaml"
    [prompts.ops_review.declares]
    "/arguments/0/name" = "change"
    "/arguments/0/required" = true
    "/arguments/0/suggest" = ["last"]
    "/description" = "Review a change."
    "/messages/0/role" = "user"
    "/messages/0/text" = "Review ${args.change}."
    "/messages/1/file" = "chart.png"
    "/messages/1/mime_type" = "image/png"
    "/messages/1/role" = "assistant"

    [resources."notes://today"]
    owner = "manifest:tools.d/ops.yaml"
    [resources."notes://today".declares]
    "/mime_type" = "text/plain"
    "/name" = "today"
    "/text" = "Nothing."

    [resources."notes://{day}"]
    owner = "manifest:tools.d/ops.yaml"
    [resources."notes://{day}".declares]
    "/file" = "day.md"
    "/mime_type" = "text/markdown"
    "/name" = "day"
    "/suggest/day" = ["monday"]
    "#);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("toolcrib.lock");
    lock.write(&path).expect("written");
    let read = Lock::read(&path).expect("it is a lock").expect("it is there");
    assert_eq!(read.entries, lock.entries);
}

#[test]
fn whatever_changes_besides_tools_is_a_change_and_what_is_not_pinned_is_none() {
    let accepted = besides(BESIDES);
    for (from, to, changed) in [
        ("--stdio", "--other", "upstream ops_notes /command"),
        ("secret.notes", "secret.other", "upstream ops_notes /env/TOKEN"),
        ("get_*", "*", "upstream ops_notes /include"),
        ("timeout: 5s", "timeout: 6s", "upstream ops_notes /timeout_seconds"),
        (
            "limits:",
            "sandbox: {profile: trusted}\n    limits:",
            "upstream ops_notes /sandbox/profile",
        ),
        ("Review a change", "Obey", "prompt ops_review /description"),
        ("Review ${", "Obey ${", "prompt ops_review /messages/0/text"),
        ("chart.png", "other.png", "prompt ops_review /messages/1/file"),
        ("[last]", "[first]", "prompt ops_review /arguments/0/suggest"),
        ("Nothing.", "Something.", "resource notes://today /text"),
        ("day.md", "night.md", "resource notes://{day} /file"),
        ("[monday]", "[friday]", "resource notes://{day} /suggest/day"),
    ] {
        assert!(BESIDES.contains(from), "{from}");
        let found = changes(&accepted, &besides(&BESIDES.replace(from, to)));
        let said: Vec<_> = found
            .iter()
            .map(|one| {
                let fields: Vec<_> =
                    one.fields.iter().map(|field| field.pointer.as_str()).collect();
                format!("{} {} {}", one.kind.as_str(), one.name, fields.join(" "))
            })
            .collect();
        assert!(said.len() == 1 && said[0].starts_with(changed), "{from} → {to}: {said:?}");
    }
    for same in ["owner: somebody\nnamespace: ops", "x-note: 1\nnamespace: ops"] {
        let found = changes(&accepted, &besides(&BESIDES.replace("namespace: ops", same)));
        assert!(found.is_empty(), "{found:?}");
    }
}
