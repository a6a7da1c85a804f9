//! How editors and deployments put a new text where an old one was.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Command;
use std::time::Duration;

use toolcrib::ToolCall;
use toolcrib::manifests::Manifests;
use toolcrib::runners::RunnerHost;

use crate::crib::{Followed, follow, says};

fn described(tool: &str, description: &str) -> String {
    says(tool, tool).replace("Say what it says.", description)
}

/// Whether the tool `a` has this description.
fn is(description: &str) -> impl Fn(&Followed) -> bool + '_ {
    move |followed| followed.tool("a").as_deref() == Some(description)
}

#[test]
fn every_way_of_saving_is_live() {
    let followed = Followed::with(&[("a.yaml", &described("a", "Zero."))]);
    let path = followed.path("a.yaml");

    // nano, VS Code: the file is emptied and written.
    fs::write(&path, described("a", "In place.")).unwrap();
    followed.until("written in place", is("In place."));

    // sed -i, most deployments: a new file is renamed over the old one.
    fs::write(followed.path("sedXYZ"), described("a", "Renamed over.")).unwrap();
    fs::rename(followed.path("sedXYZ"), &path).unwrap();
    followed.until("renamed over", is("Renamed over."));

    // vim: the old file is moved aside, a new one written, the old one deleted.
    fs::rename(&path, followed.path("a.yaml~")).unwrap();
    fs::write(&path, described("a", "Aside.")).unwrap();
    fs::remove_file(followed.path("a.yaml~")).unwrap();
    followed.until("moved aside", is("Aside."));

    // emacs: a backup is copied, the file is written in place.
    fs::copy(&path, followed.path("#a.yaml#")).unwrap();
    fs::write(&path, described("a", "Backed up.")).unwrap();
    followed.until("with a backup", is("Backed up."));

    // A file that is linked into place has no writer that closes it.
    fs::write(followed.outer.path().join("linked"), described("b", "Linked.")).unwrap();
    fs::hard_link(followed.outer.path().join("linked"), followed.path("b.yaml")).unwrap();
    followed.until("linked", |followed| followed.tool("b").is_some());

    // The real ones, where they are installed.
    let sed = Command::new("sed").args(["-i", "s/Backed up/By sed/"]).arg(&path).status();
    if sed.is_ok_and(|status| status.success()) {
        followed.until("by sed", is("By sed."));
    }
    let vim = Command::new("vim")
        .args(["-u", "NONE", "-es", "-c", "%s/description: .*/description: By vim./", "-c", "wq"])
        .arg(&path)
        .status();
    if vim.is_ok_and(|status| status.success()) {
        followed.until("by vim", is("By vim."));
    }
}

#[test]
fn half_a_file_is_not_looked_at() {
    let followed = Followed::with(&[("a.yaml", &described("a", "Whole."))]);
    let whole = described("a", "Two.") + &described("b", "More.")[18..];
    let (first, second) = whole.split_at(described("a", "Two.").len());
    let mut file =
        OpenOptions::new().write(true).truncate(true).open(followed.path("a.yaml")).unwrap();
    file.write_all(first.as_bytes()).unwrap();
    file.sync_all().unwrap();
    // Valid by itself, and twice the time that anything is waited for.
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(followed.tool("a").as_deref(), Some("Whole."));
    file.write_all(second.as_bytes()).unwrap();
    drop(file);
    followed.until("both are there", |followed| {
        followed.tool("a").as_deref() == Some("Two.") && followed.tool("b").is_some()
    });
}

#[test]
fn a_broken_save_keeps_the_last_good_tools_and_the_next_good_one_mends_it() {
    let followed = Followed::with(&[("a.yaml", &described("a", "Good."))]);
    fs::write(followed.path("a.yaml"), "toolcrib: 1\ntools: [").unwrap();
    followed.until("stale", |followed| followed.state("a.yaml") == Some("stale"));
    assert_eq!(followed.tool("a").as_deref(), Some("Good."));
    fs::write(followed.path("a.yaml"), described("a", "Better.")).unwrap();
    followed.until("mended", is("Better."));
    assert_eq!(followed.state("a.yaml"), Some("live"));
}

#[test]
fn what_is_deleted_goes_and_what_is_renamed_stays() {
    let followed =
        Followed::with(&[("a.yaml", &described("a", "A.")), ("b.yaml", &described("b", "B."))]);
    fs::rename(followed.path("a.yaml"), followed.path("z.yaml")).unwrap();
    fs::remove_file(followed.path("b.yaml")).unwrap();
    followed.until("b is gone", |followed| followed.tool("b").is_none());
    assert_eq!(followed.tool("a").as_deref(), Some("A."));
    assert_eq!(followed.state("z.yaml"), Some("live"));
    assert_eq!(followed.state("a.yaml"), None);
}

#[test]
fn a_directory_that_vanishes_loses_nothing_and_is_followed_when_it_returns() {
    let followed = Followed::with(&[("a.yaml", &described("a", "A."))]);
    fs::rename(&followed.dir, followed.outer.path().join("away")).unwrap();
    followed.until("stale", |followed| followed.state("a.yaml") == Some("stale"));
    assert_eq!(followed.tool("a").as_deref(), Some("A."));

    fs::create_dir(&followed.dir).unwrap();
    fs::write(followed.path("a.yaml"), described("a", "Back.")).unwrap();
    followed.until("back", is("Back."));
    // The new directory is watched as the old one was.
    fs::write(followed.path("a.yaml"), described("a", "Again.")).unwrap();
    followed.until("again", is("Again."));
}

#[test]
fn a_directory_that_is_not_there_yet_may_come() {
    let outer = tempfile::tempdir().unwrap();
    let dir = outer.path().join("etc/toolcrib/tools.d");
    let crib = follow(&dir, outer.path());
    let followed = Followed { outer, dir, crib };
    fs::create_dir_all(&followed.dir).unwrap();
    fs::write(followed.path("a.yaml"), described("a", "First.")).unwrap();
    followed.until("there", is("First."));
}

#[test]
fn a_config_map_is_swapped_as_a_whole() {
    let outer = tempfile::tempdir().unwrap();
    let dir = outer.path().join("tools.d");
    fs::create_dir(&dir).unwrap();
    let version = |number: u32| {
        let data = dir.join(format!("..2026_{number}"));
        fs::create_dir(&data).unwrap();
        for tool in ["a", "b"] {
            let text = described(tool, &format!("Version {number}."));
            fs::write(data.join(format!("{tool}.yaml")), text).unwrap();
        }
        symlink(&data, dir.join("..data_tmp")).unwrap();
        fs::rename(dir.join("..data_tmp"), dir.join("..data")).unwrap();
    };
    version(1);
    for tool in ["a", "b"] {
        symlink(format!("..data/{tool}.yaml"), dir.join(format!("{tool}.yaml"))).unwrap();
    }
    let crib = follow(&dir, outer.path());
    let followed = Followed { outer, dir: dir.clone(), crib };
    for number in 2..5 {
        version(number);
        fs::remove_dir_all(dir.join(format!("..2026_{}", number - 1))).unwrap();
        let text = format!("Version {number}.");
        followed.until("swapped", |followed| {
            let turn = followed.crib.turn();
            let says = |tool| turn.describe(tool).map(|tool| tool.description().to_owned());
            assert_eq!(says("a"), says("b"), "one of them came first");
            says("a").as_deref() == Some(text.as_str())
        });
    }
}

#[test]
fn a_directory_behind_a_link_may_be_another_one() {
    let outer = tempfile::tempdir().unwrap();
    for (release, description) in [("one", "One."), ("two", "Two.")] {
        fs::create_dir(outer.path().join(release)).unwrap();
        fs::write(outer.path().join(release).join("a.yaml"), described("a", description)).unwrap();
    }
    let dir = outer.path().join("current");
    symlink("one", &dir).unwrap();
    // Not the folder of the link: programs could replace it, so none would start.
    let work = outer.path().join("work");
    fs::create_dir(&work).unwrap();
    let crib = follow(&dir, &work);
    let followed = Followed { outer, dir, crib };
    symlink("two", followed.outer.path().join("next")).unwrap();
    fs::rename(followed.outer.path().join("next"), &followed.dir).unwrap();
    followed.until("released", is("Two."));
    fs::write(followed.path("a.yaml"), described("a", "Three.")).unwrap();
    followed.until("followed", is("Three."));
}

#[test]
fn a_link_to_nothing_keeps_its_last_good_tools_until_it_goes_itself() {
    let followed = Followed::with(&[]);
    let target = followed.outer.path().join("target.yaml");
    fs::write(&target, says("a", "one")).unwrap();
    symlink(&target, followed.path("a.yaml")).unwrap();
    followed.until("linked", |followed| followed.tool("a").is_some());

    fs::remove_file(&target).unwrap();
    followed.until("stale", |followed| followed.state("a.yaml") == Some("stale"));
    assert!(followed.tool("a").is_some());
    fs::write(&target, says("a", "two")).unwrap();
    followed.until("back", |followed| followed.state("a.yaml") == Some("live"));

    fs::remove_file(&target).unwrap();
    followed.until("stale again", |followed| followed.state("a.yaml") == Some("stale"));
    fs::remove_file(followed.path("a.yaml")).unwrap();
    followed.until("gone", |followed| followed.tool("a").is_none());

    // One that never led anywhere is told, too.
    symlink("nowhere.yaml", followed.path("b.yaml")).unwrap();
    followed.until("broken", |followed| followed.state("b.yaml") == Some("broken"));
    fs::remove_file(followed.path("b.yaml")).unwrap();
    followed.until("forgotten", |followed| followed.state("b.yaml").is_none());
}

#[test]
fn a_file_that_becomes_readable_is_read() {
    let followed = Followed::with(&[("a.yaml", &described("a", "A."))]);
    // Root reads what nobody may: an unreadable file is only seen by others.
    fs::write(followed.path("b.yaml"), described("b", "B.")).unwrap();
    followed.until("there", |followed| followed.tool("b").is_some());
    fs::set_permissions(followed.path("b.yaml"), fs::Permissions::from_mode(0o000)).unwrap();
    let crib = follow(&followed.dir, followed.outer.path());
    fs::set_permissions(followed.path("b.yaml"), fs::Permissions::from_mode(0o644)).unwrap();
    let again = Followed { outer: tempfile::tempdir().unwrap(), dir: followed.dir.clone(), crib };
    again.until("read", |followed| followed.tool("b").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_and_turns_keep_what_they_began_with() {
    let slow = says("a", "old").replace("[echo, \"old\"]", "[sh, -c, 'sleep 0.3; echo old']");
    let followed = Followed::with(&[("a.yaml", &slow)]);
    let turn = followed.crib.turn();
    let (running, pinned) = (turn.clone(), turn.clone());
    let call = tokio::spawn(async move { running.call(ToolCall::new("1", "a", "{}")).await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    fs::remove_file(followed.path("a.yaml")).unwrap();
    tokio::task::block_in_place(|| followed.until("gone", |f| f.tool("a").is_none()));
    assert_eq!(call.await.unwrap().text().trim(), "old");
    assert_eq!(pinned.call(ToolCall::new("2", "a", "{}")).await.text().trim(), "old");
}

#[test]
fn a_reload_by_hand_needs_no_watching() {
    let outer = tempfile::tempdir().unwrap();
    let found = Manifests::load(&[outer.path().to_owned()], RunnerHost::new(outer.path()));
    let crib = toolcrib::Toolcrib::builder().manifests(&found).build().unwrap();
    fs::write(outer.path().join("a.yaml"), described("a", "A.")).unwrap();
    assert!(crib.turn().describe("a").is_none());
    assert_eq!(crib.manifests().unwrap().reload().events.len(), 1);
    assert!(crib.turn().describe("a").is_some());
}

/// In a process of its own: the other tests of this one start and end such threads all the time.
#[test]
fn the_thread_ends_with_the_crib() {
    const ALONE: &str = "TOOLCRIB_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "dances::the_thread_ends_with_the_crib"])
            .env(ALONE, "1")
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    }
    let followed = Followed::with(&[("a.yaml", &described("a", "A."))]);
    let manifests = followed.crib.manifests().unwrap().clone();
    manifests.watch().unwrap();
    let threads = || {
        let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        let names = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
        names.filter(|name| name.starts_with("toolcrib-manif")).count()
    };
    followed.until("the thread is there", |_| threads() == 1);
    drop(followed.crib);
    drop(manifests);
    for _ in 0..1000 {
        if threads() == 0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("it is still there");
}
