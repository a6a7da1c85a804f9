//! Which places can be withheld from which grants, on every rung, and when no program is started.

use std::fs;
use std::time::Instant;

use super::{TestFolders, can_withhold, refused};
use crate::jail::helper::plan::KernelFeature;
use crate::jail::tests::{LIMIT, is_here, on};
use crate::{Command, Confinement, KillRung, Profile, Require, Status, run_blocking};

#[test]
fn what_only_computes_is_held_in_what_it_may_write() {
    if !can_withhold() {
        return;
    }
    let places = TestFolders::new();
    for attempt in [
        "echo x > scripts/deep/x.sh",
        "echo x > tools.d/evil.yaml",
        "read line < config.yml && echo $line",
        "read line < state/inner/pins && echo $line",
        "read line < tools.d/secret && echo $line",
        "cd state && echo *",
    ] {
        let finished = places.sh(attempt, places.confinement(Profile::Pure)).unwrap();
        assert_ne!(finished.status, Status::Exited(0), "{attempt}: {finished:?}");
        assert!(!finished.stdout.text().contains("token"), "{attempt}: {finished:?}");
    }
    let text = "echo new > free/new; read line < scripts/deep/x.sh; echo $line";
    let finished = places.sh(text, places.confinement(Profile::Pure)).unwrap();
    assert_eq!(finished.stdout.text(), "original\n", "{finished:?}");
    assert!(finished.enforced.withheld, "{}", finished.enforced);
    assert_eq!(fs::read_to_string(places.workspace.join("free/new")).unwrap(), "new\n");
    places.assert_unchanged("computing");
}

#[test]
fn everything_else_in_the_workspace_is_as_ever() {
    if !can_withhold() {
        return;
    }
    let places = TestFolders::new();
    let finished = places.try_in_workspace(
        "cat scripts/deep/x.sh tools.d/a.yaml && echo n > new && mv new free/ && cat free/new \
         && echo o > scripts/deep/other && mkdir -p scripts/more/x && mv scripts/more scripts/m2 \
         && ln free/file free/hard && rm -r scripts/m2 && echo t > \"$TMPDIR/t\" && pwd -P",
    );
    assert_eq!(finished.status, Status::Exited(0), "{finished:?}");
    let text = format!("original\noriginal\nn\n{}\n", places.workspace.display());
    assert_eq!(finished.stdout.text(), text);
    assert!(finished.enforced.withheld);
    assert!(finished.enforced.to_string().contains(", withheld;"), "{}", finished.enforced);
}

#[test]
fn every_rung_withholds() {
    if !can_withhold() {
        return;
    }
    let places = TestFolders::new();
    for rung in KillRung::ALL {
        if !is_here(rung) {
            continue;
        }
        let mut confinement = places.confinement(Profile::Workspace);
        let job_control = on(rung).job_control;
        confinement.rung = Some(rung);
        let confinement = confinement.job_control(job_control);
        let text = "cat scripts/deep/x.sh; cat config.yml || echo x > scripts/deep/x.sh";
        let finished = places.sh(text, confinement).unwrap();
        assert_ne!(finished.status, Status::Exited(0), "{rung:?}: {finished:?}");
        assert_eq!(finished.stdout.text(), "original\n", "{rung:?}: {finished:?}");
        places.assert_unchanged(rung.as_str());
    }
}

#[test]
fn the_mounts_are_seen_by_the_program_alone_and_gone_with_it() {
    if !can_withhold() {
        return;
    }
    let before = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let places = TestFolders::new();
    let finished = places
        .try_in_workspace("while read -r line; do echo \"$line\"; done < /proc/self/mountinfo");
    let inside = finished.stdout.text();
    let own = |line: &str| line.contains(places.workspace.to_str().unwrap());
    // The workspace, the config, the state, the secret file, the manifests, the script, its folders.
    assert_eq!(inside.lines().filter(|line| own(line)).count(), 8, "{inside}");
    assert!(!inside.lines().any(|line| line.contains(" shared:")), "{inside}");
    assert!(!inside.lines().any(|line| line.contains(" / / ") && line.contains("tmpfs tmpfs")));
    let after = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!after.lines().any(own), "{after}");
    assert!(before.lines().count() >= after.lines().count(), "{after}");
}

#[test]
fn a_place_that_the_program_could_create_is_a_reason_not_to_start() {
    let places = TestFolders::new();
    for name in ["registry.lock", "none/config.yml", "free/file/config.yml"] {
        for hides in [true, false] {
            let confinement = Confinement::new(Profile::Workspace).workspace(&places.workspace);
            let place = places.workspace.join(name);
            let confinement =
                if hides { confinement.hide(place) } else { confinement.read_only(place) };
            let reason = refused(&places, &confinement);
            assert!(reason.contains(name) && reason.contains("create"), "{reason}");
        }
    }
    let outside = Confinement::new(Profile::Workspace).workspace(&places.workspace);
    let outside = outside.hide(places.top.join("none")).read_only("/none/either");
    assert_eq!(outside.check(), Ok(()));
    assert!(!places.sh("true", outside).unwrap().enforced.withheld);
}

#[test]
fn a_place_behind_a_link_that_the_program_could_replace_is_a_reason_not_to_start() {
    let places = TestFolders::new();
    std::os::unix::fs::symlink(&places.top, places.workspace.join("link")).unwrap();
    std::os::unix::fs::symlink("free/file", places.workspace.join("last")).unwrap();
    fs::write(places.top.join("config.yml"), "token\n").unwrap();
    let own = || Confinement::new(Profile::Workspace).workspace(&places.workspace);
    for name in ["link/config.yml", "last", "link/none.yml"] {
        for confinement in
            [own().hide(places.workspace.join(name)), own().read_only(places.workspace.join(name))]
        {
            let reason = refused(&places, &confinement);
            assert!(reason.contains(name), "{reason}");
        }
    }
    // A link outside is followed.
    std::os::unix::fs::symlink(&places.workspace, places.top.join("alias")).unwrap();
    if can_withhold() {
        let confinement = own().hide(places.top.join("alias/config.yml"));
        let finished = places.sh("cat config.yml", confinement).unwrap();
        assert_ne!(finished.status, Status::Exited(0), "{finished:?}");
        // The same place by both names.
        let both = places.top.join("alias");
        let confinement = Confinement::new(Profile::Workspace).workspace(both);
        let confinement = confinement.hide(places.workspace.join("state"));
        let finished = places.sh("ls state", confinement).unwrap();
        assert_ne!(finished.status, Status::Exited(0), "{finished:?}");
    }
}

#[test]
fn a_grant_inside_a_withheld_place_is_a_reason_not_to_start() {
    let places = TestFolders::new();
    let at = |name| places.workspace.join(name);
    for (confinement, place) in [
        (Confinement::new(Profile::Workspace).hide(at("state")).read(at("state/inner")), "state"),
        (Confinement::new(Profile::Pure).hide(at("state")).write(at("state/inner")), "state"),
        (
            Confinement::new(Profile::Workspace)
                .read_only(at("scripts"))
                .write(at("scripts/deep/other")),
            "scripts",
        ),
    ] {
        let command = Command::new("/bin/true").confine(confinement.clone());
        let error = run_blocking(command, LIMIT).unwrap_err();
        let reason = confinement.check().unwrap_err();
        assert!(error.to_string().contains(&reason), "{error}");
        let place = format!("`{}`", at(place).display());
        assert!(reason.contains("is granted") && reason.contains(&place), "{reason}");
    }
    // A grant that does not exist yet is checked as if it did.
    let coming = || Confinement::new(Profile::Workspace).workspace(at("scripts/later"));
    let reason = refused(&places, &coming().read_only(at("scripts")));
    assert!(reason.contains("is granted for writing") && reason.contains("scripts"), "{reason}");
    fs::create_dir(at("scripts/later")).unwrap();
    assert_eq!(refused(&places, &coming().read_only(at("scripts"))), reason);
    // Reading a read-only place is no contradiction.
    let confinement = Confinement::new(Profile::Workspace).read_only(at("scripts"));
    assert_eq!(confinement.read(at("scripts/deep")).check(), Ok(()));
}

#[test]
fn a_place_that_is_the_grant_itself_is_withheld_too() {
    if !can_withhold() {
        return;
    }
    let places = TestFolders::new();
    let at = |name: &str| places.workspace.join(name);
    for (granted, hidden, text) in [
        ("free", true, "ls ../w/free"),
        ("free/file", true, "cat free/file"),
        ("free", false, "echo x > free/file"),
        ("free/file", false, "echo x > free/file"),
    ] {
        for profile in [Profile::Workspace, Profile::Pure] {
            let confinement = Confinement::new(profile).write(at(granted)).read(&places.workspace);
            let confinement = if hidden {
                confinement.hide(at(granted))
            } else {
                confinement.read_only(at(granted))
            };
            let text = text.replace("ls ../w/free", "cd free").replace("cat ", "read x < ");
            let finished = places.sh(&text, confinement).unwrap();
            assert_ne!(finished.status, Status::Exited(0), "{profile}: {text}: {finished:?}");
        }
    }
    assert_eq!(fs::read_to_string(at("free/file")).unwrap(), "free\n");
}

#[test]
fn places_in_places_and_places_given_twice_are_withheld() {
    if !can_withhold() {
        return;
    }
    let places = TestFolders::new();
    let at = |name: &str| places.workspace.join(name);
    let confinement = Confinement::new(Profile::Workspace)
        .workspace(&places.workspace)
        .hide(at("state"))
        .hide(at("state"))
        .hide(at("state/inner"))
        .read_only(at("state/inner/pins"))
        .read_only(at("state"))
        .read_only(at("scripts"))
        .read_only(at("scripts/deep/x.sh"))
        .hide(at("scripts/deep/other"));
    let text = "cat scripts/deep/x.sh; while read -r line; do case $line in */w/*) echo mount; esac; done \
        < /proc/self/mountinfo";
    let finished = places.sh(text, confinement.clone()).unwrap();
    assert_eq!(finished.stdout.text(), "original\nmount\nmount\nmount\n", "{finished:?}");
    for attempt in [
        "ls state",
        "cat state/inner/pins",
        "cat scripts/deep/other",
        "echo x > scripts/deep/x.sh",
        "echo x > scripts/new",
        "mv scripts s2",
    ] {
        let finished = places.sh(attempt, confinement.clone()).unwrap();
        assert_ne!(finished.status, Status::Exited(0), "{attempt}: {finished:?}");
    }
}

#[test]
fn a_machine_that_cannot_withhold_starts_no_program_whose_grants_contain_a_place() {
    let places = TestFolders::new();
    let mut confinement = places.confinement(Profile::Workspace).require(Require::BestEffort);
    confinement.without = vec![KernelFeature::Namespaces];
    let reason = refused(&places, &confinement);
    assert!(reason.contains("cannot hide files"), "{reason}");
    // Other programs run as before.
    let other = tempfile::tempdir().unwrap();
    confinement.workspace = Some(other.path().to_owned());
    assert_eq!(confinement.check(), Ok(()));
    let command = Command::new("/bin/echo").arg("ran").confine(confinement.clone());
    let finished = run_blocking(command, LIMIT).unwrap();
    assert_eq!(finished.stdout.text(), "ran\n");
    assert!(!finished.enforced.withheld);
    confinement.workspace = Some(places.workspace.clone());
    confinement.profile = Profile::Trusted;
    assert_eq!(confinement.check(), Ok(()), "nothing is withheld from what is trusted");
}

#[test]
fn a_hundred_places_cost_little() {
    if !can_withhold() {
        return;
    }
    let places = TestFolders::new();
    let mut confinement = Confinement::new(Profile::Workspace).workspace(&places.workspace);
    for number in 0..100 {
        let file = places.workspace.join(format!("free/{number}.sh"));
        fs::write(&file, "text").unwrap();
        confinement = confinement.read_only(file);
    }
    for number in 0..900 {
        confinement = confinement.read_only(format!("/elsewhere/scripts/{number}.sh"));
    }
    let time = |confinement: &Confinement| {
        let starts = (0..10).map(|_| {
            let command = Command::new("/bin/true").confine(confinement.clone());
            let start = Instant::now();
            run_blocking(command, LIMIT).unwrap();
            start.elapsed()
        });
        starts.min().unwrap()
    };
    let with = time(&confinement);
    let without = time(&Confinement::new(Profile::Workspace).workspace(&places.workspace));
    eprintln!("a start with 100 places withheld of 1000 takes {with:?}, one without {without:?}");
    assert!(with < without * 20, "{with:?}, {without:?}");
}
