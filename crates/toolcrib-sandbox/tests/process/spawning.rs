//! Long-running child programs: their pipes, how they end, and that no process is left.

use std::fs;
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use toolcrib_sandbox::{Capture, Command, Status, finish_kills, spawn};

use crate::{bounded, sh};

const PATIENCE: Duration = Duration::from_millis(100);

/// A shell that starts a child of its own, says both numbers, and then ignores everything.
fn stubborn() -> Command {
    sh("trap '' TERM HUP; sleep 300 & echo $$ $!; exec >&-; sleep 300")
        .grace(Duration::from_millis(200))
}

async fn numbers(output: &mut (impl tokio::io::AsyncRead + Unpin)) -> Vec<String> {
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line).await.unwrap();
    line.split_whitespace().map(str::to_owned).collect()
}

fn lives(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

#[tokio::test]
async fn lines_go_in_and_come_out_as_long_as_it_runs() {
    bounded(async {
        let mut kept = spawn(&sh("while read line; do echo \"<$line>\"; done")).await.unwrap();
        let mut output = BufReader::new(&mut kept.output);
        for word in ["one", "two"] {
            kept.input.write_all(format!("{word}\n").as_bytes()).await.unwrap();
            let mut line = String::new();
            output.read_line(&mut line).await.unwrap();
            assert_eq!(line, format!("<{word}>\n"));
        }
        assert!(!kept.process.has_ended());
        drop(kept.input);
        kept.process.ended().await;
        let ended = kept.process.stop(Duration::ZERO).await;
        assert_eq!(ended.status, Status::Exited(0));
        assert!(!ended.kill.forced && ended.kill.complete);
    })
    .await;
}

#[tokio::test]
async fn what_ignores_its_input_and_sigterm_is_killed_with_its_children() {
    bounded(async {
        let mut kept = spawn(&stubborn()).await.unwrap();
        let numbers = numbers(&mut kept.output).await;
        assert!(numbers.len() == 2 && numbers.iter().all(|pid| lives(pid)), "{numbers:?}");
        drop(kept.input);
        let started = Instant::now();
        let ended = kept.process.stop(PATIENCE).await;
        assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
        assert_eq!(ended.status, Status::Signaled(9));
        assert!(ended.kill.forced && ended.kill.complete);
        assert!(!numbers.iter().any(|pid| lives(pid)));
    })
    .await;
}

#[tokio::test]
async fn a_child_that_left_the_session_goes_with_it() {
    bounded(async {
        let text = "setsid sh -c 'trap \"\" TERM; echo $$; exec >&- 2>&-; sleep 300' & cat";
        let mut kept = spawn(&sh(text)).await.unwrap();
        let numbers = numbers(&mut kept.output).await;
        assert!(lives(&numbers[0]));
        drop(kept.input);
        let ended = kept.process.stop(PATIENCE).await;
        assert!(ended.kill.complete && ended.kill.survivors_killed > 0, "{ended:?}");
        assert!(!lives(&numbers[0]));
    })
    .await;
}

#[tokio::test]
async fn dropping_it_ends_the_tree() {
    let numbers = bounded(async {
        let mut kept = spawn(&stubborn()).await.unwrap();
        numbers(&mut kept.output).await
    })
    .await;
    let gone = tokio::task::spawn_blocking(|| finish_kills(Duration::from_secs(10))).await.unwrap();
    assert!(gone && !numbers.iter().any(|pid| lives(pid)));
}

#[tokio::test]
async fn a_flood_on_standard_error_is_read_and_bounded() {
    bounded(async {
        let command = sh("head -c 3000000 /dev/zero | tr '\\0' e >&2; printf last >&2; echo done")
            .capture_stderr(Capture { head: 0, tail: 100 });
        let mut kept = spawn(&command).await.unwrap();
        let mut text = String::new();
        kept.output.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "done\n");
        kept.process.ended().await;
        while kept.process.stderr().total < 3_000_004 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let ended = kept.process.stop(Duration::ZERO).await;
        assert!(ended.stderr.tail.len() == 100 && ended.stderr.tail.ends_with(b"last"));
    })
    .await;
}

#[tokio::test]
async fn a_program_that_is_not_there_says_so() {
    let error = spawn(&Command::new("no-such-program-here")).await.unwrap_err();
    assert!(error.to_string().contains("`no-such-program-here` was not found"), "{error}");
}

#[tokio::test]
async fn what_a_program_says_right_before_its_end_is_read_to_the_end() {
    bounded(async {
        let text = "for n in 1 2 3 4 5 6 7 8 9; do echo line $n >&2; done; echo last >&2; exit 3";
        let command = sh(text).capture_stderr(Capture { head: 0, tail: 4096 });
        for _ in 0..10 {
            let kept = spawn(&command).await.unwrap();
            // The only thread of this runtime is held: nothing is read before the program has ended.
            while !kept.process.has_ended() {
                std::thread::sleep(Duration::from_millis(2));
            }
            let ended = kept.process.stop(Duration::from_secs(5)).await;
            assert_eq!(ended.status.code(), Some(3));
            assert!(ended.stderr.text().ends_with("last\n"), "{:?}", ended.stderr.text());
        }
    })
    .await;
}
