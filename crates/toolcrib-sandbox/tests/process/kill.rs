//! Nothing is left: by heartbeat files, because a look at `/proc` can be evaded.

use std::fs;
use std::future::pending;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tokio::time::sleep;
use toolcrib_sandbox::{Command, Confinement, Finished, Profile, Status, finish_kills, run};

use crate::{bounded, finish, sh};

/// A shell loop that adds a byte to `$1` twenty times a second, for 20 seconds at most.
const BEAT: &str =
    r#"i=0; while [ $i -lt 400 ]; do printf x >> "$1"; sleep 0.05; i=$((i+1)); done"#;

struct Heartbeat {
    _folder: tempfile::TempDir,
    file: PathBuf,
}

impl Heartbeat {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("beat");
        Self { _folder: folder, file }
    }

    /// The shell text with the heartbeat's loop as `$2` and its file as `$1`.
    fn sh(&self, text: &str) -> Command {
        sh(text).arg("sh").arg(self.file.clone()).arg(BEAT)
    }

    fn size(&self) -> u64 {
        fs::metadata(&self.file).map_or(0, |file| file.len())
    }

    async fn starts(&self) {
        bounded(async {
            while self.size() == 0 {
                sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }

    async fn assert_stopped(&self) {
        let size = self.size();
        assert!(size > 0, "it never beat");
        sleep(Duration::from_millis(250)).await;
        assert_eq!(self.size(), size, "it still beats");
    }

    /// Stops the command as soon as the heart beats; returns with the time that took.
    async fn run_and_stop(&self, command: Command) -> (Finished, Duration) {
        let mut stopped_at = None;
        let stop = async {
            self.starts().await;
            stopped_at = Some(Instant::now());
        };
        let finished = bounded(run(command, stop)).await.unwrap();
        (finished, stopped_at.unwrap().elapsed())
    }
}

#[tokio::test]
async fn a_shell_that_ignores_sigterm_is_gone_with_its_children() {
    let heart = Heartbeat::new();
    let command = heart
        .sh(r#"trap '' TERM; echo started; sh -c "$2" sh "$1" & sleep 1000"#)
        .grace(Duration::from_millis(200));
    let (finished, took) = heart.run_and_stop(command).await;
    assert!(finished.stopped && finished.kill.forced && finished.kill.complete);
    assert_eq!(finished.status, Status::Signaled(9));
    assert_eq!(finished.stdout.text(), "started\n");
    // On a busy machine the test itself waits for its turn.
    assert!(took < Duration::from_secs(2), "{took:?}");
    heart.assert_stopped().await;
}

#[tokio::test]
async fn a_polite_program_is_not_made_to_wait_for_its_grace() {
    let heart = Heartbeat::new();
    let command = heart.sh(r#"sh -c "$2" sh "$1""#).grace(Duration::from_secs(30));
    let (finished, took) = heart.run_and_stop(command).await;
    assert!(finished.stopped && !finished.kill.forced);
    assert_eq!(finished.status, Status::Signaled(15));
    assert!(took < Duration::from_secs(1), "{took:?}");
    heart.assert_stopped().await;
}

#[tokio::test]
async fn a_program_may_tidy_up_within_its_grace() {
    let heart = Heartbeat::new();
    let command =
        heart.sh(r#"trap 'echo bye; exit 3' TERM; printf x > "$1"; while :; do sleep 0.02; done"#);
    let (finished, _) = heart.run_and_stop(command.grace(Duration::from_secs(10))).await;
    assert!(finished.stopped);
    assert_eq!(finished.status, Status::Exited(3));
    assert_eq!(finished.stdout.text(), "bye\n");
}

#[tokio::test]
async fn a_daemon_that_left_the_session_is_found_when_the_call_is_stopped() {
    for payload in [
        r#"setsid sh -c "$2" sh "$1" & sleep 1000"#,
        r#"setsid sh -c "$2" sh "$1" >/dev/null 2>&1 </dev/null & sleep 1000"#,
        r#"(setsid sh -c 'trap "" TERM HUP; sh -c "$2" sh "$1" &' sh "$1" "$2" &) ; sleep 1000"#,
        r#"nohup setsid sh -c 'cd /; umask 0; (sh -c "$2" sh "$1" &)' sh "$1" "$2" >/dev/null 2>&1 & sleep 1000"#,
    ] {
        let heart = Heartbeat::new();
        let (finished, took) = heart.run_and_stop(heart.sh(payload)).await;
        assert!(finished.kill.survivors_killed > 0, "{payload}: {:?}", finished.kill);
        assert!(finished.kill.complete);
        assert!(took < Duration::from_secs(2), "{took:?}");
        heart.assert_stopped().await;
    }
}

#[tokio::test]
async fn a_daemon_that_cleared_its_environment_is_found_by_descent() {
    let heart = Heartbeat::new();
    let command =
        heart.sh(r#"setsid env -i PATH="$PATH" sh -c "$2" sh "$1" & exec setsid -w sleep 1000"#);
    let (finished, _) = heart.run_and_stop(command).await;
    assert!(finished.stopped);
    heart.assert_stopped().await;
}

#[tokio::test]
async fn a_grandchild_that_holds_the_pipe_does_not_hang_the_call() {
    let heart = Heartbeat::new();
    let begun = Instant::now();
    let finished = finish(heart.sh(r#"setsid sh -c "$2" sh "$1" & sleep 0.2; echo done"#)).await;
    assert_eq!(finished.status, Status::Exited(0));
    assert_eq!(finished.stdout.text(), "done\n");
    assert!(!finished.stopped);
    assert!(finished.kill.survivors_killed > 0, "{:?}", finished.kill);
    assert!(begun.elapsed() < Duration::from_millis(1500), "{:?}", begun.elapsed());
    heart.assert_stopped().await;
}

#[tokio::test]
async fn a_quiet_background_job_ends_with_the_program_that_left_it() {
    let heart = Heartbeat::new();
    let text = r#"sh -c "$2" sh "$1" >/dev/null 2>&1 </dev/null & sleep 0.2; echo done"#;
    let finished = finish(heart.sh(text)).await;
    assert_eq!(finished.status, Status::Exited(0));
    assert!(finished.kill.complete);
    heart.assert_stopped().await;
}

#[tokio::test]
async fn dropping_the_future_ends_the_tree() {
    let heart = Heartbeat::new();
    let command =
        heart.sh(r#"trap '' TERM; echo $HOME > "$1.home"; setsid sh -c "$2" sh "$1" & sleep 1000"#);
    let call = run(command.grace(Duration::from_millis(100)), pending());
    tokio::select! {
        _ = call => panic!("it ended by itself"),
        () = heart.starts() => {}
    }
    assert!(tokio::task::spawn_blocking(|| finish_kills(Duration::from_secs(10))).await.unwrap());
    heart.assert_stopped().await;
    let home = fs::read_to_string(heart.file.with_extension("home")).unwrap();
    assert!(!Path::new(home.trim()).exists(), "the scratch directory is still there");
}

/// Whether a process has ended and this one has not waited for it.
fn is_own_zombie(id: &str) -> bool {
    // Such as `42 (sh) Z 41 …`: a name may hold anything.
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let own = std::process::id().to_string();
    fields.len() > 1 && fields[0] == "Z" && fields[1] == own
}

#[tokio::test]
async fn an_abandoned_call_and_its_siblings_leave_no_zombie() {
    // Each shell says who it is: the other tests of this binary have shells of their own.
    let folder = tempfile::tempdir().unwrap();
    let files: Vec<_> = (0..8).map(|number| folder.path().join(number.to_string())).collect();
    let calls = files.iter().map(|file| {
        let text = r#"echo $$ > "$1.new"; mv "$1.new" "$1"; sleep 1000"#;
        tokio::spawn(run(sh(text).arg("sh").arg(file.clone()), pending()))
    });
    let calls: Vec<_> = calls.collect();
    bounded(async {
        while !files.iter().all(|file| file.exists()) {
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    for call in calls {
        call.abort();
        assert!(call.await.unwrap_err().is_cancelled(), "it ended by itself");
    }
    assert!(tokio::task::spawn_blocking(|| finish_kills(Duration::from_secs(10))).await.unwrap());
    let shells = files.iter().map(|file| fs::read_to_string(file).unwrap());
    let zombies: Vec<_> = shells.filter(|shell| is_own_zombie(shell.trim())).collect();
    assert!(zombies.is_empty(), "{zombies:?}");
}

#[tokio::test]
async fn a_stop_that_comes_first_still_ends_cleanly() {
    let finished = bounded(run(sh("sleep 1000"), std::future::ready(()))).await.unwrap();
    assert!(finished.stopped);
    assert_eq!(finished.status, Status::Signaled(15));
}

/// A SIGCHLD that is ignored is inherited from whatever started the server.
#[test]
fn a_server_that_was_started_with_sigchld_ignored_learns_how_programs_end() {
    const INNER: &str = "TOOLCRIB_TEST_IGNORES_CHILDREN";
    if std::env::var_os(INNER).is_some() {
        for confinement in [Confinement::default(), Confinement::new(Profile::Workspace)] {
            let command = sh("exit 7").confine(confinement);
            let finished = toolcrib_sandbox::run_blocking(command, Duration::from_secs(20));
            assert_eq!(finished.unwrap().status, Status::Exited(7));
        }
        return;
    }
    let text = r#"trap '' CHLD; exec "$@""#;
    let own = std::env::current_exe().unwrap();
    #[expect(clippy::disallowed_methods, reason = "what this crate starts has no signal ignored")]
    let ended = std::process::Command::new("bash")
        .args(["-c", text, "bash"])
        .arg(own)
        .arg("--exact")
        .arg("kill::a_server_that_was_started_with_sigchld_ignored_learns_how_programs_end")
        .env(INNER, "1")
        .output()
        .unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stdout));
}
