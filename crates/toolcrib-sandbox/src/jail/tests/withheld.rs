//! What a program can do to the places that are withheld from it although its grants contain them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{LIMIT, is_here, on};
use crate::jail::helper::plan::Facility;
use crate::{
    Command, Confinement, Finished, KillRung, Profile, Require, SpawnError, Status, run_blocking,
};

/// A workspace with files that a program must not have, and a folder outside of it.
struct Places {
    _folder: tempfile::TempDir,
    top: PathBuf,
    workspace: PathBuf,
}

impl Places {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let workspace = top.join("w");
        for name in ["scripts/deep", "state/inner", "tools.d", "free"] {
            fs::create_dir_all(workspace.join(name)).unwrap();
        }
        for (name, text) in [
            ("config.yml", "token\n"),
            ("state/inner/pins", "token\n"),
            ("scripts/deep/x.sh", "original\n"),
            ("scripts/deep/other", "other\n"),
            ("tools.d/a.yaml", "original\n"),
            ("tools.d/secret", "token\n"),
            ("free/file", "free\n"),
        ] {
            fs::write(workspace.join(name), text).unwrap();
        }
        Self { _folder: folder, top, workspace }
    }

    /// A folder and a file of each kind, and one that is hidden in a read-only folder.
    fn confinement(&self, profile: Profile) -> Confinement {
        let at = |name| self.workspace.join(name);
        let confinement = Confinement::new(profile)
            .workspace(&self.workspace)
            .hide(at("config.yml"))
            .hide(at("state"))
            .hide(at("tools.d/secret"))
            .read_only(at("tools.d"))
            .read_only(at("scripts/deep/x.sh"));
        match profile {
            Profile::Pure => confinement.write(&self.workspace),
            _ => confinement,
        }
    }

    fn sh(&self, text: &str, confinement: Confinement) -> Result<Finished, SpawnError> {
        let command = Command::new("/bin/sh").args(["-c", text]).cwd(&self.workspace);
        run_blocking(command.confine(confinement), LIMIT)
    }

    fn try_in_workspace(&self, text: &str) -> Finished {
        self.sh(text, self.confinement(Profile::Workspace)).unwrap()
    }

    fn assert_unchanged(&self, after: &str) {
        for (name, text) in [
            ("config.yml", "token\n"),
            ("state/inner/pins", "token\n"),
            ("scripts/deep/x.sh", "original\n"),
            ("tools.d/a.yaml", "original\n"),
            ("tools.d/secret", "token\n"),
        ] {
            let found = fs::read_to_string(self.workspace.join(name));
            assert_eq!(found.unwrap_or_default(), text, "{name} after {after}");
        }
        assert_eq!(fs::read_dir(self.workspace.join("tools.d")).unwrap().count(), 2, "{after}");
    }
}

/// Whether this machine can withhold anything. If it cannot, that is said, and tested elsewhere.
fn can_withhold() -> bool {
    let places = Places::new();
    match places.confinement(Profile::Workspace).check() {
        Ok(()) => true,
        Err(reason) => {
            eprintln!("skipped: {reason}");
            false
        }
    }
}

/// Each tries to change or replace a place.
const CHANGES: [&str; 48] = [
    "echo x > scripts/deep/x.sh",
    "echo x >> scripts/deep/x.sh",
    "rm -f scripts/deep/x.sh && echo gone",
    "mv scripts/deep/x.sh scripts/deep/y.sh",
    "mv scripts/deep/x.sh free/x.sh",
    "mv free/file scripts/deep/x.sh",
    "cp free/file scripts/deep/x.sh",
    "mv scripts/deep scripts/d2",
    "mv scripts s2 && mkdir -p scripts/deep && echo x > scripts/deep/x.sh",
    "mv scripts free/s2",
    "mv -T free scripts",
    "rm -rf scripts && echo gone",
    "rmdir scripts/deep",
    "ln scripts/deep/x.sh free/hard && echo x > free/hard",
    "ln -f free/file scripts/deep/x.sh",
    "ln -sf ../free/file scripts/deep/x.sh",
    "cd scripts && echo x > deep/x.sh",
    "cd scripts/deep && echo x > x.sh",
    "cd scripts/deep && echo x > ../deep/x.sh",
    "cd scripts/deep && mv ../deep ../d2",
    "echo x > free/../scripts/deep/x.sh",
    "echo x > /proc/self/root/$PWD/scripts/deep/x.sh",
    "echo x > /proc/self/cwd/scripts/deep/x.sh",
    "cd scripts/deep && echo x > /proc/self/cwd/x.sh",
    "exec 7< scripts/deep/x.sh; echo x > /proc/self/fd/7",
    "exec 7< scripts/deep/x.sh; echo x > /dev/fd/7",
    "chmod 666 scripts/deep/x.sh",
    "touch -d 2001-01-01 scripts/deep/x.sh",
    "truncate -s 0 scripts/deep/x.sh",
    "echo x > tools.d/evil.yaml",
    "echo x > tools.d/a.yaml",
    "mkdir tools.d/sub",
    "ln free/file tools.d/evil.yaml",
    "ln -s ../free/file tools.d/evil.yaml",
    "mv free/file tools.d/evil.yaml",
    "mv tools.d t2 && mkdir tools.d && echo x > tools.d/a.yaml",
    "rm -rf tools.d; test ! -e tools.d/a.yaml",
    "cp -al tools.d copy && echo x > copy/a.yaml",
    "echo x > config.yml",
    "rm -f config.yml && echo gone",
    "mv config.yml c2",
    "mv free/file config.yml",
    "ln -sf free/file config.yml",
    "echo x > state/new",
    "mv state s2",
    "rm -rf state",
    "chmod 700 state",
    "chmod 600 config.yml && cat config.yml",
];

/// Each tries to read a hidden place.
const READS: [&str; 18] = [
    "cat config.yml",
    "test -s config.yml",
    "ls -A state",
    "cat state/inner/pins",
    "cd state",
    "cat tools.d/secret",
    "ln config.yml free/hard && cat free/hard",
    "cat free/../config.yml",
    "cat /proc/self/cwd/config.yml",
    "cat /proc/self/root/$PWD/config.yml",
    "cat ../w/config.yml",
    "ln -s ../config.yml free/soft && cat free/soft",
    "ln -s ../state free/folder && ls -A free/folder/",
    "cp config.yml free/copy",
    "tar c state | tar t | grep pins",
    "find . | grep pins",
    "mv config.yml free/moved && cat free/moved",
    "exec 7< config.yml; cat <&7",
];

#[test]
fn no_program_changes_or_replaces_what_is_withheld_from_it() {
    if !can_withhold() {
        return;
    }
    for profile in [Profile::Workspace, Profile::WorkspaceNet] {
        let places = Places::new();
        for attempt in CHANGES {
            let finished = places.sh(attempt, places.confinement(profile)).unwrap();
            assert_ne!(finished.status, Status::Exited(0), "{profile}: {attempt}: {finished:?}");
            places.assert_unchanged(attempt);
        }
    }
}

#[test]
fn no_program_reads_what_is_hidden_from_it() {
    if !can_withhold() {
        return;
    }
    let places = Places::new();
    for attempt in READS {
        let finished = places.try_in_workspace(attempt);
        assert_ne!(finished.status, Status::Exited(0), "{attempt}: {finished:?}");
        assert!(!finished.stdout.text().contains("token"), "{attempt}: {finished:?}");
        let said = finished.stderr.text();
        let plain = attempt.starts_with("cat config.yml") || attempt.starts_with("ls -A state");
        assert!(!plain || said.contains("denied") || said.contains("not permitted"), "{said}");
    }
    places.assert_unchanged("reading");
}

#[test]
fn what_only_computes_is_held_in_what_it_may_write() {
    if !can_withhold() {
        return;
    }
    let places = Places::new();
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
    let places = Places::new();
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
    let places = Places::new();
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
    let places = Places::new();
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

/// Calls that change mounts, by number on all architectures but the old ones.
const UNMOUNTS: &str = r#"
    my ($place) = @ARGV;
    my %calls = (
        umount2 => [166, $place, 2], mount => [165, "none", $place, "tmpfs", 0, 0],
        unshare_user => [272, 0x10020000], unshare_mounts => [272, 0x00020000],
        open_tree => [428, -100, $place, 1], move_mount => [429, -100, $place, -100, "/", 0],
        fsopen => [430, "tmpfs", 0], fsmount => [432, 0, 0, 0], fspick => [433, -100, $place, 0],
        fsconfig => [431, 0, 6, 0, 0, 0], mount_setattr => [442, -100, $place, 0, "\0" x 32, 32],
        pivot_root => [155, $place, $place], setns => [308, 0, 0], chroot => [161, $place],
        open_tree_attr => [467, -100, $place, 1, "\0" x 32, 32],
    );
    for my $name (sort keys %calls) {
        my ($number, @rest) = @{$calls{$name}};
        print "$name\n" if syscall($number, @rest) != -1;
    }
    print "tried\n";
"#;

#[test]
fn a_program_cannot_undo_what_covers_a_place() {
    if !can_withhold() || !cfg!(target_arch = "x86_64") || !Path::new("/usr/bin/perl").exists() {
        eprintln!("skipped: the numbers are those of x86-64, and perl makes the calls");
        return;
    }
    let places = Places::new();
    for place in ["config.yml", "state", "scripts", "tools.d"] {
        let confinement = places.confinement(Profile::Workspace);
        let command = Command::new("/usr/bin/perl").args(["-e", UNMOUNTS, place]);
        let command = command.cwd(&places.workspace).confine(confinement);
        let finished = run_blocking(command, LIMIT).unwrap();
        assert_eq!(finished.stdout.text(), "tried\n", "{place}: {}", finished.stderr.text());
    }
}

#[test]
fn renames_that_exchange_two_places_are_refused() {
    if !can_withhold() || !cfg!(target_arch = "x86_64") || !Path::new("/usr/bin/perl").exists() {
        eprintln!("skipped: the number is that of x86-64, and perl makes the call");
        return;
    }
    let places = Places::new();
    let text = r#"for (["scripts", "free"], ["scripts/deep/x.sh", "free/file"], ["free", "tools.d"],
        ["config.yml", "free/file"], ["scripts/deep", "free"]) {
        print "@$_\n" if syscall(316, -100, $_->[0], -100, $_->[1], 2) != -1;
    }"#;
    let command = Command::new("/usr/bin/perl").args(["-e", text]).cwd(&places.workspace);
    let command = command.confine(places.confinement(Profile::Workspace));
    let finished = run_blocking(command, LIMIT).unwrap();
    assert_eq!(finished.stdout.text(), "", "{}", finished.stderr.text());
    places.assert_unchanged("an exchange");
}

/// The reason of the check, which has to be that of the start.
fn refused(places: &Places, confinement: &Confinement) -> String {
    let reason = confinement.check().unwrap_err();
    let error = places.sh("echo ran", confinement.clone()).unwrap_err();
    let SpawnError::Grants { reason: told, .. } = &error else { panic!("{error:?}") };
    assert_eq!(*told, reason);
    reason
}

#[test]
fn a_place_that_the_program_could_create_is_a_reason_not_to_start() {
    let places = Places::new();
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
    let places = Places::new();
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
        // And the same place by both names.
        let both = places.top.join("alias");
        let confinement = Confinement::new(Profile::Workspace).workspace(both);
        let confinement = confinement.hide(places.workspace.join("state"));
        let finished = places.sh("ls state", confinement).unwrap();
        assert_ne!(finished.status, Status::Exited(0), "{finished:?}");
    }
}

#[test]
fn a_grant_inside_a_withheld_place_is_a_reason_not_to_start() {
    let places = Places::new();
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
    // To read what cannot be changed is no contradiction.
    let confinement = Confinement::new(Profile::Workspace).read_only(at("scripts"));
    assert_eq!(confinement.read(at("scripts/deep")).check(), Ok(()));
}

#[test]
fn a_place_that_is_the_grant_itself_is_withheld_too() {
    if !can_withhold() {
        return;
    }
    let places = Places::new();
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
    let places = Places::new();
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
fn a_program_that_starts_inside_a_read_only_folder_does_not_write_it_through_its_directory() {
    if !can_withhold() {
        return;
    }
    let places = Places::new();
    for name in ["tools.d", "scripts/deep", "scripts"] {
        let command = Command::new("/bin/sh")
            .args(["-c", "echo x > a.yaml; echo x > x.sh; echo x > deep/x.sh; pwd -P"])
            .cwd(places.workspace.join(name))
            .confine(places.confinement(Profile::Workspace));
        let finished = run_blocking(command, LIMIT).unwrap();
        let here = format!("{}\n", places.workspace.join(name).display());
        assert_eq!(finished.stdout.text(), here, "{finished:?}");
        let _ = fs::remove_file(places.workspace.join("scripts/deep/a.yaml"));
        places.assert_unchanged(name);
    }
    // Without a directory of its own a program starts where the server is.
    let command = Command::new("/bin/sh").args(["-c", "pwd -P"]);
    let command = command.confine(places.confinement(Profile::Workspace));
    let finished = run_blocking(command, LIMIT).unwrap();
    let here = std::env::current_dir().unwrap();
    assert_eq!(finished.stdout.text(), format!("{}\n", here.display()));
}

#[test]
fn a_machine_that_cannot_withhold_starts_no_program_whose_grants_contain_a_place() {
    let places = Places::new();
    let mut confinement = places.confinement(Profile::Workspace).require(Require::BestEffort);
    confinement.without = vec![Facility::Namespaces];
    let reason = refused(&places, &confinement);
    assert!(reason.contains("cannot hide files"), "{reason}");
    // Others run as before.
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
    let places = Places::new();
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

/// Changes of a file, `$1`, that no rule of Landlock is about.
const METADATA: [&str; 6] = [
    "chmod 600 \"$1\"",
    "chmod 4711 \"$1\"",
    "touch -d 2001-01-01 \"$1\"",
    "touch -c \"$1\"",
    "chmod -R 700 \"$(dirname \"$1\")\"",
    "touch -h -d 2001-01-01 \"$1\"",
];

#[test]
fn modes_and_times_are_changed_only_where_a_program_may_write() {
    if !is_here(KillRung::PidNamespace) {
        return;
    }
    let places = Places::new();
    let outside = places.top.join("outside");
    fs::write(&outside, "outside\n").unwrap();
    fs::write(places.top.join("given"), "given\n").unwrap();
    fs::create_dir(places.top.join("folder")).unwrap();
    let known = |path: &Path| {
        use std::os::unix::fs::MetadataExt as _;
        let status = fs::metadata(path).unwrap();
        (status.mode(), status.mtime_nsec(), status.mtime(), status.ctime(), status.ctime_nsec())
    };
    let confinement = |profile| {
        let given = Confinement::new(profile).workspace(&places.workspace).read(&places.top);
        given.write(places.top.join("given")).write(places.top.join("folder"))
    };
    for profile in [Profile::Workspace, Profile::WorkspaceNet] {
        for attempt in METADATA {
            let before = known(&outside);
            let command = Command::new("/bin/sh").args(["-c", attempt, "sh"]).arg(&outside);
            let finished = run_blocking(command.confine(confinement(profile)), LIMIT).unwrap();
            assert_ne!(finished.status, Status::Exited(0), "{profile}: {attempt}: {finished:?}");
            assert_eq!(known(&outside), before, "{profile}: {attempt}");
        }
        let text = "chmod 600 free/file && touch -d 2001-01-01 free/file && chmod 700 . \
            && echo more >> ../given && chmod 640 ../given && echo new > ../folder/new \
            && chmod 700 ../folder && cd \"$TMPDIR\" && echo x > x && chmod 600 x && chmod 700 . \
            && echo x > /dev/null && head -c 1 /dev/zero > y";
        let finished = places.sh(text, confinement(profile)).unwrap();
        assert_eq!(finished.status, Status::Exited(0), "{profile}: {finished:?}");
    }
}

#[test]
fn a_program_starts_while_a_withheld_file_is_replaced_again_and_again() {
    let places = Places::new();
    let config = places.workspace.join("config.yml");
    let beside = places.workspace.join("config.new");
    let is_over = AtomicBool::new(false);
    let started: Vec<_> = thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                fs::write(&beside, "token\n").unwrap();
                fs::rename(&beside, &config).unwrap();
                thread::sleep(Duration::from_millis(2));
            }
        });
        let start = |_| places.sh("echo started", places.confinement(Profile::Workspace));
        let started = (0..30).map(start).collect();
        is_over.store(true, Ordering::Relaxed);
        started
    });
    for finished in started {
        assert_eq!(finished.unwrap().stdout.text(), "started\n");
    }
}
