//! What is no ordinary file: nothing waits for it, nothing is read of it.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::mpsc;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use toolcrib_sandbox::{Kind, LockTable, WalkControl, Workspace, WorkspaceError};

use super::fixture::Fixture;
use super::{LOOKUPS, kind, with_lookup};

/// Runs something that must not wait for anybody; the limit is for a machine under load.
fn promptly<T: Send + 'static>(what: &'static str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, outcome) = mpsc::channel();
    std::thread::spawn(move || done.send(work()));
    outcome.recv_timeout(Duration::from_secs(60)).unwrap_or_else(|_| panic!("{what} waits"))
}

#[test]
fn a_fifo_that_nobody_talks_to_makes_nobody_wait() {
    for lookup in LOOKUPS {
        promptly("a FIFO", move || {
            let fixture = Fixture::new(lookup);
            let workspace = &fixture.workspace;
            assert_eq!(kind(&workspace.read("fifo", 9).unwrap_err()), "Special");
            assert_eq!(kind(&workspace.append("fifo", b"x").unwrap_err()), "Special");
            let mut opened = 0;
            let walk = |visit: &toolcrib_sandbox::Visit<'_>| {
                opened += usize::from(visit.kind() == Kind::Special && visit.open().is_err());
                WalkControl::Pass
            };
            workspace.walk(".", 100, &mut { walk }).unwrap();
            assert_eq!(opened, 2);
        });
    }
}

#[test]
fn a_fifo_with_a_reader_gets_nothing() {
    let fixture = Fixture::new("kernel");
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK;
    let reader =
        rustix::fs::openat(CWD, fixture.root().join("fifo"), flags, Mode::empty()).unwrap();
    assert_eq!(kind(&fixture.workspace.append("fifo", b"x").unwrap_err()), "Special");
    assert_eq!(rustix::io::read(&reader, &mut [0; 8]).unwrap(), 0);
}

#[test]
fn a_device_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let place = home.path().join("zero");
    let mode = Mode::from_raw_mode(0o666);
    if mknodat(CWD, &place, FileType::CharacterDevice, mode, makedev(1, 5)).is_err() {
        eprintln!("skipped: devices cannot be made here");
        return;
    }
    for lookup in LOOKUPS {
        let builder = Workspace::builder(home.path()).locks(&LockTable::new());
        let workspace = with_lookup(builder, lookup);
        assert_eq!(kind(&workspace.read("zero", 9).unwrap_err()), "Special");
        assert_eq!(kind(&workspace.write("zero", b"x").unwrap_err()), "Special");
        assert_eq!(kind(&workspace.append("zero", b"x").unwrap_err()), "Special");
    }
}

#[test]
fn a_huge_file_is_refused_before_it_is_read() {
    let fixture = Fixture::new("kernel");
    // 10 GiB with nothing in them: reading would fill the memory.
    match fixture.workspace.read("huge.bin", 1 << 20) {
        Err(WorkspaceError::TooLarge { size, limit }) => {
            assert_eq!((size, limit), (10 << 30, 1 << 20));
        }
        other => panic!("{other:?}"),
    }
    let exact = fixture.workspace.read("a.txt", 5);
    assert_eq!(exact.unwrap(), b"alpha");
    assert_eq!(kind(&fixture.workspace.read("a.txt", 4).unwrap_err()), "TooLarge");
}

#[test]
fn a_file_that_says_it_is_empty_and_is_not_is_held_to_the_limit() {
    let Ok(workspace) = Workspace::open("/proc/self") else {
        eprintln!("skipped: there is no /proc");
        return;
    };
    let whole = workspace.read("status", 1 << 20).unwrap();
    assert!(whole.starts_with(b"Name:"), "{whole:?}");
    assert_eq!(kind(&workspace.read("status", 10).unwrap_err()), "TooLarge");
    // Links of the kernel's own are not followed, though they are below the root.
    assert!(matches!(kind(&workspace.read("exe", 10).unwrap_err()).as_str(), "Loop" | "Outside"));
    assert!(matches!(
        kind(&workspace.read("root/etc/passwd", 10).unwrap_err()).as_str(),
        "Loop" | "Outside"
    ));
}

#[test]
fn a_folder_that_may_not_be_read_is_gone_through_where_the_system_can() {
    super::as_everybody(|| {
        for lookup in LOOKUPS {
            let fixture = Fixture::new(lookup);
            let deep = fixture.root().join("dir/deep");
            fs::set_permissions(&deep, fs::Permissions::from_mode(0o311)).unwrap();
            let read = fixture.workspace.read("dir/deep/er/leaf.txt", 9);
            let looked = fixture.workspace.look("dir/deep/er/leaf.txt");
            fs::set_permissions(&deep, fs::Permissions::from_mode(0o755)).unwrap();
            let root = fs::metadata(&deep).unwrap().uid() == 0;
            if root || lookup != "portable" {
                assert_eq!(read.unwrap(), b"leaf", "{lookup}");
                assert_eq!(looked.unwrap().unwrap().kind, Kind::File, "{lookup}");
            } else {
                assert_eq!(kind(&read.unwrap_err()), "NoPermission");
                assert_eq!(kind(&looked.unwrap_err()), "NoPermission");
            }
        }
    });
}

#[test]
fn what_may_not_be_read_can_be_looked_at() {
    super::as_everybody(|| {
        for lookup in LOOKUPS {
            let fixture = Fixture::new(lookup);
            let closed = fs::Permissions::from_mode(0o000);
            fs::set_permissions(fixture.root().join("a.txt"), closed).unwrap();
            let look = |path| fixture.workspace.look(path).unwrap().unwrap();
            assert_eq!((look("a.txt").kind, look("link").size), (Kind::File, 5), "{lookup}");
            assert_eq!(look("fifo").kind, Kind::Special, "{lookup}");
        }
    });
}

#[test]
fn who_may_not_is_told_so() {
    super::as_everybody(|| {
        let fixture = Fixture::new("kernel");
        let root = fixture.root();
        let set = |path: &str, mode| {
            fs::set_permissions(root.join(path), fs::Permissions::from_mode(mode)).unwrap();
        };
        set("a.txt", 0o000);
        set("b.txt", 0o444);
        set("dir", 0o000);
        let outcomes = [
            fixture.workspace.read("a.txt", 9).map(drop),
            fixture.workspace.write("b.txt", b"x").map(drop),
            fixture.workspace.read("dir/sibling.txt", 9).map(drop),
            fixture.workspace.walk("dir", 9, &mut |_| WalkControl::Enter).map(drop),
        ];
        set("dir", 0o755);
        // Root may everything; the rest is told why not.
        let root = fs::metadata(&root).unwrap().uid() == 0;
        for outcome in outcomes {
            match outcome {
                Ok(()) => assert!(root),
                Err(error) => assert_eq!((kind(&error).as_str(), root), ("NoPermission", false)),
            }
        }
    });
}
