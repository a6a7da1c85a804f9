//! Walks: everything once, in order, nothing through a link, and never more than the budget.

use std::fs;
use std::os::unix::fs::symlink;

use toolcrib_sandbox::{Kind, LockTable, WalkControl, Workspace};

use super::fixture::Fixture;
use super::{LOOKUPS, with_lookup};

fn seen(workspace: &Workspace, path: &str, budget: u64) -> (Vec<(String, Kind)>, bool) {
    let mut seen = Vec::new();
    let walked = workspace.walk(path, budget, &mut |visit| {
        seen.push((visit.shown(), visit.kind()));
        WalkControl::Enter
    });
    (seen, walked.unwrap().cut)
}

#[test]
fn a_walk_sees_everything_once_in_the_order_of_names() {
    for lookup in LOOKUPS {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(home.path().join("b/inner")).unwrap();
        for file in ["a", "b/inner/z", "b/x", "c"] {
            fs::write(home.path().join(file), file).unwrap();
        }
        symlink("b", home.path().join("l")).unwrap();
        let builder = Workspace::builder(home.path()).locks(&LockTable::new());
        let workspace = with_lookup(builder, lookup);
        let expected = [
            ("a", Kind::File),
            ("b", Kind::Folder),
            ("b/inner", Kind::Folder),
            ("b/inner/z", Kind::File),
            ("b/x", Kind::File),
            ("c", Kind::File),
            ("l", Kind::Link),
        ];
        let expected: Vec<_> = expected.map(|(name, kind)| (name.to_owned(), kind)).into();
        assert_eq!(seen(&workspace, ".", 7), (expected.clone(), false));
        assert_eq!(seen(&workspace, ".", 3), (expected[..3].to_vec(), true));
        assert_eq!(seen(&workspace, ".", 0), (Vec::new(), true));
        assert_eq!(seen(&workspace, "l", 9).0[0].0, "inner");
    }
}

#[test]
fn a_walk_leaves_out_what_is_sensitive() {
    let fixture = Fixture::new("kernel");
    let (seen, cut) = seen(&fixture.workspace, ".", 1000);
    assert!(!cut);
    assert!(seen.iter().any(|(name, _)| name == "a.txt"));
    assert!(!seen.iter().any(|(name, _)| name.starts_with("vault")), "{seen:?}");
}

#[test]
fn a_visit_opens_what_it_visits_and_can_stop_the_walk() {
    let fixture = Fixture::new("kernel");
    let mut content = None;
    let walked = fixture.workspace.walk("dir", 1000, &mut |visit| match visit.kind() {
        Kind::File => {
            content = visit.open().unwrap().read_all(99).ok();
            assert_eq!(visit.entry().unwrap().size, 4);
            WalkControl::Stop
        }
        Kind::Folder if visit.path().ends_with("er") => {
            assert_eq!(visit.open_inside("leaf.txt").unwrap().size(), 4);
            assert!(visit.open_inside("../../sibling.txt").is_ok(), "it is below the root");
            WalkControl::Enter
        }
        _ => WalkControl::Enter,
    });
    assert!(!walked.unwrap().cut);
    assert_eq!(content.as_deref(), Some(&b"leaf"[..]));
}

#[test]
fn names_that_would_steer_a_terminal_are_shown_escaped() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("a\u{1b}[2Jb"), "").unwrap();
    fs::write(home.path().join("c\u{202e}d"), "").unwrap();
    let workspace = Workspace::builder(home.path()).locks(&LockTable::new()).open().unwrap();
    let (seen, _) = seen(&workspace, ".", 9);
    let names: Vec<_> = seen.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["a\\u{1b}[2Jb", "c\\u{202e}d"]);
}
