//! Links that the owner of a state folder plants in it: nothing is opened, created or given away through them.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};

use toolcrib_store::{Database, StateFolder};

/// The folder's owner when the administrator runs the tests.
const OWNER: u32 = 12_345;

const NAMES: [&str; 6] = [
    "toolcrib.db",
    "toolcrib.db-open",
    "toolcrib.db-wal",
    "toolcrib.db-shm",
    "toolcrib.db-journal",
    "servers",
];

/// A new state folder, owned by another user if possible.
fn state(home: &Path) -> PathBuf {
    let state = home.join("state");
    fs::create_dir(&state).expect("it is ours");
    fs::set_permissions(&state, fs::Permissions::from_mode(0o700)).expect("it is ours");
    let _ = chown(&state, Some(OWNER), Some(OWNER));
    state
}

#[test]
fn no_file_is_opened_or_given_away_through_a_symbolic_link() {
    for name in NAMES {
        let home = tempfile::tempdir().expect("there is room");
        let (state, victim) = (state(home.path()), home.path().join("victim"));
        if name == "servers" {
            fs::create_dir(&victim).expect("it is ours");
        } else {
            fs::write(&victim, "").expect("it is ours");
        }
        let before = victim.metadata().expect("it is there");
        symlink(&victim, state.join(name)).expect("it is ours");
        let error = Database::open(&state).expect_err("it is a link").to_string();
        assert!(error.contains(name) && error.contains("is a link"), "{name}: {error}");
        let after = victim.metadata().expect("it is there");
        assert_eq!((before.uid(), before.len()), (after.uid(), after.len()), "{name}");
        if name == "servers" {
            assert_eq!(fs::read_dir(&victim).expect("it is ours").count(), 0);
        }
    }
}

#[test]
fn no_file_is_created_through_a_dangling_link() {
    for name in NAMES {
        let home = tempfile::tempdir().expect("there is room");
        let (state, victim) = (state(home.path()), home.path().join("victim"));
        symlink(&victim, state.join(name)).expect("it is ours");
        Database::open(&state).expect_err("it is a link");
        assert!(!victim.exists(), "{name}");
    }
}

#[test]
fn a_file_with_a_hard_link_is_refused() {
    for name in NAMES.into_iter().filter(|name| *name != "servers") {
        let home = tempfile::tempdir().expect("there is room");
        let (state, victim) = (state(home.path()), home.path().join("victim"));
        fs::write(&victim, "").expect("it is ours");
        let before = victim.metadata().expect("it is there").uid();
        fs::hard_link(&victim, state.join(name)).expect("it is ours");
        let error = Database::open(&state).expect_err("it is a hard link").to_string();
        assert!(error.contains("hard link"), "{name}: {error}");
        let after = victim.metadata().expect("it is there");
        assert_eq!((after.uid(), after.len()), (before, 0), "{name}");
    }
}

#[test]
fn files_made_by_the_administrator_belong_to_the_folders_owner() {
    let home = tempfile::tempdir().expect("there is room");
    let state = state(home.path());
    let owner = state.metadata().expect("it is there").uid();
    let _database = Database::open(&state).expect("it is ours");
    let mut seen = 0;
    for folder in [state.clone(), state.join("servers")] {
        for entry in fs::read_dir(folder).expect("it is ours") {
            let entry = entry.expect("it is ours");
            let found = entry.metadata().expect("it is there");
            assert_eq!(found.uid(), owner, "{}", entry.path().display());
            seen += 1;
        }
    }
    assert!(seen >= 5, "the database, what is beside it, and the server's lock: {seen}");
}

#[test]
fn a_state_folder_behind_another_users_link_is_refused() {
    let home = tempfile::tempdir().expect("there is room");
    let (state, link) = (state(home.path()), home.path().join("link"));
    symlink(&state, &link).expect("it is ours");
    StateFolder::open(&link).expect("the operator may put it elsewhere");
    if std::os::unix::fs::lchown(&link, Some(OWNER), Some(OWNER)).is_ok() {
        let error = StateFolder::open(&link).expect_err("another user's").to_string();
        assert!(error.contains("another user"), "{error}");
    }
}

#[test]
fn a_state_folder_that_another_user_could_replace_is_refused_with_advice() {
    let home = tempfile::tempdir().expect("there is room");
    let parent = home.path().join("parent");
    fs::create_dir(&parent).expect("it is ours");
    let state = state(&parent);
    let set = |mode| {
        fs::set_permissions(&parent, fs::Permissions::from_mode(mode)).expect("it is ours");
    };
    for (mode, who) in [(0o777, Some("every user")), (0o1777, None), (0o755, None)] {
        set(mode);
        match (StateFolder::open(&state), who) {
            (Ok(_), None) => {}
            (Err(error), Some(who)) => {
                let said = error.to_string();
                let steps = format!("chmod go-w {}", parent.display());
                assert!(said.contains(who) && said.contains(&steps), "{mode:o}: {said}");
            }
            (opened, _) => panic!("{mode:o}: {opened:?}"),
        }
    }
    let other = OWNER + 1;
    if chown(&parent, Some(other), Some(other)).is_err() {
        // Only the administrator can give folders away.
        return;
    }
    let error = StateFolder::open(&state).expect_err("its owner could replace it").to_string();
    assert!(error.contains(&format!("ID {other}")) && error.contains("state.dir"), "{error}");
    let error = Database::open(&state).expect_err("nothing is made in it").to_string();
    assert!(error.contains("belongs to another user"), "{error}");
    // Links on the way are checked like the folders themselves.
    let (link, real) = (parent.join("link"), self::state(home.path()));
    symlink(&real, &link).expect("it is ours");
    chown(&real, Some(0), Some(0)).expect("it was ours");
    StateFolder::open(&real).expect("nobody else can replace it");
    StateFolder::open(&link).expect_err("another user can replace the link");
    // The server's user may also own the folders above.
    chown(&parent, Some(OWNER), Some(OWNER)).expect("it was ours");
    StateFolder::open(&state).expect("it is the owner's own");
}

#[test]
fn a_state_folder_behind_a_link_is_refused_naming_the_link_and_its_target() {
    let home = tempfile::tempdir().expect("there is room");
    let home = home.path().canonicalize().expect("it is there");
    let (real, link) = (home.join("real"), home.join("link"));
    fs::create_dir(&real).expect("it is ours");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o700)).expect("it is ours");
    symlink(&real, &link).expect("it is ours");
    let error = Database::open(&link).expect_err("it is a link").to_string();
    for named in [&link, &real] {
        assert!(error.contains(&*named.to_string_lossy()), "{error}");
    }
    Database::open(&real).expect("as the error says");
}

#[test]
fn files_that_others_have_rights_on_are_made_private_when_the_database_is_opened() {
    let home = tempfile::tempdir().expect("there is room");
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o700)).expect("it is ours");
    let first = Database::open(home.path()).expect("it is ours");
    let file = home.path().join("toolcrib.db");
    let mode = || file.metadata().expect("it is there").permissions().mode() & 0o777;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).expect("it is ours");
    // Another server opens the same folder.
    Database::open(home.path()).expect("it is mended");
    assert_eq!(mode(), 0o600);
    drop(first);
    // Another user has to fix the mode of their own file.
    let _ = chown(home.path(), Some(OWNER), Some(OWNER));
    if chown(&file, Some(OWNER), Some(OWNER)).is_ok() {
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).expect("root may");
        let error = Database::open(home.path()).expect_err("others can write").to_string();
        assert!(error.contains("chmod 600") && mode() == 0o666, "{error}");
    }
}
