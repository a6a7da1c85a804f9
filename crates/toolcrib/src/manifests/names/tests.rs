//! Tests of who owns a name that files declare.

use toolcrib_manifest::lock::Kind;
use toolcrib_tool::Origin;

use super::NotOffered;
use super::files::{DeclaredEntry, FileChange, FileNames, ManifestKey};

/// The object of a name in these tests: the name of the declaring file when it was read.
type Names = FileNames<&'static str>;

fn file(name: &str) -> ManifestKey {
    (0, name.to_owned())
}

fn declared(file: &'static str, (kind, name): (Kind, &str)) -> DeclaredEntry<&'static str> {
    DeclaredEntry {
        kind,
        name: name.to_owned(),
        description: None,
        origin: Origin { file: file.to_owned(), line: 1, column: 1 },
        blocked: None,
        remark: None,
        what: file,
    }
}

fn replace(name: &'static str, prompts: &[&str]) -> FileChange<&'static str> {
    let all = prompts.iter().map(|prompt| declared(name, (Kind::Prompt, prompt)));
    FileChange::Replace(file(name), all.collect())
}

fn rename(from: &str, to: &str) -> FileChange<&'static str> {
    FileChange::Rename(file(from), file(to))
}

fn remove(name: &str) -> FileChange<&'static str> {
    FileChange::Remove(file(name))
}

fn names(changes: Vec<FileChange<&'static str>>) -> Names {
    let mut names = FileNames::new([]);
    names.apply(changes);
    names
}

impl Names {
    /// Each name with the file that owns it, in the order of the files.
    fn owners(&self) -> Vec<(&str, &'static str)> {
        self.owned().map(|one| (one.name.as_str(), one.what)).collect()
    }

    fn owners_after(
        &mut self,
        changes: Vec<FileChange<&'static str>>,
    ) -> Vec<(&str, &'static str)> {
        self.apply(changes);
        self.owners()
    }
}

#[test]
fn who_declares_a_name_first_keeps_it_as_long_as_he_does() {
    let mut names = names(vec![replace("b", &["notes"])]);
    // A file that sorts earlier changes nothing …
    assert_eq!(names.owners_after(vec![replace("a", &["notes"])]), [("notes", "b")]);
    // … until the owner releases the name; later the former owner does not get it back.
    let given_up = vec![replace("b", &["other"])];
    assert_eq!(names.owners_after(given_up), [("notes", "a"), ("other", "b")]);
    let back = vec![replace("b", &["other", "notes"])];
    assert_eq!(names.owners_after(back), [("notes", "a"), ("other", "b")]);
    assert_eq!(names.owners_after(vec![remove("a")]), [("other", "b"), ("notes", "b")]);
}

#[test]
fn a_name_of_one_kind_says_nothing_about_another_kind() {
    let kinds = [Kind::Upstream, Kind::Prompt, Kind::Resource];
    let all = kinds.map(|kind| declared("a", (kind, "notes"))).to_vec();
    let names = names(vec![FileChange::Replace(file("a"), all)]);
    assert_eq!(names.owners().len(), 3);
}

#[test]
fn the_hosts_names_are_never_a_files() {
    let mut names = FileNames::new([(Kind::Prompt, "notes".to_owned())]);
    assert_eq!(names.owners_after(vec![replace("a", &["notes", "more"])]), [("more", "a")]);
    let [lost, _] = &names.names()[..] else { panic!("two names") };
    assert_eq!(lost.shadowed_by().unwrap().to_string(), "host notes");
}

#[test]
fn a_file_that_is_renamed_keeps_its_names_whoever_else_declares_them() {
    let mut names = names(vec![replace("b", &["notes"])]);
    names.apply(vec![replace("a", &["notes"])]);
    assert_eq!(names.owners_after(vec![rename("b", "z")]), [("notes", "b")]);
    // Over another file, whose names are removed with it.
    assert_eq!(names.owners_after(vec![rename("z", "a")]), [("notes", "b")]);
    assert_eq!(names.names()[0].source.to_string(), "manifest a:1:1", "as it is called now");
    assert_eq!(names.owners_after(vec![remove("a")]), []);
}

#[test]
fn the_order_of_a_set_makes_no_difference() {
    let changes = || {
        vec![
            rename("a", "b"),
            rename("b", "a"),
            FileChange::Replace(file("b"), vec![declared("new", (Kind::Prompt, "one"))]),
            remove("c"),
            replace("d", &["three", "two"]),
        ]
    };
    let start =
        || names(vec![replace("a", &["one"]), replace("b", &["two"]), replace("c", &["three"])]);
    let expected = [("two", "b"), ("one", "new"), ("three", "d")];
    let count = changes().len();
    for first in 0..count {
        for swap in 0..count {
            let mut set = changes();
            set.rotate_left(first);
            set.swap(0, swap);
            assert_eq!(start().owners_after(set), expected, "{first}, {swap}");
        }
    }
}

#[test]
fn files_without_such_names_concern_nobody() {
    let mut names = names(vec![replace("a", &["one"])]);
    let none = [replace("b", &[]), remove("b"), rename("b", "c")];
    assert!(!names.concern(&none));
    for some in [replace("b", &["two"]), replace("a", &[]), remove("a"), rename("b", "a")] {
        assert!(names.concern(&[some]));
    }
    assert_eq!(names.owners_after(vec![replace("a", &[])]), []);
}

#[test]
fn what_the_lock_blocks_gets_a_name_only_where_nobody_else_wants_it_and_keeps_one_it_had() {
    let blocked = |name| {
        let reason = Some(NotOffered::Blocked("not accepted".to_owned()));
        let one = DeclaredEntry { blocked: reason, ..declared(name, (Kind::Prompt, "notes")) };
        FileChange::Replace(file(name), vec![one])
    };
    let mut names = names(vec![blocked("a"), replace("b", &["notes"])]);
    assert_eq!(names.owners(), [("notes", "b")]);
    // Its owner is blocked and the other declaration is not, but the name does not move.
    assert_eq!(names.owners_after(vec![blocked("b")]), [("notes", "b")]);
    assert_eq!(names.owners_after(vec![replace("a", &["notes"])]), [("notes", "b")]);
    let states: Vec<_> = names.names().into_iter().map(|one| one.withheld).collect();
    let owner = names.names()[1].source.clone();
    assert_eq!(
        states,
        [Some(NotOffered::Shadowed(owner)), Some(NotOffered::Blocked("not accepted".to_owned()))]
    );
}

#[test]
fn an_owner_that_a_restart_would_not_prefer_is_told_who_would_be() {
    let mut names = names(vec![replace("b", &["notes", "own"])]);
    names.apply(vec![replace("a", &["notes"])]);
    let told = names.names();
    let told: Vec<_> = told
        .iter()
        .map(|one| (one.source.unit.as_str(), one.name.as_str(), one.after_restart.as_ref()))
        .collect();
    let [(_, _, None), (_, "notes", Some(fresh)), (_, "own", None)] = told[..] else {
        panic!("{told:?}");
    };
    assert_eq!(fresh.to_string(), "manifest a:1:1");
    names.apply(vec![remove("b")]);
    assert!(names.names().iter().all(|one| one.after_restart.is_none()));
}

/// A change of the one name that all files declare.
#[derive(Debug, Clone, Copy)]
enum NameOperation {
    Declare(&'static str),
    Remove(&'static str),
    Rename(&'static str, &'static str),
}

#[test]
fn whatever_files_do_a_name_has_one_owner_who_keeps_it_while_he_declares_it() {
    const FILES: [&str; 3] = ["a", "b", "c"];
    let renames = FILES.iter().flat_map(|from| FILES.map(|to| NameOperation::Rename(from, to)));
    let mut deeds: Vec<NameOperation> = renames
        .filter(|deed| !matches!(deed, NameOperation::Rename(from, to) if from == to))
        .collect();
    deeds.extend(FILES.map(NameOperation::Declare));
    deeds.extend(FILES.map(NameOperation::Remove));
    let every = (0..deeds.len().pow(4)).map(|number| {
        (0..4).map(|place| deeds[number / deeds.len().pow(place) % deeds.len()]).collect()
    });
    for row in every {
        let row: Vec<NameOperation> = row;
        let mut names = FileNames::new([]);
        // The files that declare the name, and the owner.
        let (mut declaring, mut owner) = (Vec::new(), None);
        for deed in &row {
            match *deed {
                NameOperation::Declare(file) => {
                    names.apply([replace(file, &["notes"])]);
                    declaring.push(file);
                }
                NameOperation::Remove(file) => {
                    names.apply([remove(file)]);
                    declaring.retain(|one| *one != file);
                }
                NameOperation::Rename(from, to) => {
                    names.apply([rename(from, to)]);
                    declaring.retain(|one| *one != to);
                    if owner == Some(to) {
                        owner = None;
                    }
                    declaring.iter_mut().filter(|one| **one == from).for_each(|one| *one = to);
                    owner = owner.map(|one| if one == from { to } else { one });
                }
            }
            declaring.sort_unstable();
            declaring.dedup();
            owner = owner.filter(|one| declaring.contains(one)).or(declaring.first().copied());
            let told = names.names();
            let own: Vec<_> = told.iter().filter(|one| one.withheld.is_none()).collect();
            let own: Vec<_> = own.iter().map(|one| one.source.unit.as_str()).collect();
            assert_eq!(
                (own, told.len()),
                (owner.into_iter().collect(), declaring.len()),
                "{row:?}"
            );
        }
    }
}
