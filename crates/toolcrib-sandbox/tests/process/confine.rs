//! What a confined program may do, tried from within.

use std::fs;
use std::future::pending;
use std::path::PathBuf;

use toolcrib_sandbox::{
    Command, Confinement, Enforced, Finished, KillRung, Profile, Require, SpawnError, Status, run,
};

use crate::{bounded, finish, sh};

/// The confined ones.
const CONFINED: [Profile; 3] = [Profile::Pure, Profile::Workspace, Profile::WorkspaceNet];

/// A workspace with a file, and a file beside it.
struct TestFolders {
    folder: tempfile::TempDir,
    workspace: PathBuf,
}

impl TestFolders {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path().join("workspace");
        fs::create_dir(&workspace).unwrap();
        fs::write(workspace.join("inside"), "inside\n").unwrap();
        fs::write(folder.path().join("outside"), "outside\n").unwrap();
        Self { folder, workspace }
    }

    fn outside(&self) -> PathBuf {
        self.folder.path().join("outside")
    }

    fn confinement(&self, profile: Profile) -> Confinement {
        Confinement::new(profile).workspace(&self.workspace)
    }

    /// Runs shell text in the workspace, with the path of the file outside as `$1`.
    async fn sh(&self, profile: Profile, text: &str) -> Finished {
        let command = sh(text).arg("sh").arg(self.outside()).cwd(&self.workspace);
        finish(command.confine(self.confinement(profile))).await
    }
}

#[tokio::test]
async fn a_trusted_program_runs_as_ever_and_says_what_holds_it() {
    let finished = finish(sh("echo a").confine(Confinement::new(Profile::Trusted))).await;
    assert_eq!(finished.stdout.text(), "a\n");
    assert_eq!(finished.enforced, Enforced::nothing());
}

#[test]
fn a_profile_is_named_as_in_manifests() {
    for profile in Profile::ALL {
        assert_eq!(profile.as_str().parse(), Ok(profile));
    }
    let error = "open".parse::<Profile>().unwrap_err();
    assert!(error.to_string().contains("`open` is not a profile"), "{error}");
}

#[test]
fn every_profile_has_to_be_enforced_unless_best_effort_is_asked_for() {
    for profile in Profile::ALL {
        assert_eq!(Confinement::new(profile).require, Require::Required, "{profile}");
    }
}

#[tokio::test]
async fn a_confined_program_has_its_streams_arguments_environment_and_exit_code() {
    for profile in CONFINED {
        let command = sh("cat; echo \"$1 $A\"; echo e >&2; exit 7").args(["sh", "a b"]);
        let command = command.env("A", "x y").stdin("in\n").confine(Confinement::new(profile));
        // What computes starts no `cat`.
        let command = match profile {
            Profile::Pure => sh("read line; echo $line; echo \"$1 $A\"; echo e >&2; exit 7")
                .args(["sh", "a b"])
                .env("A", "x y")
                .stdin("in\n")
                .confine(Confinement::new(profile)),
            _ => command,
        };
        let finished = finish(command).await;
        assert_eq!(finished.stdout.text(), "in\na b x y\n", "{profile}: {finished:?}");
        assert_eq!(finished.stderr.text(), "e\n");
        assert_eq!(finished.status, Status::Exited(7));
        assert_eq!(finished.enforced.profile, profile);
        assert!(finished.enforced.is_complete(), "{}", finished.enforced);
        assert!(finished.kill.complete && !finished.kill.forced);
    }
}

#[tokio::test]
async fn what_ends_by_a_signal_says_which() {
    let finished = finish(sh("kill -SEGV $$").confine(Confinement::new(Profile::Workspace))).await;
    assert_eq!(finished.status, Status::Signaled(11), "{finished:?}");
}

#[tokio::test]
async fn a_program_that_is_no_program_is_told_as_ever() {
    let places = TestFolders::new();
    let file = places.workspace.join("inside");
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let command = Command::new(&file).confine(places.confinement(Profile::Workspace));
    let error = bounded(run(command, pending())).await.unwrap_err();
    assert!(matches!(error, SpawnError::NotExecutable { .. }), "{error:?}");
}

#[tokio::test]
async fn the_workspace_is_read_and_written_and_nothing_beside_it() {
    let places = TestFolders::new();
    for profile in [Profile::Workspace, Profile::WorkspaceNet] {
        let finished = places
            .sh(
                profile,
                "cat inside && echo new > new && mkdir d && mv new d/ && cat d/new && rm -r d",
            )
            .await;
        assert_eq!(finished.stdout.text(), "inside\nnew\n", "{profile}: {finished:?}");
        for attempt in [
            "cat \"$1\"",
            "echo x > \"$1\"",
            "echo x >> \"$1\"",
            "rm \"$1\"",
            "mv \"$1\" stolen",
            "ln \"$1\" linked && cat linked",
            "ln -s \"$1\" link && cat link",
            "echo x > \"$1.new\"",
            "mkdir \"$1.dir\"",
            "ls \"$(dirname \"$1\")\"",
            "chmod 600 /etc/shadow; cat /etc/shadow",
            "cat /proc/1/environ",
            "echo x > /tmp/toolcrib-escape",
        ] {
            let finished = places.sh(profile, attempt).await;
            assert_ne!(finished.status, Status::Exited(0), "{profile}: {attempt}: {finished:?}");
        }
        assert_eq!(fs::read_to_string(places.outside()).unwrap(), "outside\n");
        for link in ["link", "linked", "stolen"] {
            let _ = fs::remove_file(places.workspace.join(link));
        }
        assert_eq!(fs::read_dir(places.folder.path()).unwrap().count(), 2);
    }
}

#[tokio::test]
async fn what_is_granted_beside_the_workspace_is_granted_as_it_says() {
    let places = TestFolders::new();
    let read = places.confinement(Profile::Workspace).read(places.outside());
    let command = |confinement| {
        sh("cat \"$1\"; echo more >> \"$1\"").arg("sh").arg(places.outside()).confine(confinement)
    };
    let finished = finish(command(read)).await;
    assert_eq!(finished.stdout.text(), "outside\n");
    assert_ne!(finished.status, Status::Exited(0));
    let written = places.confinement(Profile::Workspace).write(places.outside());
    let finished = finish(command(written)).await;
    assert_eq!(finished.status, Status::Exited(0), "{finished:?}");
    assert_eq!(fs::read_to_string(places.outside()).unwrap(), "outside\nmore\n");
}

#[tokio::test]
async fn the_scratch_directory_can_be_written_but_not_by_what_computes() {
    for profile in CONFINED {
        let text = "echo x > \"$TMPDIR/file\"";
        let finished = finish(sh(text).confine(Confinement::new(profile))).await;
        assert_eq!(finished.status == Status::Exited(0), profile != Profile::Pure, "{finished:?}");
    }
}

#[tokio::test]
async fn what_computes_sees_no_workspace_and_starts_nothing() {
    let places = TestFolders::new();
    for attempt in [
        "read line < inside",
        "read line < /etc/passwd",
        "read line < /proc/self/environ",
        "echo x > \"$TMPDIR/x\"",
        "true & wait",
        "(exit 0)",
        "/bin/true",
        "exec /bin/true",
        "kill -0 $PPID",
    ] {
        let finished = places.sh(Profile::Pure, attempt).await;
        assert_ne!(finished.status, Status::Exited(0), "{attempt}: {finished:?}");
    }
    let finished = places.sh(Profile::Pure, "echo $((6 * 7))").await;
    assert_eq!(finished.stdout.text(), "42\n");
}

#[tokio::test]
async fn a_confined_program_cannot_read_the_servers_environment() {
    let server = std::process::id();
    for profile in CONFINED {
        // Even where all of `/proc` is granted.
        let text = format!("read -r x < /proc/{server}/environ");
        let finished = finish(sh(&text).confine(Confinement::new(profile).read("/proc"))).await;
        assert_ne!(finished.status, Status::Exited(0), "{profile}: {finished:?}");
    }
}

#[tokio::test]
async fn a_root_child_makes_no_device_in_the_workspace() {
    let places = TestFolders::new();
    let finished = places.sh(Profile::Workspace, "mknod device c 1 3 || mknod device b 7 0").await;
    assert_ne!(finished.status, Status::Exited(0), "{finished:?}");
    let finished = places.sh(Profile::Workspace, "mkfifo pipe && ls pipe").await;
    assert_eq!(finished.status, Status::Exited(0), "{finished:?}");
}

#[tokio::test]
async fn a_required_profile_says_what_held_it() {
    let confinement = Confinement::new(Profile::Workspace).require(Require::Required);
    let finished = finish(sh("echo a").confine(confinement)).await;
    let enforced = finished.enforced;
    assert!(enforced.files && enforced.network && enforced.syscalls && enforced.privileges);
    assert!(enforced.landlock.is_some());
    assert_ne!(enforced.processes, KillRung::ProcessGroup);
    assert!(enforced.to_string().starts_with("workspace: files, network, syscalls, privileges; "));
}

#[tokio::test]
async fn no_capability_is_left() {
    let text = "grep -E 'Cap(Prm|Eff|Bnd|Amb|Inh)|NoNewPrivs' /proc/self/status";
    for profile in [Profile::Workspace, Profile::WorkspaceNet] {
        let confinement = Confinement::new(profile).read("/proc");
        let finished = finish(sh(text).confine(confinement)).await;
        let shown = finished.stdout.text();
        assert!(shown.contains("NoNewPrivs:\t1"), "{shown}");
        for line in shown.lines().filter(|line| line.starts_with("Cap")) {
            let is_plain = line.starts_with("CapBnd") && !rustix_is_root();
            assert!(is_plain || line.ends_with("0000000000000000"), "{line}");
        }
        assert_eq!(shown.lines().count(), 6, "{shown}");
    }
}

fn rustix_is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

/// System calls by number, made by perl: each line names one, and says how it went.
const FORBIDDEN: &str = r#"
    use strict; $| = 1;
    sub tried { my ($name, $result) = @_; print "$name ", ($result == -1 ? "refused" : "ANSWERED"), "\n"; }
    my %calls = (
        ptrace => [101, 0, 0, 0, 0], bpf => [321, 0, 0, 0], keyctl => [250, 0, -3, 0],
        add_key => [248, 0, 0, 0, 0, 0], mount => [165, 0, 0, 0, 0, 0], umount => [166, 0, 0],
        unshare_user => [272, 0x10000000], unshare_nothing => [272, 0], setns => [308, 0, 0],
        io_uring_setup => [425, 1, 0], userfaultfd => [323, 0], perf => [298, 0, 0, -1, -1, 0],
        process_vm_readv => [310, $$, 0, 0, 0, 0, 0], chroot => [161, 0], pivot => [155, 0, 0],
        open_by_handle => [304, 0, 0, 0], pidfd_getfd => [438, 0, 0, 0], clone3 => [435, 0, 0],
        clone_user => [56, 0x10000000 | 17, 0, 0, 0, 0], fsopen => [430, 0, 0],
        syslog => [103, 10, 0, 0], reboot => [169, 0, 0, 0, 0], module => [313, -1, 0, 0],
        x32_getpid => [0x40000000 | 39], unknown => [900],
        prlimit_other => [302, getppid() || 1, 7, 0, 0], tiocsti => [16, 0, 0x5412, 0],
    );
    for my $name (sort keys %calls) {
        my ($number, @rest) = @{$calls{$name}};
        my $result = syscall($number, @rest);
        exit 0 if $name =~ /clone/ && $result == 0;
        tried($name, $result);
    }
    my %families = (unix => 1, inet => 2, inet6 => 10, netlink => 16, packet => 17, alg => 38, vsock => 40);
    for my $name (sort keys %families) {
        for my $kind (1, 2, 5) { tried("socket_${name}_$kind", syscall(41, $families{$name}, $kind, 0)); }
    }
    tried("uevents", syscall(41, 16, 2, 15));
"#;

#[tokio::test]
async fn no_forbidden_system_call_is_answered() {
    if !cfg!(target_arch = "x86_64") || !std::path::Path::new("/usr/bin/perl").exists() {
        eprintln!("skipped: the numbers are those of x86-64, and perl makes the calls");
        return;
    }
    for profile in CONFINED {
        let command = Command::new("/usr/bin/perl").args(["-e", FORBIDDEN]);
        let command = command.confine(Confinement::new(profile).read("/usr/share/perl"));
        let finished = finish(command).await;
        let shown = finished.stdout.text();
        let answered: Vec<_> =
            shown.lines().filter_map(|line| line.strip_suffix(" ANSWERED")).collect();
        let allowed = |call: &str| {
            profile == Profile::WorkspaceNet
                && ["socket_inet", "socket_netlink"].iter().any(|begin| call.starts_with(begin))
        };
        let escapes: Vec<_> = answered.iter().filter(|call| !allowed(call)).collect();
        assert!(escapes.is_empty(), "{profile}: {escapes:?}");
        assert!(shown.lines().count() >= 45, "{profile}: {shown} {}", finished.stderr.text());
        let speaks = answered.contains(&"socket_inet_1");
        assert_eq!(speaks, profile == Profile::WorkspaceNet, "{shown}");
    }
}

#[tokio::test]
async fn bombs_end_at_their_limits_and_the_server_lives() {
    if !std::path::Path::new("/usr/bin/perl").exists() {
        eprintln!("skipped: no perl to blow up");
        return;
    }
    let perl = |text: &str, profile, more: &dyn Fn(Confinement) -> Confinement| {
        Command::new("/usr/bin/perl").args(["-e", text]).confine(more(Confinement::new(profile)))
    };
    let memory = perl("my $x = 'x' x (3 << 30); print 'there'", Profile::Pure, &|c| c);
    let finished = finish(memory).await;
    assert_ne!(finished.status, Status::Exited(0), "{finished:?}");
    assert_eq!(finished.stdout.text(), "");

    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "open(F, '>', '{}/file') or die; $s = 'x' x (1 << 20); for (1..100) {{ syswrite(F, $s) or die }}",
        folder.path().display()
    );
    let file = perl(&text, Profile::Pure, &|c| c.write(folder.path()));
    assert_ne!(finish(file).await.status, Status::Exited(0));
    assert_eq!(fs::metadata(folder.path().join("file")).unwrap().len(), 64 << 20);

    let cpu = perl("1 while 1", Profile::Pure, &|c| {
        let mut limits = c.limits;
        limits.cpu = Some(std::time::Duration::from_secs(1));
        c.limits(limits)
    });
    assert!(finish(cpu).await.status.signal().is_some());

    // Bounded by itself, too: four hundred processes that each wait for the rest.
    let forks = perl(
        "$n = 0; for (1..400) { $p = fork; defined $p or last; $p or do { sleep 20; exit }; $n++ } print $n",
        Profile::Workspace,
        &|c| {
            let mut limits = c.limits;
            limits.processes = Some(50);
            c.limits(limits)
        },
    );
    let finished = finish(forks).await;
    let started: u32 = finished.stdout.text().trim().parse().unwrap();
    assert!(finished.kill.complete, "{finished:?}");
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split('.').map_while(|part| part.parse::<u32>().ok());
    let counts = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (6, 14);
    if counts && finished.enforced.processes == KillRung::PidNamespace {
        // As many as are asked for, and the three hundred that a fresh namespace has to give.
        assert!(started <= 350, "{started}");
    }

    let output = perl("$s = 'y' x 65536; print $s for 1..400", Profile::Workspace, &|c| c);
    let finished = finish(output).await;
    assert_eq!(finished.stdout.total, 400 * 65536);
    assert!(finished.stdout.omitted() > 0);
}

#[tokio::test]
async fn a_server_that_dies_takes_its_programs_along() {
    let places = TestFolders::new();
    let beat = places.workspace.join("beat");
    // This very test in a process of its own is the server: it starts a program and is killed.
    if let Some(beat) = std::env::var_os("TOOLCRIB_TEST_SERVER") {
        let workspace = PathBuf::from(&beat).parent().unwrap().to_owned();
        let text =
            "i=0; while [ $i -lt 1000 ]; do printf x >> \"$1\"; sleep 0.02; i=$((i+1)); done";
        let text = format!("setsid sh -c '{text}' sh \"$1\" & sleep 60");
        let command = sh(&text).arg("sh").arg(beat);
        let confinement = Confinement::new(Profile::Workspace).workspace(workspace);
        finish(command.confine(confinement)).await;
        return;
    }
    let server = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "confine::a_server_that_dies_takes_its_programs_along"])
        .env("TOOLCRIB_TEST_SERVER", &beat)
        .env("TMPDIR", places.folder.path());
    let server = toolcrib_sandbox::spawn(&server.grace(std::time::Duration::ZERO)).await.unwrap();
    let size = || fs::metadata(&beat).map_or(0, |file| file.len());
    bounded(async {
        while size() == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
    drop(server.input);
    // Not its tree: only the server, as a crash would.
    let pid = rustix::process::Pid::from_raw(server_pid(&beat)).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    server.process.ended().await;
    bounded(async {
        loop {
            let before = size();
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            if size() == before {
                break;
            }
        }
    })
    .await;
    drop(server.output);
}

/// The process that was started as the server of this heartbeat.
fn server_pid(beat: &std::path::Path) -> i32 {
    let mark = format!("TOOLCRIB_TEST_SERVER={}", beat.display());
    let numbers = fs::read_dir("/proc").unwrap().flatten();
    let mut numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let found = numbers.find(|number| {
        let environment = fs::read(format!("/proc/{number}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    });
    found.unwrap()
}
