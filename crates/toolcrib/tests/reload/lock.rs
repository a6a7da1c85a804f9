//! The lock of a crib that follows its manifests: what it accepts meanwhile acts by itself.

use std::fs;
use std::path::{Path, PathBuf};

use toolcrib::lock::{LockKeeper, lock_of};
use toolcrib::manifest::lock::LockMode;
use toolcrib::manifests::Manifests;
use toolcrib::runners::RunnerHost;
use toolcrib::{ToolCall, Toolcrib};

use crate::crib::{Followed, says};

fn locked(files: &[(&str, &str)], mode: LockMode) -> Followed {
    Followed::made(files, |found, outer| {
        Toolcrib::builder().manifests(found).lock(LockKeeper::new(lock_file(outer), mode))
    })
}

fn lock_file(outer: &Path) -> PathBuf {
    outer.join("toolcrib.lock")
}

/// Accepts the files as they are, as `toolcrib lock` does.
fn accept(followed: &Followed) {
    let outer = followed.outer.path();
    let found = Manifests::load(std::slice::from_ref(&followed.dir), RunnerHost::new(outer));
    let declared = Toolcrib::builder().manifests(&found).build().unwrap();
    lock_of(&declared, &found, |_| None, None, outer).write(&lock_file(outer)).unwrap();
}

#[test]
fn a_lock_that_is_written_acts_without_a_reload() {
    let followed = locked(&[("a.yaml", &says("a", "one"))], LockMode::Enforce);
    assert_eq!(followed.tool("a"), None, "nothing was accepted yet");
    accept(&followed);
    followed.until("accepted", |followed| followed.tool("a").is_some());

    fs::write(followed.path("a.yaml"), says("a", "two")).unwrap();
    followed.until("changed", |followed| followed.tool("a").is_none());
    accept(&followed);
    followed.until("accepted again", |followed| followed.tool("a").is_some());

    // Gone for good, it accepts nothing; back, it does again.
    let lock = lock_file(followed.outer.path());
    let aside = followed.outer.path().join("aside");
    fs::rename(&lock, &aside).unwrap();
    followed.until("gone", |followed| followed.tool("a").is_none());
    fs::rename(&aside, &lock).unwrap();
    followed.until("back", |followed| followed.tool("a").is_some());
}

#[test]
fn a_lock_that_cannot_be_read_changes_nothing_until_it_can() {
    let followed = locked(&[("a.yaml", &says("a", "one"))], LockMode::Enforce);
    accept(&followed);
    followed.until("accepted", |followed| followed.tool("a").is_some());
    fs::write(lock_file(followed.outer.path()), "version = 1\n[tools").unwrap();
    followed.until("refused", |followed| followed.state("a.yaml") == Some("stale"));
    assert!(followed.tool("a").is_some());
    accept(&followed);
    followed.until("mended", |followed| followed.state("a.yaml") == Some("live"));
}

#[tokio::test]
async fn a_replaced_lock_blocks_the_next_call_before_manifests_are_read_again() {
    let outer = tempfile::TempDir::new().unwrap();
    let dir = outer.path().join("tools.d");
    let work = outer.path().join("work");
    fs::create_dir(&dir).unwrap();
    fs::create_dir(&work).unwrap();
    fs::write(dir.join("a.yaml"), says("a", "one")).unwrap();
    let found = Manifests::load(std::slice::from_ref(&dir), RunnerHost::new(&work));
    let declared = Toolcrib::builder().manifests(&found).build().unwrap();
    let accepted = lock_of(&declared, &found, |_| None, None, outer.path());
    accepted.write(&lock_file(outer.path())).unwrap();
    // Nothing follows the files here.
    let lock = LockKeeper::new(lock_file(outer.path()), LockMode::Enforce);
    let crib = Toolcrib::builder().manifests(&found).lock(lock).build().unwrap();
    let call = async || crib.turn().call(ToolCall::new("1", "a", "{}")).await;
    let first = call().await;
    assert!(first.is_success(), "{first:?}");

    let aside = outer.path().join("aside");
    let text = fs::read_to_string(lock_file(outer.path())).unwrap();
    fs::write(&aside, text.replace("blake3:", "blake3:0")).unwrap();
    fs::rename(&aside, lock_file(outer.path())).unwrap();
    let blocked = call().await;
    assert!(!blocked.is_success() && blocked.text().contains("blocked"), "{blocked:?}");
}
