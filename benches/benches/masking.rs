//! Masking of 100 MB of a program's output beside a search of each byte, in one run.
//!
//! `cargo bench -p toolcrib-benches --bench masking [-- lines|json|backslashes …]`
//!
//! `ours` is [`Mask::bytes`](toolcrib_core::masking::Mask::bytes) over pieces of 64 KiB, as they are read from a
//! program; `scan` searches each piece once for each secret, and copies it; `copy` only copies it. The program
//! fails if a limit is missed.

#![expect(clippy::print_stdout, reason = "the table is what this program is for")]
#![expect(clippy::expect_used, reason = "a bench that cannot be set up fails")]

use std::fmt::Write as _;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use memchr::memmem::Finder;
use toolcrib_benches::target::{Target, verdicts};
use toolcrib_benches::{Contender, interleaved};
use toolcrib_core::masking::Mask;

/// Bytes of output of each kind.
const OUTPUT_BYTES: usize = 100_000_000;
/// Bytes that are read at once.
const PIECE_BYTES: usize = 64 * 1024;
/// Rounds of each comparison; their median is shown.
const ROUNDS: usize = 5;
/// Secrets as operators have them: a password, a token, and the confidential part of a URL.
const SECRETS: [&str; 3] =
    ["hunter2-correct-horse", "ghp_16C7e42F292c6912E7710c838347Ae178B4a", "s3cr3t/with/slashes"];

/// A kind of output: its name, how it looks, and the limits of `ours`.
struct Kind {
    name: &'static str,
    text: fn() -> String,
    targets: [Target; 1],
}

/// Text without a backslash is searched once for all secrets. What may be an escape is read a second time without
/// it, and a row of backslashes once more for each time that its number can be halved.
const KINDS: [Kind; 3] = [
    Kind { name: "lines", text: log_lines, targets: [Target::Times(2.0, "scan")] },
    Kind { name: "json", text: json_with_escapes, targets: [Target::Times(30.0, "scan")] },
    Kind { name: "backslashes", text: backslashes, targets: [Target::Times(200.0, "scan")] },
];

fn main() -> ExitCode {
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    println!("| output | contender | ms | `ours` ÷ this | target |");
    println!("|---|---|---:|---:|---|");
    let mut missed = 0;
    for kind in KINDS {
        if asked.is_empty() || asked.iter().any(|asked| asked == kind.name) {
            missed += usize::from(!shown(&kind));
        }
    }
    println!("\n{missed} missed");
    if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints the rows of a kind; whether its limits are met.
fn shown(kind: &Kind) -> bool {
    let text: &'static str = (kind.text)().leak();
    let mut contenders = [masked(text), scanned(text), copied(text)];
    let rounds = interleaved(&mut contenders, ROUNDS, 1);
    for name in rounds.names() {
        let (time, ratio) = (rounds.median(name) / 1e6, rounds.ratio("ours", name));
        let held =
            if *name == "ours" { verdicts(&kind.targets, &rounds, name) } else { String::new() };
        println!("| {} | {name} | {time:.1} | {ratio:.2} | {held} |", kind.name);
    }
    kind.targets.iter().all(|target| target.is_met(&rounds, "ours"))
}

/// A contender that does `pass` with each piece of the text, and a place for what it shows.
fn over_pieces(
    name: &'static str,
    text: &'static str,
    mut pass: impl FnMut(&[u8], &mut Vec<u8>) + 'static,
) -> Contender {
    let mut shown = Vec::with_capacity(4 * PIECE_BYTES);
    Contender::new(name, move |times| {
        let start = Instant::now();
        for _ in 0..times {
            for piece in text.as_bytes().chunks(PIECE_BYTES) {
                shown.clear();
                pass(piece, &mut shown);
                black_box(&shown);
            }
        }
        start.elapsed()
    })
}

fn masked(text: &'static str) -> Contender {
    let mask = Mask::new(SECRETS.map(str::to_owned)).expect("a mask");
    let mut stream = mask.bytes();
    over_pieces("ours", text, move |piece, shown| stream.push(piece, shown))
}

fn scanned(text: &'static str) -> Contender {
    let finders = SECRETS.map(|secret| Finder::new(secret.as_bytes()));
    over_pieces("scan", text, move |piece, shown| {
        for finder in &finders {
            assert_eq!(finder.find(piece), None, "the output has no secret");
        }
        shown.extend_from_slice(piece);
    })
}

fn copied(text: &'static str) -> Contender {
    over_pieces("copy", text, |piece, shown| shown.extend_from_slice(piece))
}

fn log_lines() -> String {
    repeated(|text, number| {
        let _ = writeln!(
            text,
            "2026-01-{:02}T10:00:{:02}Z INFO request {number} path=/v1/tools/search status=200 took={}ms",
            number % 28 + 1,
            number % 60,
            number % 900,
        );
    })
}

/// Lines of JSON whose text is a quoted line of JSON, with a path and a line end.
fn json_with_escapes() -> String {
    repeated(|text, number| {
        let _ = writeln!(
            text,
            r#"{{"n":{number},"path":"C:\\logs\\{number}.txt","body":"{{\"name\":\"a\\u00e9\\n\",\"tab\":\"\t\"}}"}}"#,
        );
    })
}

fn backslashes() -> String {
    "\\".repeat(OUTPUT_BYTES)
}

fn repeated(line: impl Fn(&mut String, usize)) -> String {
    let mut text = String::with_capacity(OUTPUT_BYTES + 1024);
    for number in 0.. {
        if text.len() >= OUTPUT_BYTES {
            break;
        }
        line(&mut text, number);
    }
    text
}
