//! The rungs and their fallbacks: every rung by itself, and kernels that lack a feature. These tests are in the crate
//! because only it can choose a rung.

mod bounds;
mod links;
mod metadata;
mod reach;
mod scratch;
mod withheld;

use std::fs;
use std::future::pending;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::jail::helper::plan::KernelFeature;
use crate::{
    Command, Confinement, Finished, KillRung, Profile, Require, SpawnError, Status, run,
    run_blocking,
};

/// A time limit for everything; nothing comes near it.
const LIMIT: Duration = Duration::from_secs(60);

/// A loop that adds a byte to `$1` for 20 seconds at most.
const BEAT: &str =
    r#"i=0; while [ $i -lt 400 ]; do printf x >> "$1"; sleep 0.05; i=$((i+1)); done"#;

/// Ways to become a daemon. `$1` is the file, `$2` the loop. Each runs until it is ended.
const DAEMONS: [&str; 6] = [
    r#"setsid sh -c "$2" sh "$1" & sleep 60"#,
    r#"(setsid sh -c 'trap "" TERM HUP INT; sh -c "$2" sh "$1" &' sh "$1" "$2" &); sleep 60"#,
    r#"setsid env -i PATH="$PATH" sh -c "$2" sh "$1" >/dev/null 2>&1 </dev/null & exec setsid -w sleep 60"#,
    r#"trap '' TERM; nohup setsid sh -c '(sh -c "$2" sh "$1" &) & exit' sh "$1" "$2" >/dev/null 2>&1 & sleep 60"#,
    // The two values always differ.
    r#"h='printf x >> "$1"; sleep 0.01; [ $3 -gt 600 ] || setsid sh -c "$2" sh "$1" "$2" $(($3 + 1)) &'; sh -c "$h" sh "$1" "$h" 0; sleep 60"#,
    r#"sh -c "$2" sh "$1" & sleep 60"#,
];

struct Heartbeat {
    folder: tempfile::TempDir,
}

impl Heartbeat {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        fs::set_permissions(folder.path(), open).unwrap();
        Self { folder }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("beat")
    }

    fn beats(&self) -> u64 {
        fs::metadata(self.file()).map_or(0, |file| file.len())
    }

    fn command(&self, text: &str, confinement: Confinement) -> Command {
        Command::new("sh")
            .args(["-c", text, "sh"])
            .arg(self.file())
            .arg(BEAT)
            .grace(Duration::from_millis(100))
            .confine(confinement.workspace(self.folder.path()))
    }

    /// Stops the command once the heartbeat has started; returns how long that took.
    async fn stop(&self, command: Command) -> Result<(Finished, Duration), SpawnError> {
        let mut stopped = None;
        let beating = async {
            while self.beats() == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            stopped = Some(Instant::now());
        };
        let finished = tokio::time::timeout(LIMIT, run(command, beating)).await.unwrap()?;
        Ok((finished, stopped.unwrap().elapsed()))
    }

    async fn assert_still(&self) {
        let before = self.beats();
        assert!(before > 0, "it never beat");
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(self.beats(), before, "it beats on");
    }
}

fn on(rung: KillRung) -> Confinement {
    let mut confinement =
        Confinement::new(Profile::Workspace).job_control(rung != KillRung::SealedGroup);
    confinement.rung = Some(rung);
    confinement
}

/// Whether system calls can be made by number.
fn can_try() -> bool {
    let can = cfg!(target_arch = "x86_64") && Path::new("/usr/bin/perl").exists();
    if !can {
        eprintln!("skipped: the numbers are those of x86-64, and perl makes the calls");
    }
    can
}

/// A rung that this machine or this user lacks is skipped, with a message.
fn is_here(rung: KillRung) -> bool {
    let trial = Command::new("true").confine(on(rung));
    match run_blocking(trial, LIMIT) {
        Ok(_) => true,
        Err(SpawnError::Confine { source, .. }) => {
            eprintln!("skipped: no {} here: {source}", rung.as_str());
            false
        }
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn no_daemon_survives_on_any_rung() {
    for rung in
        [KillRung::PidNamespace, KillRung::Cgroup, KillRung::SealedGroup, KillRung::Subreaper]
    {
        if !is_here(rung) {
            continue;
        }
        for daemon in DAEMONS {
            let heart = Heartbeat::new();
            // In a sealed group `setsid` fails, and so its command does not run.
            let text = match rung {
                KillRung::SealedGroup => daemon.replace("setsid -w ", "").replace("setsid ", ""),
                _ => daemon.to_owned(),
            };
            let (finished, took) = heart.stop(heart.command(&text, on(rung))).await.unwrap();
            assert_eq!(finished.kill.rung, rung);
            assert!(finished.kill.complete, "{rung:?}: {daemon}: {:?}", finished.kill);
            assert!(finished.stopped && took < Duration::from_secs(5), "{took:?}");
            heart.assert_still().await;
        }
    }
}

#[tokio::test]
async fn a_daemon_that_hides_goes_when_its_program_ends_by_itself() {
    let text = r#"setsid env -i PATH="$PATH" sh -c "$2" sh "$1" >/dev/null 2>&1 </dev/null &
        while [ ! -s "$1" ]; do sleep 0.02; done; echo done"#;
    for rung in [KillRung::PidNamespace, KillRung::Cgroup, KillRung::Subreaper] {
        if !is_here(rung) {
            continue;
        }
        let heart = Heartbeat::new();
        let run = run(heart.command(text, on(rung)), pending());
        let finished = tokio::time::timeout(LIMIT, run).await.unwrap().unwrap();
        assert_eq!(finished.status, Status::Exited(0));
        assert_eq!(finished.stdout.text(), "done\n");
        assert!(finished.kill.complete && finished.kill.survivors_killed > 0, "{finished:?}");
        heart.assert_still().await;
    }
}

#[test]
fn in_a_sealed_group_nobody_leaves() {
    let confinement = on(KillRung::SealedGroup);
    let command = Command::new("setsid").args(["-f", "true"]).confine(confinement);
    let finished = run_blocking(command, LIMIT).unwrap();
    assert!(finished.stderr.text().contains("not permitted"), "{}", finished.stderr.text());
}

#[tokio::test]
async fn thirty_daemons_leave_no_survivor() {
    let hearts: Vec<_> = (0..30).map(|_| Heartbeat::new()).collect();
    for (index, heart) in hearts.iter().enumerate() {
        let confinement = Confinement::new(Profile::Workspace);
        let command = heart.command(DAEMONS[index % DAEMONS.len()], confinement);
        let (finished, _) = heart.stop(command).await.unwrap();
        assert!(finished.kill.complete, "{:?}", finished.kill);
    }
    let before: Vec<_> = hearts.iter().map(Heartbeat::beats).collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let survivors = hearts.iter().zip(&before).filter(|(heart, before)| heart.beats() != **before);
    assert_eq!(survivors.count(), 0);
    assert!(before.iter().all(|beats| *beats > 0));
}

#[tokio::test]
async fn a_helper_that_is_killed_takes_its_tree_along() {
    let heart = Heartbeat::new();
    if !is_here(KillRung::PidNamespace) {
        return;
    }
    let confinement = on(KillRung::PidNamespace).read("/proc");
    let command = heart.command(r#"echo started; sh -c "$2" sh "$1""#, confinement);
    let kept = crate::spawn(&command).await.unwrap();
    while heart.beats() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let own = i32::try_from(std::process::id()).unwrap();
    let file = heart.file();
    let helpers = crate::process::procfs::processes().unwrap();
    let helpers = helpers.iter().filter(|process| {
        let line = fs::read(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
        process.parent == own && memchr::memmem::find(&line, path_bytes(&file)).is_some()
    });
    let helpers: Vec<_> = helpers.collect();
    assert_eq!(helpers.len(), 1);
    let pid = rustix::process::Pid::from_raw(helpers[0].pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    kept.process.ended().await;
    heart.assert_still().await;
    let ended = kept.process.stop(Duration::ZERO).await;
    assert_eq!(ended.status, Status::Unknown);
}

fn path_bytes(path: &Path) -> &[u8] {
    std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str())
}

/// The missing features on a kernel without these, and the result of a call under best effort and
/// with a required profile.
fn degraded(profile: Profile, without: &[KernelFeature]) -> (Finished, Option<SpawnError>) {
    let mut confinement = Confinement::new(profile).require(Require::BestEffort);
    confinement.without = without.to_vec();
    let echo = |confinement| {
        let command = Command::new("sh").args(["-c", "echo a"]).confine(confinement);
        run_blocking(command, LIMIT)
    };
    let finished = echo(confinement.clone()).unwrap();
    assert_eq!(finished.stdout.text(), "a\n");
    (finished, echo(confinement.require(Require::Required)).err())
}

#[test]
fn what_the_kernel_lacks_is_said_and_a_required_profile_is_refused() {
    for profile in [Profile::Pure, Profile::Workspace, Profile::WorkspaceNet] {
        for (facility, word) in
            [(KernelFeature::Landlock, "files: "), (KernelFeature::Seccomp, "syscalls: ")]
        {
            let (finished, refused) = degraded(profile, &[facility]);
            let enforced = &finished.enforced;
            assert!(enforced.missing.iter().any(|clause| clause.starts_with(word)), "{enforced}");
            assert_eq!(enforced.files, facility != KernelFeature::Landlock);
            assert_eq!(enforced.syscalls, facility != KernelFeature::Seccomp);
            assert!(enforced.privileges);
            let refused = refused.unwrap();
            assert!(matches!(refused, SpawnError::NotEnforced { .. }), "{refused}");
            assert!(refused.to_string().contains(word), "{refused}");
        }
        let (finished, refused) = degraded(profile, &[]);
        assert!(finished.enforced.is_complete() && refused.is_none(), "{refused:?}");
    }
}

#[test]
fn without_the_best_rung_the_next_is_taken_and_told() {
    let rung = |without: &[KernelFeature], job_control| {
        let mut confinement = Confinement::new(Profile::Workspace).job_control(job_control);
        confinement.without = without.to_vec();
        let command = Command::new("true").confine(confinement);
        run_blocking(command, LIMIT).unwrap().enforced.processes
    };
    let both = [KernelFeature::Namespaces, KernelFeature::Cgroups];
    assert_eq!(rung(&both, false), KillRung::SealedGroup);
    assert_eq!(rung(&both, true), KillRung::Subreaper);
    let nothing = [both.as_slice(), &[KernelFeature::Procfs]].concat();
    assert_eq!(rung(&nothing, true), KillRung::ProcessGroup);
    if is_here(KillRung::PidNamespace) {
        assert_eq!(rung(&[], true), KillRung::PidNamespace);
    }
}

/// Starts four hundred processes, each of which waits for the rest; prints how many there were.
const FORKS: &str = r"$n = 0; for (1..400) { $p = fork; defined $p or last;
    $p or do { sleep 20; exit }; $n++ } print $n";

#[test]
fn a_fork_bomb_ends_at_its_limit_on_every_rung() {
    if rustix::process::geteuid().is_root() || !Path::new("/usr/bin/perl").exists() {
        eprintln!("skipped: no limit of processes holds root, or there is no perl to fork");
        return;
    }
    for rung in
        [KillRung::PidNamespace, KillRung::Cgroup, KillRung::SealedGroup, KillRung::Subreaper]
    {
        if !is_here(rung) {
            continue;
        }
        let mut confinement = on(rung);
        confinement.limits.processes = Some(50);
        let command = Command::new("/usr/bin/perl").args(["-e", FORKS]).confine(confinement);
        let finished = run_blocking(command, LIMIT).unwrap();
        // Fewer if other processes of this user start meanwhile, more if some end.
        let started: u32 = finished.stdout.text().trim().parse().unwrap();
        assert!(started < 350, "{rung:?}: {started}");
        assert!(finished.kill.complete, "{finished:?}");
    }
}

#[test]
fn all_of_it_holds_for_a_plain_user_too() {
    let setpriv = crate::find_program("setpriv");
    if !rustix::process::geteuid().is_root() || setpriv.is_err() {
        eprintln!("skipped: only root with setpriv can become somebody else");
        return;
    }
    // Another user may not be able to enter the folder in which the test was built.
    let folder = tempfile::Builder::new().prefix("toolcrib-plain").tempdir_in("/tmp").unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(folder.path(), open).unwrap();
    let own = folder.path().join("tests");
    fs::copy(std::env::current_exe().unwrap(), &own).unwrap();
    let command = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--groups=65533"])
        .arg(own)
        .args(["jail::tests::", "--test-threads=2"])
        .env("TMPDIR", folder.path())
        .env("HOME", folder.path())
        .cwd(folder.path());
    let finished = run_blocking(command, LIMIT * 5).unwrap();
    let (out, err) = (finished.stdout.text(), finished.stderr.text());
    assert_eq!(finished.status, Status::Exited(0), "{out}\n{err}");
    for test in [
        "no_daemon_survives_on_any_rung",
        "a_fork_bomb_ends_at_its_limit_on_every_rung",
        "metadata::what_computes_changes_no_mode_owner_time_or_attribute_anywhere",
        "metadata::other_programs_give_files_to_nobody_and_set_no_attributes",
        "links::a_working_directory_that_became_a_link_is_not_entered",
        "links::a_link_leads_to_no_other_grant_for_writing",
        "withheld::attacks::no_program_changes_or_replaces_what_is_withheld_from_it",
        "withheld::attacks::modes_and_times_are_changed_only_where_a_program_may_write",
        "withheld::attacks::no_program_reads_what_is_hidden_from_it",
        "withheld::attacks::a_program_cannot_undo_what_covers_a_place",
        "metadata::programs_that_copy_and_unpack_files_find_nothing_missing",
        "metadata::no_file_gets_a_set_id_bit_when_it_is_made_or_changed",
        "scratch::no_program_reaches_the_scratch_directory_of_another_one",
        "scratch::a_program_has_its_own_scratch_directory_whatever_else_it_is_granted",
        "scratch::a_kept_home_is_shown_to_its_program_alone_even_in_a_folder_that_it_is_granted",
        "reach::no_socket_of_the_machine_hears_a_confined_program",
        "reach::no_confined_program_slows_or_signals_a_process_of_the_same_user",
        "reach::shared_memory_queues_and_semaphores_are_the_programs_own_and_go_with_it",
        "bounds::threads_end_at_their_limit_under_pure",
        "bounds::a_process_that_takes_too_much_memory_ends",
    ] {
        assert!(out.contains(&format!("{test} ... ok")), "{out}");
    }
}
