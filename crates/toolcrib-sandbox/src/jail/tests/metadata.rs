//! Modes, owners, times and attributes of files, and shared resources: changes by confined
//! programs.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::{LIMIT, can_try};
use crate::jail::helper::plan::KernelFeature;
use crate::{Command, Confinement, KillRung, Profile, Status, run_blocking};

/// Every way to change the metadata of a file outside, `$f`, by path and by descriptor, with system
/// call numbers, so that no library interferes. Each line names one and prints its result: 0, or
/// the error number.
const CHANGES: &str = r#"
    use strict; $| = 1;
    my $f = shift;
    open(my $file, '<', $f) or die "cannot be read: $!";
    my $fd = fileno($file);
    my ($user, $group) = ($> + 0, (split ' ', $))[0] + 0);
    my ($other) = grep { $_ != $group } map { $_ + 0 } split ' ', $);
    my $value = "v";
    my $given = pack("P L L", $value, 1, 0);
    my $flags = pack("q", 0);
    syscall(16, $fd, 0x80086601, $flags);
    my $attributes = pack("Q L L L L", 0, 0, 0, 0, 0);
    my @calls = (
        [mode => 90, $f, 0640], [mode_fd => 91, $fd, 0640], [mode_at => 268, -100, $f, 0640],
        [mode_at2 => 452, -100, $f, 0640, 0],
        [setuid => 90, $f, 04755], [setuid_fd => 91, $fd, 04755], [setuid_at => 268, -100, $f, 04755],
        [setuid_at2 => 452, -100, $f, 04755, 0],
        [setgid => 90, $f, 02755], [setgid_fd => 91, $fd, 02755], [setgid_at => 268, -100, $f, 02755],
        [setgid_at2 => 452, -100, $f, 06711, 0],
        [owner => 92, $f, $user, $group], [owner_fd => 93, $fd, $user, $group],
        [owner_link => 94, $f, $user, $group], [owner_at => 260, -100, $f, $user, $group, 0],
        [time => 132, $f, 0], [times => 235, $f, 0], [times_at => 261, -100, $f, 0],
        [times_at2 => 280, -100, $f, 0, 0], [times_fd => 280, $fd, 0, 0, 0],
        [attribute => 188, $f, "user.t", "v", 1, 0], [attribute_gone => 197, $f, "user.t"],
        [attribute_link => 189, $f, "user.t", "v", 1, 0], [attribute_link_gone => 198, $f, "user.t"],
        [attribute_fd => 190, $fd, "user.t", "v", 1, 0], [attribute_fd_gone => 199, $fd, "user.t"],
        [attribute_at => 463, -100, $f, 0, "user.t", $given, 16],
        [attribute_at_gone => 466, -100, $f, 0, "user.t"],
        [flags => 16, $fd, 0x40086602, $flags], [flags_at => 469, -100, $f, $attributes, 24, 0],
        [listen => 294, 0], [listen_old => 253],
    );
    if (defined $other) {
        push @calls, [group => 92, $f, -1, $other], [group_fd => 93, $fd, -1, $other],
            [group_link => 94, $f, -1, $other], [group_at => 260, -100, $f, -1, $other, 0];
    }
    if (shift) {
        push @calls, [memory => 29, 0, 4096, 01600], [messages => 68, 0, 01600],
            [semaphores => 64, 0, 1, 01600], [queue => 240, "toolcrib", 0102, 0600, 0];
    }
    for (@calls) {
        my ($name, $number, @rest) = @$_;
        my $result = syscall($number, @rest);
        print "$name ", ($result == -1 ? $! + 0 : 0), "\n";
    }
"#;

/// A file outside of any workspace, and one inside.
struct TestFolders {
    _folder: tempfile::TempDir,
    outside: PathBuf,
    workspace: PathBuf,
}

impl TestFolders {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path().join("workspace");
        fs::create_dir(&workspace).unwrap();
        let outside = folder.path().join("outside");
        fs::write(&outside, "outside").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o604);
        fs::set_permissions(&outside, mode).unwrap();
        let then = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
        fs::File::open(&outside).unwrap().set_modified(then).unwrap();
        Self { _folder: folder, outside, workspace }
    }

    /// The result of each change.
    fn changes(&self, profile: Profile) -> BTreeMap<String, i32> {
        self.changes_without(profile, &[]).0
    }

    /// The same on a machine without these features, and the rung of the tree.
    fn changes_without(
        &self,
        profile: Profile,
        without: &[KernelFeature],
    ) -> (BTreeMap<String, i32>, KillRung) {
        let mut command = Command::new("/usr/bin/perl").args(["-e", CHANGES]).arg(&self.outside);
        if profile == Profile::Pure {
            // Objects created there would stay.
            command = command.arg("shared");
        }
        let confinement = Confinement::new(profile).workspace(&self.workspace);
        let mut confinement = confinement.read("/usr/share/perl").read(&self.outside);
        confinement.without = without.to_vec();
        let finished = run_blocking(command.confine(confinement), LIMIT).unwrap();
        assert_eq!(finished.status, Status::Exited(0), "{}", finished.stderr.text());
        let shown = finished.stdout.text();
        let went = shown.lines().map(|line| {
            let (name, error) = line.split_once(' ').unwrap();
            (name.to_owned(), error.parse().unwrap())
        });
        (went.collect(), finished.enforced.processes)
    }

    /// Mode, and times of the change of content and metadata.
    fn state(&self) -> (u32, i64, i64, i64) {
        let file = fs::metadata(&self.outside).unwrap();
        (file.mode(), file.mtime(), file.ctime(), file.ctime_nsec())
    }
}

#[test]
fn what_computes_changes_no_mode_owner_time_or_attribute_anywhere() {
    if !can_try() {
        return;
    }
    // The attempt is valid: it succeeds without confinement.
    let free = TestFolders::new().changes(Profile::Trusted);
    let real = free.values().filter(|error| **error == 0).count();
    assert!(real >= 17, "{free:?}");

    let places = TestFolders::new();
    let before = places.state();
    let held = places.changes(Profile::Pure);
    assert!(held.len() >= 33 && held.values().all(|error| *error == libc::EPERM), "{held:?}");
    assert_eq!(places.state(), before);
}

#[test]
fn other_programs_give_files_to_nobody_and_set_no_attributes() {
    if !can_try() {
        return;
    }
    for profile in [Profile::Workspace, Profile::WorkspaceNet] {
        for without in [&[][..], &[KernelFeature::Namespaces]] {
            let places = TestFolders::new();
            let before = places.state();
            let (changes, rung) = places.changes_without(profile, without);
            // A filter does not see the file; in a mount namespace it is read-only.
            let read_only = rung == KillRung::PidNamespace;
            for (name, error) in changes {
                let expected = match name.split('_').next().unwrap() {
                    "mode" | "owner" | "time" | "times" if read_only => libc::EROFS,
                    "mode" | "owner" | "time" | "times" => 0,
                    "listen" => libc::ENOSYS,
                    "attribute" => libc::EOPNOTSUPP,
                    _ => libc::EPERM,
                };
                assert_eq!(error, expected, "{profile}: {name} without {without:?}");
            }
            assert_eq!(places.state() == before, read_only, "{profile} without {without:?}");
        }
    }
}

#[test]
fn programs_that_copy_and_unpack_files_find_nothing_missing() {
    const TEXT: &str = r#"set -e
        printf '#!/bin/sh\necho ran\n' > run; chmod 755 run; ./run; touch -d @1577836800 run
        cp -a run copied; mkdir -m 1770 shared; chmod g-w shared; chown "$(id -u):$(id -g)" run
        mkdir out; tar cf - run copied shared | tar xpf - -C out; cp -a out again; mv again moved
        stat -c '%n %a %Y' run copied moved/run moved/copied; stat -c '%n %a' moved/shared"#;
    let places = TestFolders::new();
    let run = places.workspace.join("run");
    fs::write(&run, "").unwrap();
    // On a file system without attributes there are none to copy.
    let _ = rustix::fs::setxattr(&run, "user.t", b"v", rustix::fs::XattrFlags::empty());
    let confinement = Confinement::new(Profile::Workspace).workspace(&places.workspace);
    let command = Command::new("sh").args(["-c", TEXT]).cwd(&places.workspace).confine(confinement);
    let finished = run_blocking(command, LIMIT).unwrap();
    assert_eq!(finished.stderr.text(), "");
    let files = ["run", "copied", "moved/run", "moved/copied"];
    let files: String =
        files.iter().fold("ran\n".to_owned(), |all, file| all + file + " 755 1577836800\n");
    assert_eq!(finished.stdout.text(), files + "moved/shared 1750\n");
}

/// Every way to create a file with a mode, in the current folder. The files are inspected from outside.
const CREATIONS: &str = r#"
    use strict; $| = 1; umask 0;
    my ($creates, $temporary, $folder) = (0101, 020200002, ".");
    my ($null, $sticky) = ("/dev/null", "sticky");
    for my $mode (04755, 02755, 06755, 04644, 02644) {
        my $octal = sprintf "%o", $mode;
        my $how = pack("Q3", $creates, $mode, 0);
        my $link = "/proc/self/fd/";
        for ([open => 2, "open$octal", $creates, $mode], [openat => 257, -100, "openat$octal", $creates, $mode],
            [openat2 => 437, -100, "openat2$octal", $how, 24], [creat => 85, "creat$octal", $mode],
            [mknod => 133, "mknod$octal", $mode | 0100000, 0],
            [mknodat => 259, -100, "mknodat$octal", $mode | 0100000, 0],
            [mkdir => 83, "mkdir$octal", $mode], [mkdirat => 258, -100, "mkdirat$octal", $mode],
            [unnamed => 2, $folder, $temporary, $mode],
            [unnamed_at => 257, -100, $folder, $temporary, $mode]) {
            my ($name, $number, @rest) = @$_;
            my $result = syscall($number, @rest);
            print "$name$octal ", ($result == -1 ? $! + 0 : 0), "\n";
            if ($name =~ /unnamed/ && $result != -1) {
                symlink "$link$result", "link";
                syscall(265, -100, "$link$result", -100, "$name$octal", 0x400);
            }
        }
    }
    # A mode that does not count, because nothing is made.
    print "plain ", (syscall(2, $null, 0, 06755) == -1 ? $! + 0 : 0), "\n";
    print "sticky ", (syscall(85, $sticky, 01755) == -1 ? $! + 0 : 0), "\n";
"#;

/// The files and folders in a folder that have a set-ID bit.
fn set_id(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| fs::symlink_metadata(path).unwrap().mode() & 0o6000 != 0).collect()
}

#[test]
fn no_file_gets_a_set_id_bit_when_it_is_made_or_changed() {
    if !can_try() {
        return;
    }
    let run = |profile| {
        let places = TestFolders::new();
        let command = Command::new("/usr/bin/perl").args(["-e", CREATIONS]).cwd(&places.workspace);
        let mut confinement = Confinement::new(profile).workspace(&places.workspace);
        if profile == Profile::Pure {
            confinement = confinement.write(&places.workspace);
        }
        let command = command.confine(confinement.read("/usr/share/perl"));
        let finished = run_blocking(command, LIMIT).unwrap();
        let went: BTreeMap<String, i32> = finished
            .stdout
            .text()
            .lines()
            .map(|line| line.split_once(' ').unwrap())
            .map(|(name, error)| (name.to_owned(), error.parse().unwrap()))
            .collect();
        assert_eq!(went.len(), 52, "{}", finished.stderr.text());
        (places, went)
    };
    // The attempt is valid: it creates such files without confinement.
    let (places, _) = run(Profile::Trusted);
    assert!(set_id(&places.workspace).len() >= 30, "{:?}", set_id(&places.workspace));

    for profile in [Profile::Pure, Profile::Workspace, Profile::WorkspaceNet] {
        let (places, went) = run(profile);
        assert_eq!(set_id(&places.workspace), Vec::<PathBuf>::new(), "{profile}");
        for (name, error) in went {
            let expected = match name.trim_end_matches(|c: char| c.is_ascii_digit()) {
                // The kernel creates folders without these bits.
                "mkdir" | "mkdirat" | "plain" | "sticky" => 0,
                "openat" if name.starts_with("openat2") && name.len() > 10 => libc::ENOSYS,
                _ => libc::EPERM,
            };
            assert_eq!(error, expected, "{profile}: {name}");
        }
    }
}
