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
struct Places {
    folder: tempfile::TempDir,
    workspace: PathBuf,
}

impl Places {
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
    assert!(error.to_string().contains("`open` is no profile"), "{error}");
}

#[test]
fn only_pure_has_to_be_enforced_unless_it_is_asked_for() {
    for profile in Profile::ALL {
        let required = Confinement::new(profile).require == Require::Required;
        assert_eq!(required, profile == Profile::Pure, "{profile}");
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
    let places = Places::new();
    let file = places.workspace.join("inside");
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let command = Command::new(&file).confine(places.confinement(Profile::Workspace));
    let error = bounded(run(command, pending())).await.unwrap_err();
    assert!(matches!(error, SpawnError::NotExecutable { .. }), "{error:?}");
}

#[tokio::test]
async fn the_workspace_is_read_and_written_and_nothing_beside_it() {
    let places = Places::new();
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
    let places = Places::new();
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
    let places = Places::new();
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
    let places = Places::new();
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
