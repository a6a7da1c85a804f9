//! Programs that report a result in their exit code: `grep` exits with 1 if nothing matches, which
//! is a failed call unless `ok_exit` says otherwise.

use crate::diagnostic::{Diagnostic, Findings};
use crate::document::{Node, NodeValue};
use crate::manifest::{StartedProgram, started};

/// An exit code that reports a result.
struct ExitCodeResult {
    programs: &'static [&'static str],
    /// Arguments of which one must be present; if empty, the program always behaves this way.
    arguments: &'static [&'static str],
    code: u8,
    /// The condition for the code.
    when: &'static str,
}

const NO_MATCH: &str = "if nothing matches";
const FOUND: &str = "if it finds a problem";
const DIFFERENT: &str = "if there is a difference";

const EXIT_CODE_RESULTS: [ExitCodeResult; 14] = [
    ExitCodeResult {
        programs: &["grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack"],
        arguments: &[],
        code: 1,
        when: NO_MATCH,
    },
    ExitCodeResult { programs: &["git"], arguments: &["grep"], code: 1, when: NO_MATCH },
    ExitCodeResult {
        programs: &["git"],
        arguments: &["--exit-code", "--quiet", "--no-index"],
        code: 1,
        when: DIFFERENT,
    },
    ExitCodeResult {
        programs: &["diff", "cmp", "zdiff", "zcmp", "diff3", "colordiff"],
        arguments: &[],
        code: 1,
        when: DIFFERENT,
    },
    ExitCodeResult { programs: &["kubectl"], arguments: &["diff"], code: 1, when: DIFFERENT },
    ExitCodeResult {
        programs: &["terraform", "tofu"],
        arguments: &["-detailed-exitcode"],
        code: 2,
        when: DIFFERENT,
    },
    ExitCodeResult {
        programs: &["pgrep", "pidof", "pkill"],
        arguments: &[],
        code: 1,
        when: "if no process matches",
    },
    ExitCodeResult {
        programs: &["systemctl", "service"],
        arguments: &["is-active", "status"],
        code: 3,
        when: "if the unit is not active",
    },
    ExitCodeResult {
        programs: &["systemctl"],
        arguments: &["is-enabled", "is-failed"],
        code: 1,
        when: "if the answer is no",
    },
    ExitCodeResult {
        programs: &["test", "[", "expr"],
        arguments: &[],
        code: 1,
        when: "if the condition is false",
    },
    ExitCodeResult {
        programs: &["which"],
        arguments: &[],
        code: 1,
        when: "if there is no such program",
    },
    ExitCodeResult {
        programs: &["getent"],
        arguments: &[],
        code: 2,
        when: "if there is no such entry",
    },
    ExitCodeResult {
        programs: &["jq"],
        arguments: &["-e", "--exit-status"],
        code: 1,
        when: "if the last result is false or null",
    },
    ExitCodeResult {
        programs: &["shellcheck", "yamllint", "hadolint", "flake8", "eslint", "mypy"],
        arguments: &[],
        code: 1,
        when: FOUND,
    },
];

/// Wrappers that exit with the code of the wrapped program.
const PASS_ON: [&str; 12] = [
    "env", "nice", "ionice", "nohup", "stdbuf", "timeout", "setsid", "sudo", "doas", "chrt",
    "taskset", "time",
];

pub(super) fn check(tool: &Node, findings: &mut Findings<'_>) {
    let Some(run) = tool.entry("run").map(|run| &run.node) else { return };
    let Some(argv) = run.entry("argv").filter(|_| run.entry("ok_exit").is_none()) else { return };
    let programs = started(&argv.node, findings);
    let program = programs.iter().find(|program| !PASS_ON.contains(&program.name.as_str()));
    let Some((program, answer)) = program.and_then(|program| Some((program, answer(program)?)))
    else {
        return;
    };
    let ExitCodeResult { code, when, .. } = answer;
    if is_retried(run, *code) {
        return;
    }
    let message =
        format!("`{}` exits with code {code} {when}, which makes the call fail", program.name);
    findings.add(
        Diagnostic::hint("answer-in-exit-code", &program.span, message)
            .help(format!("if that is an answer, write `ok_exit: [0, {code}]` in `run`")),
    );
}

fn answer(program: &StartedProgram) -> Option<&'static ExitCodeResult> {
    let has = |argument: &&str| program.arguments.iter().any(|given| given == argument);
    EXIT_CODE_RESULTS.iter().find(|answer| {
        answer.programs.contains(&program.name.as_str())
            && (answer.arguments.is_empty() || answer.arguments.iter().any(has))
    })
}

/// Whether the code is in `retry_exit`, so that the author has considered it.
fn is_retried(run: &Node, code: u8) -> bool {
    let codes = run.entry("retry_exit").map(|codes| codes.node.items()).unwrap_or_default();
    codes.iter().any(|item| {
        matches!(&item.value, NodeValue::Number(number) if number.as_u64() == Some(u64::from(code)))
    })
}
