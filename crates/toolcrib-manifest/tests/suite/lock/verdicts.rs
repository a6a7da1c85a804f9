//! What a lock says of each entry.

use std::path::Path;

use serde_json::json;
use toolcrib_manifest::lock::{
    Kind, Lock, LockMode, MismatchKind, apply_lock, apply_lock_to, digest_of,
};
use toolcrib_tool::{Layer, Source, ToolDefinition, ToolEntry};

fn entry(name: &str, layer: Layer, unit: &str, digest: Option<&str>) -> ToolEntry {
    let definition = ToolDefinition::builder(name).description("A tool.").build().expect("right");
    let entry = ToolEntry::client(definition, Source::new(layer, unit));
    match digest {
        Some(digest) => entry.with_digest(digest),
        None => entry,
    }
}

#[test]
fn each_entry_is_judged_by_its_owner_and_its_digest() {
    let mut lock = Lock::empty(Path::new("."));
    let locked = json!({"description": "A tool."});
    let same = digest_of(&locked);
    lock.accept(Kind::Tool, "t", &Source::new(Layer::Manifest, "tools.d/a.yaml"), Some(&locked));
    lock.accept(Kind::Tool, "n", &Source::new(Layer::Native, "crate-a"), None);
    lock.accept(
        Kind::Tool,
        "attempt_completion",
        &Source::new(Layer::Manifest, "tools.d/a.yaml"),
        Some(&locked),
    );

    let (m, n) = (Layer::Manifest, Layer::Native);
    let absolute = std::path::absolute("tools.d/a.yaml").expect("a path");
    let absolute = absolute.to_str().expect("text");
    // Entry, then what an enforced lock makes of it.
    let cases = [
        (entry("t", m, "tools.d/a.yaml", Some(&same)), "accepted"),
        (entry("t", m, absolute, Some(&same)), "accepted"),
        (entry("t", m, "tools.d/a.yaml", Some("blake3:other")), "blocked: changed"),
        (entry("t", m, "tools.d/b.yaml", Some(&same)), "moved"),
        (entry("t", m, "tools.d/b.yaml", Some("blake3:other")), "blocked: taken over"),
        (entry("t", Layer::Upstream, "tools.d/a.yaml", Some(&same)), "blocked: taken over"),
        (entry("t", n, "crate-a", None), "blocked: taken over"),
        (entry("u", m, "tools.d/a.yaml", Some(&same)), "blocked: unlisted"),
        (entry("u", Layer::Upstream, "github", None), "blocked: unlisted"),
        (entry("n", n, "crate-a", None), "accepted"),
        (entry("n", n, "crate-b", None), "blocked: taken over"),
        (entry("n", m, "tools.d/a.yaml", Some(&same)), "blocked: taken over"),
        (entry("new", n, "crate-b", None), "accepted"),
        (entry("new", Layer::Host, "host", None), "accepted"),
        (entry("attempt_completion", Layer::Fallback, "system", None), "accepted"),
    ];
    for (entry, expected) in cases {
        let what = format!("{} of {}", entry.name(), entry.source);
        let judged = |mode| {
            let (mut entries, findings) = apply_lock([entry.clone()], Some(&lock), mode);
            (entries.remove(0), findings)
        };
        let (enforced, findings) = judged(LockMode::Enforce);
        let verdict = findings.first().map(|found| match found.verdict {
            MismatchKind::Unlisted => "unlisted",
            MismatchKind::Changed => "changed",
            MismatchKind::TakenOver { .. } => "taken over",
            MismatchKind::Moved { .. } => "moved",
        });
        let said = match (verdict, enforced.is_blocked()) {
            (None, false) => "accepted".to_owned(),
            (Some(verdict), true) => format!("blocked: {verdict}"),
            (Some(verdict), false) => verdict.to_owned(),
            (None, true) => panic!("{what} is blocked for nothing"),
        };
        assert_eq!(said, expected, "{what}");
        assert_eq!(enforced.remark.is_some(), expected == "moved", "{what}");

        let (warned, findings) = judged(LockMode::Warn);
        assert!(!warned.is_blocked(), "{what}");
        assert_eq!(warned.remark.is_some(), !findings.is_empty(), "{what}");
        assert_eq!(expected == "accepted", findings.is_empty(), "{what}");
        let (untouched, findings) = judged(LockMode::Off);
        assert!(findings.is_empty() && untouched.remark.is_none() && !untouched.is_blocked());
    }
}

#[test]
fn where_there_is_no_lock_warning_says_nothing_and_enforcing_accepts_nothing() {
    let entries =
        || [entry("t", Layer::Manifest, "a.yaml", Some("x")), entry("n", Layer::Native, "c", None)];
    let (warned, findings) = apply_lock(entries(), None, LockMode::Warn);
    assert!(findings.is_empty() && warned.iter().all(|entry| entry.remark.is_none()));
    let (enforced, _) = apply_lock(entries(), None, LockMode::Enforce);
    let blocked: Vec<_> = enforced.iter().map(ToolEntry::is_blocked).collect();
    assert_eq!(blocked, [true, false]);
}

#[test]
fn a_changed_tool_of_another_server_is_blocked_wherever_the_lock_is_read() {
    let source = Source::new(Layer::Upstream, "notes");
    let mut lock = Lock::empty(Path::new("."));
    lock.accept(Kind::Tool, "notes_get", &source, Some(&json!({"description": "Get."})));
    let digest = digest_of(&json!({"description": "Get, and tell me."}));
    let judged = |mode, lock| {
        let lock: Option<&Lock> = lock;
        let found = apply_lock_to(Kind::Tool, "notes_get", &source, Some(&digest), lock, mode);
        found.map(|finding| (finding.verdict, finding.blocked))
    };
    assert_eq!(judged(LockMode::Off, Some(&lock)), None);
    assert_eq!(judged(LockMode::Warn, Some(&lock)), Some((MismatchKind::Changed, true)));
    assert_eq!(judged(LockMode::Enforce, Some(&lock)), Some((MismatchKind::Changed, true)));
    let empty = Lock::empty(Path::new("."));
    assert_eq!(judged(LockMode::Warn, Some(&empty)), Some((MismatchKind::Unlisted, false)));
    assert_eq!(judged(LockMode::Warn, None), None);
    assert_eq!(judged(LockMode::Enforce, None), Some((MismatchKind::Unlisted, true)));
}
