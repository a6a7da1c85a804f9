//! Mistakes in the texts of shells that the shell itself would only report in a call, or never.

use crate::diagnostic::{Diagnostic, Findings};
use crate::document::Node;
use crate::manifest::{Places, slips};

/// Builtins of a shell, which are no programs, with what is written instead.
const BUILTINS: [(&str, &str); 7] = [
    ("cd", "write the folder as `cwd: /srv/data` beside `run`"),
    ("pushd", "write the folder as `cwd: /srv/data` beside `run`"),
    ("export", "set variables with `run: {env: {NAME: value}}`"),
    ("source", "write a shell's text: `run: {shell: bash, text: \"source ./env.sh; …\"}`"),
    (".", "write a shell's text: `run: {shell: sh, text: \". ./env.sh; …\"}`"),
    ("alias", "name the program itself"),
    ("ulimit", "limit the tool instead: `limits: {memory: 512MiB}`"),
];

pub(super) fn check(tool: &Node, findings: &mut Findings<'_>) {
    let Some(run) = tool.entry("run").map(|run| &run.node) else { return };
    check_program(run, findings);
    let Some(node) = run.entry("text").map(|entry| &entry.node) else { return };
    let Some(text) = node.as_str() else { return };
    let shell = run.entry("shell").and_then(|entry| entry.node.as_str());
    let has_input = run.entry("stdin").is_some();
    for slip in slips(text, shell == Some("sh"), has_input) {
        let written = text.get(slip.range.clone()).unwrap_or_default();
        let span = Places::nth(node, written, text, slip.range.start, findings.text);
        findings.add(Diagnostic::warning("shell-mistake", &span, slip.message).help(slip.help));
    }
}

/// Reports an argument vector that begins with something else than a program.
fn check_program(run: &Node, findings: &mut Findings<'_>) {
    let first = run.entry("argv").and_then(|argv| argv.node.items().first());
    let Some((node, name)) = first.and_then(|node| Some((node, node.as_str()?))) else { return };
    if let Some((builtin, help)) = BUILTINS.iter().find(|(builtin, _)| *builtin == name) {
        let message = format!("`{builtin}` is a command of shells, not a program");
        findings.add(Diagnostic::warning("shell-mistake", &node.span, message).help(*help));
    } else if let Some((variable, value)) = name.split_once('=')
        && !variable.is_empty()
        && variable.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
    {
        let message = "the first entry is a program: only a shell reads `NAME=value` before it";
        let help = format!("write `env: {{{variable}: \"{value}\"}}` in `run`, and remove it here");
        findings.add(Diagnostic::warning("shell-mistake", &node.span, message).help(help));
    }
}
