//! The control plane of a server: what file tools do not change, and what they do not see.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use toolcrib_sandbox::{ControlPlane, LockTable, Places, WalkControl, Workspace, WorkspaceError};

use super::{LOOKUPS, with_lookup};

fn workspace(root: &Path, plane: &ControlPlane, lookup: &str) -> Workspace {
    let builder = Workspace::builder(root).control_plane(plane).locks(&LockTable::new());
    with_lookup(builder, lookup)
}

fn names(workspace: &Workspace) -> Vec<String> {
    let mut names = Vec::new();
    let walked = workspace.walk(".", 1000, &mut |visit| {
        names.push(visit.shown());
        WalkControl::Enter
    });
    assert!(!walked.unwrap().cut);
    names
}

fn is_protected<T: std::fmt::Debug>(outcome: &Result<T, WorkspaceError>) -> bool {
    matches!(outcome, Err(WorkspaceError::Protected))
}

fn is_sensitive<T: std::fmt::Debug>(outcome: &Result<T, WorkspaceError>) -> bool {
    matches!(outcome, Err(WorkspaceError::Sensitive))
}

#[test]
fn read_only_places_are_read_and_neither_changed_nor_lost_with_a_parent_folder() {
    for lookup in LOOKUPS {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        fs::write(dir.path().join("a/b/run.sh"), "true").unwrap();
        let plane = ControlPlane::new();
        let files = workspace(dir.path(), &plane, lookup);
        files.append("a/b/run.sh", b"\n").unwrap();

        // Takes effect in a workspace that is open already.
        let script = dir.path().join("a/b/run.sh");
        plane.set(Places::resolve([""; 0], [&script, &dir.path().join("a/later.sh")]));
        for path in ["a/b/run.sh", "a/b/RUN.sh", "a/./b/../b/run.sh", "a/later.sh", "A/Later.SH"] {
            assert!(is_protected(&files.write(path, b"evil")), "{lookup} {path}");
            assert!(is_protected(&files.append(path, b"evil")), "{lookup} {path}");
            assert!(files.make_folder(path).is_err(), "{lookup} {path}");
        }
        assert!(is_protected(&files.make_folder("a/later.sh")), "{lookup}");
        for path in ["a", "a/b", "a/b/run.sh"] {
            assert!(is_protected(&files.remove(path)), "{lookup} {path}");
            assert!(is_protected(&files.remove_all(path, 100)), "{lookup} {path}");
        }
        assert_eq!(files.read("a/b/run.sh", 10).unwrap(), b"true\n");
        assert!(names(&files).contains(&"a/b/run.sh".to_owned()));
        files.write("a/b/other.sh", b"mine").unwrap();

        plane.set(Places::default());
        files.write("a/b/run.sh", b"free").unwrap();
    }
}

#[test]
fn hidden_places_get_one_answer_whether_they_exist_and_are_in_no_list() {
    for lookup in LOOKUPS {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("state")).unwrap();
        fs::write(dir.path().join("state/runs"), "secret").unwrap();
        fs::write(dir.path().join("config.yml"), "server: {token: t}").unwrap();
        let plane = ControlPlane::new();
        let files = workspace(dir.path(), &plane, lookup);
        let hidden = ["config.yml", "config.toml", "state"].map(|name| dir.path().join(name));
        plane.set(Places::resolve(hidden, [""; 0]));
        for path in ["config.yml", "config.toml", "Config.YML", "state", "state/runs", "state/none"]
        {
            assert!(is_sensitive(&files.read(path, 100)), "{lookup} {path}");
            assert!(is_sensitive(&files.look(path)), "{lookup} {path}");
            assert!(is_sensitive(&files.write(path, b"")), "{lookup} {path}");
            assert!(is_sensitive(&files.remove_all(path, 9)), "{lookup} {path}");
            assert!(
                is_sensitive(&files.walk(path, 9, &mut |_| WalkControl::Enter)),
                "{lookup} {path}"
            );
        }
        assert_eq!(names(&files), [""; 0]);
    }
}

#[test]
fn a_link_is_as_protected_as_what_it_leads_to() {
    for lookup in LOOKUPS {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("v1")).unwrap();
        fs::write(dir.path().join("v1/run.sh"), "true").unwrap();
        symlink("v1", dir.path().join("current")).unwrap();
        let plane = ControlPlane::new();
        plane.set(Places::resolve([""; 0], [dir.path().join("current/run.sh")]));
        let files = workspace(dir.path(), &plane, lookup);
        assert!(is_protected(&files.write("v1/run.sh", b"evil")), "{lookup}");
        assert!(is_protected(&files.write("current/run.sh", b"evil")), "{lookup}");
        assert!(is_protected(&files.remove("current")), "{lookup}");
        assert!(is_protected(&files.remove_all("v1", 9)), "{lookup}");
    }
}

#[test]
fn a_workspace_inside_a_place_is_refused_as_a_whole() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("inside");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("a"), "a").unwrap();
    let plane = ControlPlane::new();
    let files = workspace(&root, &plane, "kernel");
    plane.set(Places::resolve([""; 0], [dir.path()]));
    assert!(is_protected(&files.write("a", b"b")) && files.read("a", 9).is_ok());
    plane.set(Places::resolve([dir.path()], [""; 0]));
    assert!(is_sensitive(&files.read("a", 9)));
}
