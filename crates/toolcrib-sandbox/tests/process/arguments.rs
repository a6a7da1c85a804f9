//! One argument in, one argument out.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use proptest::prelude::*;
use toolcrib_sandbox::{Command, SpawnError, Status};

use crate::{finish, try_finish};

/// What a program received, each argument ended by NUL.
fn echo(args: &[OsString]) -> Command {
    // With no operand left, printf would print its format once.
    Command::new("printf").arg("%s\\0").args(args.iter().cloned())
}

fn received(stdout: &[u8]) -> Vec<OsString> {
    let mut parts: Vec<_> =
        stdout.split(|byte| *byte == 0).map(|part| OsString::from_vec(part.to_vec())).collect();
    parts.pop();
    parts
}

#[tokio::test]
async fn an_argument_vector_arrives_unchanged() {
    let args: Vec<OsString> = [
        "",
        " ",
        "a b",
        "; rm -rf /",
        "$(id)",
        "`id`",
        "-rf",
        "--",
        "'",
        "\"",
        "\\",
        "*",
        "a\nb",
        "\u{1b}[31m",
        "ä€🦀",
        "${HOME}",
        "&&",
        "|",
        ">",
        "%s",
    ]
    .map(OsString::from)
    .to_vec();
    let finished = finish(echo(&args)).await;
    assert_eq!(finished.status, Status::Exited(0));
    assert_eq!(received(&finished.stdout.head), args);
}

#[tokio::test]
async fn nul_is_refused_with_its_place() {
    let error = try_finish(Command::new("true").args(["a", "b\0c"])).await.unwrap_err();
    assert!(matches!(error, SpawnError::Nul { .. }), "{error:?}");
    assert_eq!(error.to_string(), "argument 2 contains a NUL character");
    let error = try_finish(Command::new("true").env("X", "\0")).await.unwrap_err();
    assert_eq!(error.to_string(), "the variable X contains a NUL character");
}

#[tokio::test]
async fn an_argument_beyond_the_kernels_limit_is_a_clear_error() {
    let error = try_finish(Command::new("true").arg("x".repeat(200_000))).await.unwrap_err();
    assert!(matches!(error, SpawnError::TooLong { .. }), "{error:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_without_nul_arrive_as_exactly_one_argument_each(
        args in prop::collection::vec(prop::collection::vec(1_u8.., 0..200), 1..8),
    ) {
        let args: Vec<OsString> = args.into_iter().map(OsString::from_vec).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let finished = runtime.block_on(finish(echo(&args)));
        prop_assert_eq!(received(&finished.stdout.head), args);
    }
}
