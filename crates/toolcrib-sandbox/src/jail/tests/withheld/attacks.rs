//! Programs that try to change, read or uncover withheld places.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{fs, thread};

use super::{TestFolders, can_withhold};
use crate::jail::tests::{LIMIT, is_here};
use crate::{Command, Confinement, KillRung, Profile, Status, run_blocking};

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
        let places = TestFolders::new();
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
    let places = TestFolders::new();
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

/// Calls that change mounts, with their numbers, which are the same on all architectures except the
/// old ones.
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
    let places = TestFolders::new();
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
    let places = TestFolders::new();
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

#[test]
fn a_program_that_starts_inside_a_read_only_folder_does_not_write_it_through_its_directory() {
    if !can_withhold() {
        return;
    }
    let places = TestFolders::new();
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
    // Without its own directory, a program starts where the server is.
    let command = Command::new("/bin/sh").args(["-c", "pwd -P"]);
    let command = command.confine(places.confinement(Profile::Workspace));
    let finished = run_blocking(command, LIMIT).unwrap();
    let here = std::env::current_dir().unwrap();
    assert_eq!(finished.stdout.text(), format!("{}\n", here.display()));
}

/// Changes of a file, `$1`, that no Landlock rule covers.
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
    let places = TestFolders::new();
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
    let places = TestFolders::new();
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
