//! What a program can see of the server.

use std::collections::BTreeMap;
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::{FdFlags, fcntl_setfd};
use toolcrib_sandbox::{Command, SpawnError};

use crate::{finish, sh, try_finish};

async fn environment(command: Command) -> BTreeMap<String, String> {
    let text = finish(command).await.stdout.text();
    text.lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[tokio::test]
async fn a_program_may_start_in_its_scratch_directory() {
    let finished = finish(sh("pwd -P; cd \"$HOME\" && pwd -P").cwd("/").cwd_in_scratch()).await;
    let lines: Vec<_> = finished.stdout.text().lines().map(str::to_owned).collect();
    assert!(lines[0] != "/" && lines[0] == lines[1], "{lines:?}");
}

#[tokio::test]
async fn the_environment_is_empty_but_for_the_allow_list() {
    // cargo sets dozens of CARGO_* variables for a test: none of them may arrive.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let seen = environment(Command::new("env").env("MINE", "1").env("MINE", "2")).await;
    let mut names: Vec<_> = seen.keys().map(String::as_str).filter(|name| *name != "TZ").collect();
    names.sort_unstable();
    assert_eq!(names, ["HOME", "LANG", "MINE", "PATH", "TMPDIR", "TOOLCRIB_CALL"]);
    assert_eq!(seen["MINE"], "2");
}

#[tokio::test]
async fn variables_are_passed_by_name_and_only_where_the_server_has_them() {
    let command = Command::new("env").pass_env(["CARGO_MANIFEST_DIR", "NO_SUCH_VARIABLE_HERE"]);
    let seen = environment(command).await;
    assert_eq!(seen["CARGO_MANIFEST_DIR"], env!("CARGO_MANIFEST_DIR"));
    assert!(!seen.contains_key("NO_SUCH_VARIABLE_HERE"));
}

#[tokio::test]
async fn the_mark_of_the_call_cannot_be_overwritten() {
    let seen = environment(Command::new("env").env("TOOLCRIB_CALL", "")).await;
    assert!(seen["TOOLCRIB_CALL"].len() >= 32);
}

#[tokio::test]
async fn home_is_a_private_scratch_directory_that_is_gone_afterwards() {
    let command = sh(r#"stat -c %a "$HOME"; echo x > "$TMPDIR/file"; echo "$HOME""#);
    let text = finish(command).await.stdout.text();
    let (mode, home) = text.trim_end().split_once('\n').unwrap();
    assert_eq!(mode, "700");
    assert!(home.contains("toolcrib-"), "{home}");
    assert!(!Path::new(home).exists());
}

#[tokio::test]
async fn a_variable_needs_a_possible_name() {
    for name in ["", "A=B"] {
        let error = try_finish(Command::new("true").env(name, "x")).await.unwrap_err();
        assert!(matches!(error, SpawnError::VariableName { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn no_descriptor_is_inherited() {
    let open = std::fs::File::open("/dev/null").unwrap();
    fcntl_setfd(&open, FdFlags::empty()).unwrap();
    let text = finish(sh("ls /proc/$$/fd")).await.stdout.text();
    // dash opens nothing of its own for `-c`.
    assert_eq!(text.split_whitespace().collect::<Vec<_>>(), ["0", "1", "2"]);
    drop(open);
}

#[tokio::test]
async fn the_programs_streams_block_as_programs_expect() {
    let command = sh("cat /proc/$$/fdinfo/0 /proc/$$/fdinfo/1 /proc/$$/fdinfo/2").stdin("x");
    let text = finish(command).await.stdout.text();
    let flags: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("flags:")).collect();
    assert_eq!(flags.len(), 3, "{text}");
    for flag in flags {
        let bits = u32::from_str_radix(flag.trim(), 8).unwrap();
        assert_eq!(bits & OFlags::NONBLOCK.bits(), 0, "{text}");
    }
}

#[tokio::test]
async fn the_program_leads_its_own_session_and_group() {
    let text = finish(sh(
        "read -r pid name state ppid pgrp sid rest < /proc/$$/stat; echo $pid $pgrp $sid",
    ))
    .await
    .stdout
    .text();
    let numbers: Vec<_> = text.split_whitespace().collect();
    assert_eq!(numbers.len(), 3);
    assert!(numbers.iter().all(|number| *number == numbers[0]), "{text}");
}

#[tokio::test]
async fn signals_are_neither_ignored_nor_blocked() {
    // Rust programs ignore SIGPIPE; a child must not inherit that.
    let text = finish(sh("grep -E '^Sig(Blk|Ign)' /proc/self/status")).await.stdout.text();
    // glibc's posix_spawn leaves its two internal signals, 32 and 33, ignored.
    let internal: u64 = 0b11 << 31;
    let masks: Vec<_> = text
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1))
        .map(|mask| u64::from_str_radix(mask, 16).unwrap() & !internal)
        .collect();
    assert_eq!(masks, [0, 0], "{text}");
}
