//! Writing, adding, editing, deleting: whole or not at all, and nothing beside it.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use toolcrib_sandbox::{Kind, LockTable, Workspace, WorkspaceError};

use super::fixture::Fixture;
use super::{LOOKUPS, kind, with_lookup};

fn names(path: &std::path::Path) -> Vec<String> {
    let names = fs::read_dir(path).unwrap();
    let mut names: Vec<_> =
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_file_keeps_its_mode_and_a_new_one_gets_what_the_umask_leaves() {
    let home = tempfile::tempdir().unwrap();
    let workspace = Workspace::builder(home.path()).locks(&LockTable::new()).open().unwrap();
    fs::write(home.path().join("run.sh"), "old").unwrap();
    let plain = fs::metadata(home.path().join("run.sh")).unwrap().mode();
    for mode in [0o755, 0o600, 0o640, 0o666] {
        let permissions = fs::Permissions::from_mode(mode);
        fs::set_permissions(home.path().join("run.sh"), permissions).unwrap();
        let written = workspace.write("run.sh", b"new").unwrap();
        assert_eq!((written.created, written.size), (false, 3));
        assert_eq!(fs::metadata(home.path().join("run.sh")).unwrap().mode() & 0o777, mode);
    }
    assert!(workspace.write("new.txt", b"").unwrap().created);
    assert_eq!(fs::metadata(home.path().join("new.txt")).unwrap().mode(), plain);
    assert_eq!(names(home.path()), ["new.txt", "run.sh"]);
}

#[test]
fn a_file_that_is_changed_no_longer_runs_with_its_owners_rights() {
    let home = tempfile::tempdir().unwrap();
    let workspace = Workspace::builder(home.path()).locks(&LockTable::new()).open().unwrap();
    let file = home.path().join("program");
    for bits in [0o4755, 0o2755, 0o6755, 0o4711, 0o2644] {
        for deed in ["write", "append", "update"] {
            fs::write(&file, "old").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(bits)).unwrap();
            match deed {
                "write" => workspace.write("program", b"new").map(drop).unwrap(),
                "append" => workspace.append("program", b"er").map(drop).unwrap(),
                _ => workspace
                    .update("program", 9, |_| Ok::<_, WorkspaceError>((Some(b"new".to_vec()), ())))
                    .unwrap(),
            }
            let mode = fs::metadata(&file).unwrap().mode() & 0o7777;
            assert_eq!(mode, bits & 0o777, "{deed} {bits:o}");
        }
    }
}

#[test]
fn root_leaves_a_file_to_its_owner() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can give files away");
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("theirs.txt");
    fs::write(&file, "old").unwrap();
    std::os::unix::fs::chown(&file, Some(4321), Some(1234)).unwrap();
    let workspace = Workspace::builder(home.path()).locks(&LockTable::new()).open().unwrap();
    workspace.write("theirs.txt", b"new").unwrap();
    let meta = fs::metadata(&file).unwrap();
    assert_eq!((meta.uid(), meta.gid()), (4321, 1234));
}

#[test]
fn the_other_name_of_a_file_keeps_its_content() {
    for deed in ["write", "append", "update"] {
        let fixture = Fixture::new("kernel");
        let workspace = &fixture.workspace;
        match deed {
            "write" => workspace.write("hard.txt", b"new").map(drop).unwrap(),
            "append" => workspace.append("hard.txt", b"er").map(drop).unwrap(),
            _ => workspace
                .update("hard.txt", 9, |_| Ok::<_, WorkspaceError>((Some(b"new".to_vec()), ())))
                .unwrap(),
        }
        assert_eq!(fs::read(fixture.home().join("outside/hard.txt")).unwrap(), b"hard", "{deed}");
        let inside = workspace.read("hard.txt", 9).unwrap();
        assert_eq!(inside, if deed == "append" { &b"harder"[..] } else { b"new" });
    }
}

#[test]
fn adding_makes_the_file_and_then_lets_it_grow() {
    let home = tempfile::tempdir().unwrap();
    let workspace = Workspace::builder(home.path()).locks(&LockTable::new()).open().unwrap();
    assert!(workspace.append("logs/today.log", b"one\n").unwrap().created);
    let inode = fs::metadata(home.path().join("logs/today.log")).unwrap().ino();
    let written = workspace.append("logs/today.log", b"two\n").unwrap();
    assert_eq!((written.created, written.size), (false, 8));
    assert_eq!(workspace.read("logs/today.log", 99).unwrap(), b"one\ntwo\n");
    // Whoever follows the file goes on following it.
    assert_eq!(fs::metadata(home.path().join("logs/today.log")).unwrap().ino(), inode);
}

#[test]
fn an_edit_of_what_somebody_else_has_changed_is_not_written() {
    for lookup in LOOKUPS {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("a.txt");
        fs::write(&file, "old").unwrap();
        let builder = Workspace::builder(home.path()).locks(&LockTable::new());
        let workspace = with_lookup(builder, lookup);
        let edit = |meanwhile: &dyn Fn()| {
            workspace.update("a.txt", 99, |content| {
                meanwhile();
                Ok::<_, WorkspaceError>((Some([&content[..], b"!"].concat()), ()))
            })
        };
        edit(&|| ()).unwrap();
        let changed = [
            edit(&|| fs::write(&file, "theirs").unwrap()),
            edit(&|| fs::remove_file(&file).unwrap()),
        ];
        for outcome in changed {
            assert_eq!(kind(&outcome.unwrap_err()), "Changed");
        }
        fs::write(&file, "old").unwrap();
        let replaced = edit(&|| {
            fs::write(home.path().join("b.txt"), "old").unwrap();
            fs::rename(home.path().join("b.txt"), &file).unwrap();
        });
        assert_eq!(kind(&replaced.unwrap_err()), "Changed");
        assert_eq!(fs::read(&file).unwrap(), b"old");
        assert_eq!(names(home.path()), ["a.txt"], "a draft was left behind");
    }
}

#[test]
fn an_edit_that_is_refused_or_makes_no_difference_writes_nothing() {
    let fixture = Fixture::new("kernel");
    let inode = || fs::metadata(fixture.root().join("a.txt")).unwrap().ino();
    let before = inode();
    let refused = fixture
        .workspace
        .update("a.txt", 99, |_| Err::<(Option<Vec<u8>>, ()), _>(WorkspaceError::Malformed("no")));
    assert_eq!(kind(&refused.unwrap_err()), "Malformed");
    let same =
        fixture.workspace.update("a.txt", 99, |content| Ok::<_, WorkspaceError>((None, content)));
    assert_eq!(same.unwrap(), b"alpha");
    assert_eq!(inode(), before);
    assert!(fixture.locks.is_empty());
}

#[test]
fn deleting_a_folder_follows_no_link_and_stops_at_its_budget() {
    for lookup in LOOKUPS {
        let fixture = Fixture::new(lookup);
        let untouchable = fixture.untouchable();
        let root = fixture.root();
        fs::create_dir_all(root.join("big/inner")).unwrap();
        for number in 0..20 {
            fs::write(root.join(format!("big/inner/{number}")), "x").unwrap();
        }
        symlink("../../outside", root.join("big/out")).unwrap();
        symlink("../dir", root.join("big/dir")).unwrap();
        let too_many = fixture.workspace.remove_all("big", 10).unwrap_err();
        assert_eq!(kind(&too_many), "TooMany");
        assert_eq!(fs::read_dir(root.join("big/inner")).unwrap().count(), 20);
        let removed = fixture.workspace.remove_all("big", 100).unwrap();
        assert_eq!((removed.kind, removed.count), (Kind::Folder, 24));
        assert!(!root.join("big").exists() && root.join("dir/sibling.txt").exists());
        assert_eq!(fixture.untouchable(), untouchable);
    }
}

#[test]
fn a_folder_with_something_protected_in_it_stays_whole() {
    let fixture = Fixture::new("kernel");
    assert_eq!(kind(&fixture.workspace.remove_all("sub", 100).unwrap_err()), "Protected");
    assert_eq!(fixture.workspace.read("sub/.git/HEAD", 9).unwrap(), b"head");
}

#[test]
fn what_is_protected_can_be_said_otherwise() {
    let home = tempfile::tempdir().unwrap();
    let builder = Workspace::builder(home.path()).locks(&LockTable::new());
    let workspace = builder.protected_names(["dist", "a/b"]).open().unwrap();
    assert!(workspace.write(".vscode/settings.json", b"{}").is_ok());
    assert_eq!(kind(&workspace.write("x/dist/y", b"").unwrap_err()), "Protected");
    assert_eq!(kind(&workspace.write("x/a/b/y", b"").unwrap_err()), "Protected");
    assert!(workspace.write("x/a/c", b"").is_ok());
}

#[test]
fn credentials_in_home_folders_are_refused_wherever_the_root_is() {
    let home = std::env::home_dir().unwrap();
    let Ok(workspace) = Workspace::open(home.parent().unwrap()) else {
        eprintln!("skipped: the folder of home folders cannot be opened");
        return;
    };
    for place in [".ssh/id_rsa", ".aws", ".kube/config", ".gnupg", ".netrc", ".config/gcloud/x"] {
        let path = home.join(place);
        let error = workspace.read(path.to_str().unwrap(), 9).unwrap_err();
        assert_eq!(kind(&error), "Sensitive", "{place}");
    }
    // And none of them may be the root.
    let inside = Workspace::builder("/proc").sensitive(["/proc"]).open().unwrap_err();
    assert!(inside.to_string().contains("never touched"), "{inside}");
}

#[test]
fn a_root_that_was_deleted_is_gone_for_good() {
    for lookup in LOOKUPS {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("project");
        fs::create_dir(&root).unwrap();
        let workspace = with_lookup(Workspace::builder(&root).locks(&LockTable::new()), lookup);
        assert!(!workspace.is_gone());
        fs::remove_dir(&root).unwrap();
        fs::create_dir(&root).unwrap();
        assert!(workspace.is_gone());
        assert_eq!(kind(&workspace.write("a.txt", b"x").unwrap_err()), "NotFound");
    }
}

#[test]
fn a_root_that_moves_is_still_the_root() {
    for lookup in LOOKUPS {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("project");
        fs::create_dir(&root).unwrap();
        let workspace = with_lookup(Workspace::builder(&root).locks(&LockTable::new()), lookup);
        fs::rename(&root, home.path().join("moved")).unwrap();
        workspace.write("a.txt", b"x").unwrap();
        assert_eq!(fs::read(home.path().join("moved/a.txt")).unwrap(), b"x");
        assert_eq!(kind(&workspace.write(".mcp.json", b"x").unwrap_err()), "Protected");
    }
}
