//! Many at once: no update is lost, nobody sees half a file, and no lock is left.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use toolcrib_sandbox::{LockKey, LockMode, LockTable, Workspace, WorkspaceError};

use super::{LOOKUPS, scratch, with_lookup};

const TASKS: usize = 16;
const ROUNDS: usize = 60;

fn add_one(workspace: &Workspace, path: &str) {
    let done = workspace.update(path, 1 << 10, |content| {
        let number: u64 = String::from_utf8(content).unwrap().trim().parse().unwrap();
        Ok::<_, WorkspaceError>((Some(format!("{}\n", number + 1).into_bytes()), ()))
    });
    done.unwrap();
}

#[test]
fn sixteen_tasks_lose_no_update_and_see_no_half_file() {
    for lookup in LOOKUPS {
        let home = scratch();
        let root = home.path().join("project");
        fs::create_dir_all(root.join("dir")).unwrap();
        symlink("dir", root.join("alias")).unwrap();
        fs::write(root.join("dir/count"), "0\n").unwrap();
        let table = LockTable::new();
        // Two workspaces, one inside the other, and three ways to one file.
        let outer = with_lookup(Workspace::builder(&root).locks(&table), lookup);
        let inner = with_lookup(Workspace::builder(root.join("dir")).locks(&table), lookup);
        let ways = [(&outer, "dir/count"), (&outer, "alias/count"), (&inner, "count")];
        let block = |letter: char| letter.to_string().repeat(8000);
        outer.write("whole", block('a').as_bytes()).unwrap();
        let together = Barrier::new(TASKS);
        std::thread::scope(|threads| {
            for task in 0..TASKS {
                let (together, outer) = (&together, &outer);
                threads.spawn(move || {
                    together.wait();
                    let own = format!("own/{task}");
                    for round in 0..ROUNDS {
                        let (workspace, path) = ways[(task + round) % ways.len()];
                        add_one(workspace, path);
                        outer.append("log", format!("{task} {round} end\n").as_bytes()).unwrap();
                        outer.append(&own, b"x").unwrap();
                        let letter = char::from(b'a' + u8::try_from(task).unwrap());
                        outer.write("whole", block(letter).as_bytes()).unwrap();
                        let whole = outer.read("whole", 1 << 20).unwrap();
                        assert_eq!(whole.len(), 8000);
                        assert!(whole.iter().all(|byte| *byte == whole[0]), "half a file");
                        let log = String::from_utf8(outer.read("log", 1 << 20).unwrap()).unwrap();
                        assert!(log.lines().all(|line| line.ends_with(" end")), "half a line");
                    }
                });
            }
        });
        let count = outer.read("dir/count", 99).unwrap();
        assert_eq!(String::from_utf8(count).unwrap(), format!("{}\n", TASKS * ROUNDS));
        let log = String::from_utf8(outer.read("log", 1 << 20).unwrap()).unwrap();
        let mut lines: Vec<_> = log.lines().collect();
        lines.sort_unstable();
        lines.dedup();
        assert_eq!(lines.len(), TASKS * ROUNDS);
        for task in 0..TASKS {
            assert_eq!(outer.read(&format!("own/{task}"), 999).unwrap().len(), ROUNDS);
        }
        assert!(table.is_empty(), "{table:?}");
    }
}

fn key(name: &str) -> LockKey {
    LockKey { device: 1, folder: 1, name: name.to_owned() }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_millis(20)
}

fn at_leisure() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

#[test]
fn readers_share_and_a_writer_is_alone() {
    let table = LockTable::new();
    let one = table.lock([(key("a"), LockMode::Shared)], soon()).unwrap();
    let two = table.lock([(key("a"), LockMode::Shared)], soon()).unwrap();
    assert!(table.lock([(key("a"), LockMode::Exclusive)], soon()).is_none());
    // Nobody else is held up, and who waited in vain has left nothing behind.
    let other = table.lock([(key("b"), LockMode::Exclusive)], soon()).unwrap();
    let three = table.lock([(key("a"), LockMode::Shared)], soon()).unwrap();
    drop((one, two, three));
    let writer = table.lock([(key("a"), LockMode::Exclusive)], soon()).unwrap();
    assert!(table.lock([(key("a"), LockMode::Shared)], soon()).is_none());
    assert_eq!(table.len(), 2);
    drop((writer, other));
    assert!(table.is_empty());
}

#[test]
fn a_file_named_twice_is_locked_once_in_the_stronger_mode() {
    let table = LockTable::new();
    let both = [(key("a"), LockMode::Shared), (key("a"), LockMode::Exclusive)];
    let held = table.lock(both, soon()).unwrap();
    assert!(table.lock([(key("a"), LockMode::Shared)], soon()).is_none());
    drop(held);
    assert!(table.is_empty());
}

#[test]
fn a_set_of_locks_is_taken_whole_or_not_at_all() {
    let table = LockTable::new();
    let held = table.lock([(key("b"), LockMode::Exclusive)], soon()).unwrap();
    let names = ["a", "b", "c"];
    let wanted = names.map(|name| (key(name), LockMode::Exclusive));
    assert!(table.lock(wanted, soon()).is_none());
    assert_eq!(table.len(), 1);
    drop(held);
}

#[test]
fn locks_asked_for_in_any_order_never_wait_in_a_circle() {
    let table = LockTable::new();
    std::thread::scope(|threads| {
        for task in 0..TASKS {
            let table = &table;
            threads.spawn(move || {
                for round in 0..200 {
                    let names = ["a", "b", "c", "d"];
                    let mut keys: Vec<_> =
                        names.map(|name| (key(name), LockMode::Exclusive)).into();
                    keys.rotate_left((task + round) % 4);
                    keys.truncate(3);
                    assert!(table.lock(keys, at_leisure()).is_some(), "a circle");
                }
            });
        }
    });
    assert!(table.is_empty());
}

#[test]
fn a_writer_is_not_kept_out_by_readers_that_keep_coming() {
    let table = LockTable::new();
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                while !over.load(std::sync::atomic::Ordering::Relaxed) {
                    let first = table.lock([(key("a"), LockMode::Shared)], at_leisure());
                    std::thread::yield_now();
                    drop(first);
                }
            });
        }
        for _ in 0..100 {
            assert!(table.lock([(key("a"), LockMode::Exclusive)], at_leisure()).is_some());
        }
        over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
