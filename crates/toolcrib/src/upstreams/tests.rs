//! Who owns the name of an MCP server.

use toolcrib_mcp::upstream::{StdioServer, Upstream};

use super::declared::{Declared, File, FileChange};

fn file(name: &str) -> File {
    (0, name.to_owned())
}

/// An upstream whose program tells who declares it.
fn upstream(name: &str, program: &str) -> Upstream {
    Upstream::stdio(name, StdioServer::new(program))
}

fn replace(name: &str, upstreams: &[&str]) -> FileChange {
    FileChange::Replace(file(name), upstreams.iter().map(|one| upstream(one, name)).collect())
}

fn rename(from: &str, to: &str) -> FileChange {
    FileChange::Rename(file(from), file(to))
}

fn files(changes: Vec<FileChange>) -> Declared {
    let mut declared = Declared::default();
    declared.apply(changes);
    declared
}

#[test]
fn who_names_a_server_first_keeps_it_as_long_as_he_does() {
    let mut declared = files(vec![replace("b", &["notes"])]);
    // One that sorts before changes nothing …
    assert!(!declared.apply(vec![replace("a", &["notes"])]));
    assert_eq!(declared.wanted(), [upstream("notes", "b")]);
    // … until the other gives it up, and then the other does not get it back.
    assert!(declared.apply(vec![replace("b", &["other"])]));
    assert_eq!(declared.wanted(), [upstream("notes", "a"), upstream("other", "b")]);
    assert!(!declared.apply(vec![FileChange::Replace(
        file("b"),
        vec![upstream("other", "b"), upstream("notes", "b")],
    )]));
    assert!(declared.apply(vec![FileChange::Remove(file("a"))]));
    assert_eq!(declared.wanted(), [upstream("other", "b"), upstream("notes", "b")]);
}

#[test]
fn the_hosts_come_first_and_stay() {
    let mut declared = Declared::new(vec![upstream("notes", "host")]);
    assert!(!declared.apply(vec![replace("a", &["notes"])]));
    assert!(declared.apply(vec![replace("a", &["notes", "more"])]));
    assert_eq!(declared.wanted(), [upstream("notes", "host"), upstream("more", "a")]);
}

#[test]
fn a_file_that_is_renamed_keeps_its_servers_whatever_else_names_them() {
    let mut declared = files(vec![replace("b", &["notes"])]);
    declared.apply(vec![replace("a", &["notes"])]);
    assert!(!declared.apply(vec![rename("b", "z")]));
    assert_eq!(declared.wanted(), [upstream("notes", "b")]);
    // Over a file whose servers go with it.
    assert!(!declared.apply(vec![rename("z", "a")]));
    assert_eq!(declared.wanted(), [upstream("notes", "b")]);
    assert!(declared.apply(vec![FileChange::Remove(file("a"))]));
    assert_eq!(declared.wanted(), []);
}

#[test]
fn the_order_of_a_set_makes_no_difference() {
    let changes = || {
        vec![
            rename("a", "b"),
            rename("b", "a"),
            FileChange::Replace(file("b"), vec![upstream("one", "new")]),
            FileChange::Remove(file("c")),
            replace("d", &["three", "two"]),
        ]
    };
    let start =
        || files(vec![replace("a", &["one"]), replace("b", &["two"]), replace("c", &["three"])]);
    let expected = [upstream("two", "b"), upstream("one", "new"), upstream("three", "d")];
    let count = changes().len();
    for first in 0..count {
        for swap in 0..count {
            let mut set = changes();
            set.rotate_left(first);
            set.swap(0, swap);
            let mut declared = start();
            assert!(declared.apply(set));
            assert_eq!(declared.wanted(), expected, "{first}, {swap}");
        }
    }
}

#[test]
fn what_is_told_again_is_no_change() {
    let mut declared = files(vec![replace("a", &["one", "two"])]);
    assert!(!declared.apply(vec![replace("a", &["one", "two"]), replace("b", &[])]));
    assert!(declared.apply(vec![replace("a", &["two", "one"])]));
}
