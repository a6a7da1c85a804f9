//! A call of `execute_python`, jail and check included, beside the bare interpreter that does nothing.
//!
//! `cargo bench -p toolcrib-benches --bench python`

#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

use std::time::Instant;

use tokio::runtime::Builder;
use toolcrib_benches::target::{Target, verdicts};
use toolcrib_benches::{Contender, interleaved};
use toolcrib_core::{Executor, ExecutorConfig, Registry, RegistryBuilder, TurnOptions};
use toolcrib_tool::{ToolCall, native_tools};
// The tool registers itself.
use toolcrib_builtins as _;

/// Rounds of one call each: their median is the call's.
const ROUNDS: usize = 101;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    toolcrib_sandbox::jail::reexec_hook();
    let program = python()?;
    let rounds = interleaved(
        &mut [
            call("ours", r#"{"code": "print(1)", "strictness": "strict"}"#)?,
            call("ours/standard", r#"{"code": "import json\nprint(json.dumps([1]))"}"#)?,
            bare("limit/python", &program, "pass"),
            bare("limit/json", &program, "import json; print(json.dumps([1]))"),
        ],
        ROUNDS,
        1,
    );
    println!("Medians of {ROUNDS} interleaved calls; only the ratios inside one run count.\n");
    println!("| contender | ms per call | `ours` ÷ this | target |");
    println!("|---|---:|---:|---|");
    for name in rounds.names() {
        let targets = [Target::Nanoseconds(25e6)];
        let verdict =
            if *name == "ours" { verdicts(&targets, &rounds, name) } else { String::new() };
        let (median, ratio) = (rounds.median(name) / 1e6, rounds.ratio("ours", name));
        println!("| {name} | {median:.2} | {ratio:.2} | {verdict} |");
    }
    Ok(())
}

/// The whole call: `Turn::call`, from the text of the arguments to the result.
fn call(contender: &'static str, arguments: &'static str) -> Result<Contender, Failure> {
    let mut registry = RegistryBuilder::new();
    for tool in native_tools() {
        let _ = registry.register(tool.entry()?);
    }
    let executor = Executor::new(Registry::new(registry.build()), ExecutorConfig::default());
    let runtime = Builder::new_current_thread().enable_all().build()?;
    Ok(Contender::new(contender, move |times| {
        runtime.block_on(async {
            let turn = executor.turn(TurnOptions::default());
            let start = Instant::now();
            for _ in 0..times {
                let result = turn.call(ToolCall::new("call_1", "execute_python", arguments)).await;
                assert!(result.is_success(), "{}", result.text());
            }
            start.elapsed()
        })
    }))
}

/// The interpreter, started as the tool starts it, without anything that the tool does.
fn bare(contender: &'static str, program: &str, code: &'static str) -> Contender {
    let program = program.to_owned();
    Contender::new(contender, move |times| {
        let start = Instant::now();
        for _ in 0..times {
            let mut command = std_command(&program);
            let output = command.args(["-I", "-S", "-B", "-c", code]).env_clear().output();
            assert!(output.is_ok_and(|output| output.status.success()), "python does not run");
        }
        start.elapsed()
    })
}

/// The interpreter itself, whatever wrapper the name leads to.
fn python() -> Result<String, Failure> {
    let asked =
        std_command("python3").args(["-c", "import sys; print(sys.executable)"]).output()?;
    Ok(String::from_utf8(asked.stdout)?.trim().to_owned())
}

#[expect(clippy::disallowed_methods, reason = "std is what ours is held against")]
fn std_command(program: &str) -> std::process::Command {
    std::process::Command::new(program)
}
