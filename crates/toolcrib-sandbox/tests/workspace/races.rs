//! Somebody renames what is on the way, as fast as the machine can, while files are read and
//! written: no operation may ever come out elsewhere.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use toolcrib_sandbox::{LockTable, WalkControl, Workspace, WorkspaceError};

use super::{LOOKUPS, with_lookup};

/// Per scene and lookup: five scenes and two lookups make 200,000 and more.
const SWAPS: u64 = 22_000;

/// Operations per scene and lookup, at least: who swaps goes on until they are done.
const DEEDS: u64 = 2_000;

const SECRET: &[u8] = b"outside secret";

/// What is exchanged with what, and the path that goes over it.
const SCENES: [(&str, &str, &str); 5] = [
    // A folder on the way, and a link out of the project.
    ("dir", "out", "dir/file.txt"),
    // The same, deeper.
    ("top/dir", "top/out", "top/dir/file.txt"),
    // The file itself.
    ("dir/file.txt", "secret", "dir/file.txt"),
    // A folder that `..` goes back from, and one at another depth.
    ("top/dir", "shallow", "top/dir/../dir/file.txt"),
    // A link inside, and one that leads out.
    ("alias", "out", "alias/file.txt"),
];

fn scene(home: &Path) {
    let root = home.join("project");
    for folder in ["outside", "project/dir", "project/top/dir", "project/shallow/dir"] {
        fs::create_dir_all(home.join(folder)).unwrap();
    }
    fs::write(home.join("outside/file.txt"), SECRET).unwrap();
    for file in ["dir/file.txt", "top/dir/file.txt", "shallow/dir/file.txt", "shallow/file.txt"] {
        fs::write(root.join(file), "inside").unwrap();
    }
    symlink("../outside", root.join("out")).unwrap();
    symlink("../../outside", root.join("top/out")).unwrap();
    symlink("../outside/file.txt", root.join("secret")).unwrap();
    symlink("dir", root.join("alias")).unwrap();
}

#[test]
fn two_hundred_thousand_swaps_lead_nowhere_else() {
    let swaps = AtomicU64::new(0);
    let (mut reached, mut refused) = (0_u64, 0_u64);
    for lookup in LOOKUPS {
        for (a, b, path) in SCENES {
            let home = tempfile::tempdir().unwrap();
            scene(home.path());
            let root = home.path().join("project");
            let table = LockTable::new();
            let workspace = with_lookup(Workspace::builder(&root).locks(&table), lookup);
            let (over, deeds) = (AtomicBool::new(false), AtomicU64::new(0));
            std::thread::scope(|threads| {
                threads.spawn(|| {
                    let (a, b) = (root.join(a), root.join(b));
                    let mut done = 0;
                    while done < SWAPS || deeds.load(Ordering::Relaxed) < DEEDS {
                        renameat_with(CWD, &a, CWD, &b, RenameFlags::EXCHANGE).unwrap();
                        done += 1;
                    }
                    swaps.fetch_add(done, Ordering::Relaxed);
                    over.store(true, Ordering::Release);
                });
                while !over.load(Ordering::Acquire) {
                    let round = deeds.fetch_add(1, Ordering::Relaxed);
                    let done = deed(&workspace, path, round);
                    match done {
                        Ok(seen) => {
                            reached += 1;
                            assert_ne!(seen, SECRET, "{lookup} {path}: it was read");
                        }
                        Err(_) => refused += 1,
                    }
                }
            });
            assert!(table.is_empty());
            let outside: Vec<_> = fs::read_dir(home.path().join("outside"))
                .unwrap()
                .map(|entry| entry.unwrap().file_name())
                .collect();
            assert_eq!(outside, ["file.txt"], "{lookup} {path}");
            assert_eq!(fs::read(home.path().join("outside/file.txt")).unwrap(), SECRET);
        }
    }
    let swaps = swaps.into_inner();
    assert!(swaps >= 200_000, "{swaps}");
    // Both ends of the race were seen, or it was none.
    assert!(reached > 100 && refused > 100, "{reached} {refused}");
}

/// One of the operations, in turn. What is read is handed back.
fn deed(workspace: &Workspace, path: &str, round: u64) -> Result<Vec<u8>, WorkspaceError> {
    let folder = path.rsplit_once('/').unwrap().0;
    let beside = format!("{folder}/new-{}", round % 3);
    match round % 12 {
        0 => workspace.write(&beside, b"new").map(|_| Vec::new()),
        1 => workspace.append(&beside, b"more").map(|_| Vec::new()),
        2 => workspace.write(path, b"inside").map(|_| Vec::new()),
        3 => workspace.append(path, b"").map(|_| Vec::new()),
        4 => workspace.remove(&beside).map(|_| Vec::new()),
        5 => workspace.make_folder(&format!("{folder}/made/deep")).map(|_| Vec::new()),
        6 => workspace.remove_all(&format!("{folder}/made"), 100).map(|_| Vec::new()),
        7 => {
            let mut seen = Vec::new();
            workspace.walk(folder, 100, &mut |visit| {
                if let Ok(mut file) = visit.open() {
                    let content = file.read_all(100).unwrap_or_default();
                    if content == SECRET {
                        seen = content;
                    }
                }
                WalkControl::Enter
            })?;
            Ok(seen)
        }
        8 => workspace
            .update(path, 100, |content| Ok::<_, WorkspaceError>((Some(content.clone()), content))),
        _ => workspace.read(path, 100),
    }
}

#[test]
fn renames_elsewhere_keep_no_path_from_being_found() {
    let home = tempfile::tempdir().unwrap();
    scene(home.path());
    let workspace = Workspace::open(home.path().join("project")).unwrap();
    // The kernel gives up a path with `..` in it whenever something is renamed, wherever that is.
    let path = "dir/../".repeat(120) + "dir/file.txt";
    let elsewhere = tempfile::tempdir().unwrap();
    let (a, b) = (elsewhere.path().join("a"), elsewhere.path().join("b"));
    fs::write(&a, "").unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !over.load(Ordering::Acquire) {
                fs::rename(&a, &b).unwrap();
                fs::rename(&b, &a).unwrap();
            }
        });
        let found: Vec<_> = (0..300).map(|_| workspace.read(&path, 100)).collect();
        over.store(true, Ordering::Release);
        for content in found {
            assert_eq!(content.unwrap(), b"inside");
        }
    });
}
