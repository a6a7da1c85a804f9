//! The same trees and paths given to another implementation: cap-std says what they lead to.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use proptest::prelude::*;
use toolcrib_sandbox::{Kind, LockTable, Workspace, WorkspaceError};

use super::{LOOKUPS, scratch, with_lookup};

#[derive(Debug, Clone)]
enum NodeKind {
    File,
    Folder,
    Link(String),
}

/// Few names, so that paths meet what is there.
fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", "out"]).prop_map(str::to_owned)
}

fn path() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        6 => name(),
        2 => Just("..".to_owned()),
        1 => Just(".".to_owned()),
    ];
    let parts = prop::collection::vec(part, 1..6);
    (parts, prop::sample::select(vec!["", "", "", "", "/", "//"]), prop::bool::weighted(0.05))
        .prop_map(|(parts, end, absolute)| {
            format!("{}{}{end}", if absolute { "/" } else { "" }, parts.join("/"))
        })
}

fn tree() -> impl Strategy<Value = Vec<(Vec<String>, NodeKind)>> {
    let thing = prop_oneof![
        2 => Just(NodeKind::File),
        2 => Just(NodeKind::Folder),
        3 => path().prop_map(NodeKind::Link),
    ];
    prop::collection::vec((prop::collection::vec(name(), 1..4), thing), 0..12)
}

/// Puts it all there that can be: what is in the way of something else stays. No link is followed
/// on the way, so that the surroundings stay as they are.
fn plant(root: &Path, tree: &[(Vec<String>, NodeKind)]) {
    for (names, thing) in tree {
        let mut place = root.to_owned();
        let (last, folders) = names.split_last().unwrap();
        for folder in folders {
            place.push(folder);
            let _ = fs::create_dir(&place);
            if !fs::symlink_metadata(&place).unwrap().is_dir() {
                break;
            }
        }
        if !fs::symlink_metadata(&place).unwrap().is_dir() {
            continue;
        }
        place.push(last);
        if fs::symlink_metadata(&place).is_ok() {
            continue;
        }
        match thing {
            NodeKind::File => fs::write(&place, names.join("/")).unwrap(),
            NodeKind::Folder => fs::create_dir(&place).unwrap(),
            NodeKind::Link(target) => symlink(target, &place).unwrap(),
        }
    }
}

/// What reading comes to, as far as both can say it.
fn by_oracle(dir: &Dir, path: &str) -> Result<Vec<u8>, &'static str> {
    // It has no root that a path could begin with.
    if path.starts_with('/') {
        return Err("no");
    }
    dir.read(path).map_err(|_| "no")
}

proptest! {
    #[test]
    fn the_same_paths_lead_to_the_same_files(
        tree in tree(),
        paths in prop::collection::vec(path(), 1..12),
    ) {
        let home = scratch();
        let root = home.path().join("a/b");
        fs::create_dir_all(&root).unwrap();
        fs::write(home.path().join("a/c"), "outside").unwrap();
        fs::create_dir(home.path().join("c")).unwrap();
        fs::write(home.path().join("c/a"), "outside").unwrap();
        plant(&root, &tree);
        let dir = Dir::open_ambient_dir(&root, ambient_authority()).unwrap();
        for lookup in LOOKUPS {
            let workspace = with_lookup(Workspace::builder(&root).locks(&LockTable::new()), lookup);
            for path in &paths {
                let ours = workspace.read(path, 1 << 20);
                let theirs = by_oracle(&dir, path);
                prop_assert_eq!(ours.as_ref().ok(), theirs.as_ref().ok(), "{} {:?}", lookup, path);
                prop_assert_ne!(ours.ok(), Some(b"outside".to_vec()));
                // What there is, too: kinds, and whether anything.
                let ours = match workspace.look(path) {
                    Ok(Some(entry)) => Some(entry.kind == Kind::Folder),
                    Ok(None) | Err(_) => None,
                };
                let theirs = if path.starts_with('/') { None } else { dir.metadata(path).ok() };
                prop_assert_eq!(ours, theirs.map(|meta| meta.is_dir()), "{} {:?}", lookup, path);
            }
        }
    }

    /// Whatever is written, deleted or made: what is outside stays as it is.
    #[test]
    fn no_change_reaches_the_surroundings(
        tree in tree(),
        deeds in prop::collection::vec((0..5_u8, path()), 1..12),
    ) {
        for lookup in LOOKUPS {
            let home = scratch();
            let root = home.path().join("a/b");
            fs::create_dir_all(&root).unwrap();
            fs::write(home.path().join("a/c"), "outside").unwrap();
            fs::write(home.path().join("c"), "outside").unwrap();
            plant(&root, &tree);
            let table = LockTable::new();
            let workspace = with_lookup(Workspace::builder(&root).locks(&table), lookup);
            for (deed, path) in &deeds {
                let done = match deed {
                    0 => workspace.write(path, b"new").map(drop),
                    1 => workspace.append(path, b"new").map(drop),
                    2 => workspace.make_folder(path).map(drop),
                    3 => workspace.remove(path).map(drop),
                    _ => workspace.remove_all(path, 1000).map(drop),
                };
                // What was written is there, and by another way, too.
                if *deed == 0 && done.is_ok() {
                    prop_assert_eq!(workspace.read(path, 9).unwrap(), b"new");
                    if let Some(inside) = path.strip_prefix('/').map_or(Some(path), |_| None) {
                        let dir = Dir::open_ambient_dir(&root, ambient_authority()).unwrap();
                        prop_assert_eq!(dir.read(inside).unwrap(), b"new");
                    }
                }
                prop_assert!(!matches!(done, Err(WorkspaceError::Busy)));
            }
            prop_assert!(table.is_empty());
            prop_assert_eq!(fs::read_to_string(home.path().join("a/c")).unwrap(), "outside");
            prop_assert_eq!(fs::read_to_string(home.path().join("c")).unwrap(), "outside");
            let names = |path: &Path| {
                let names = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name());
                let mut names: Vec<_> = names.collect();
                names.sort();
                names
            };
            prop_assert_eq!(names(home.path()), ["a", "c"]);
            prop_assert_eq!(names(&home.path().join("a")), ["b", "c"]);
        }
    }
}
