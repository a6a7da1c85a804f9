//! Streams of any length in both directions.

use std::time::Duration;

use toolcrib_sandbox::{Capture, Command, Status};

use crate::{finish, sh};

const MIB: usize = 1024 * 1024;

#[tokio::test]
async fn a_capture_keeps_what_it_is_told_to() {
    let keep = |head, tail| {
        sh("printf 0123456789; printf abcdef >&2").capture_stdout(Capture { head, tail })
    };
    let head = finish(keep(3, 0)).await;
    assert_eq!(head.stdout.text(), "012\n[… 7 bytes omitted …]\n");
    assert_eq!(head.stderr.text(), "abcdef");
    assert_eq!(finish(keep(0, 3)).await.stdout.text(), "[… 7 bytes omitted …]\n789");
    assert_eq!(finish(keep(5, 5)).await.stdout.text(), "0123456789");
}

#[tokio::test]
async fn two_streams_made_one_keep_the_order_of_what_was_written() {
    let text = "for i in 1 2 3; do echo out $i; echo err $i >&2; done";
    let finished = finish(sh(text).stderr_to_stdout()).await;
    assert_eq!(finished.stdout.text(), "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n");
    assert_eq!(finished.stderr.total, 0);
}

#[tokio::test]
async fn both_streams_flooding_and_a_large_input_do_not_block_each_other() {
    // 8 MiB in, and 8 MiB out of each stream, with pipes of 64 KiB.
    let input: Vec<u8> = b"0123456789abcde\n".repeat(MIB / 2);
    let command = Command::new("tee").arg("/dev/stderr").stdin(input.clone());
    let finished = finish(command).await;
    assert_eq!(finished.status, Status::Exited(0));
    assert_eq!(finished.stdout.total, input.len() as u64);
    assert_eq!(finished.stderr.total, input.len() as u64);
    assert!(finished.stdout.tail.ends_with(b"abcde\n"));
}

#[tokio::test]
async fn a_program_that_does_not_read_its_input_is_no_failure() {
    let input = vec![b'x'; 4 * MIB];
    for text in ["exec 0<&-; echo done", "echo done", "head -c 10 >/dev/null; echo done"] {
        let finished = finish(sh(text).stdin(input.clone())).await;
        assert_eq!(
            (finished.status, finished.stdout.text().as_str()),
            (Status::Exited(0), "done\n")
        );
    }
}

#[tokio::test]
async fn input_arrives_whole_and_ends() {
    let finished = finish(Command::new("cat").stdin("one\ntwo")).await;
    assert_eq!(finished.stdout.text(), "one\ntwo");
    // Without input there is an end of file at once, not a terminal and not the server's stdin.
    assert_eq!(finish(Command::new("cat")).await.stdout.total, 0);
}

#[tokio::test]
async fn output_written_just_before_the_end_is_not_lost() {
    // A child that outlives its parent by a moment and writes meanwhile.
    let finished = finish(sh("(sleep 0.1; echo late) & echo early")).await;
    assert_eq!(finished.stdout.text(), "early\nlate\n");
    assert!(finished.duration < Duration::from_secs(2), "{:?}", finished.duration);
}
