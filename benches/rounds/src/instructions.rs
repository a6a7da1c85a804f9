//! Instructions per piece of work, counted by valgrind: the one number that does not change with
//! the load of the machine.

use std::process::{Command, ExitCode};

use crate::Contender;

/// The first argument of a program that runs under valgrind.
const RUN: &str = "run";

/// Instructions of one piece of work of a contender: this program runs twice under callgrind, once
/// with twice the work, and the difference is the work alone.
///
/// The program must begin with [`asked_to_run`]. Fails where valgrind is missing or counts nothing.
pub fn instructions(part: &str, contender: &str, times: u64) -> Result<u64, String> {
    let run = |times: u64| instructions_of_run(&[RUN, part, contender, &times.to_string()]);
    let (short, long) = (run(times)?, run(2 * times)?);
    Ok(long.saturating_sub(short) / times)
}

/// Does what [`instructions`] has asked of this run of the program, if it has.
pub fn asked_to_run(contenders: impl Fn(&str) -> Vec<Contender>) -> Option<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [asked, part, name, times, ..] = arguments.as_slice() else { return None };
    if asked != RUN {
        return None;
    }
    let contender = contenders(part).into_iter().find(|contender| contender.name() == name);
    match contender.zip(times.parse().ok()) {
        Some((mut contender, times)) => {
            contender.run(times);
            Some(ExitCode::SUCCESS)
        }
        None => Some(ExitCode::FAILURE),
    }
}

/// Instructions of a whole run of this program with these arguments. Fails as [`instructions`] does.
#[expect(
    clippy::disallowed_methods,
    reason = "valgrind is not a tool of a model, so it is not confined"
)]
pub fn instructions_of_run(arguments: &[&str]) -> Result<u64, String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(this)
        .args(arguments)
        .output()
        .map_err(|error| format!("valgrind does not start: {error}"))?;
    let report = String::from_utf8_lossy(&output.stderr);
    report
        .lines()
        .find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok())
        .ok_or_else(|| format!("valgrind counted nothing: {report}"))
}
