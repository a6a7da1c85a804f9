//! `run`: what is started, with which environment.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::scope::Scope;
use super::{argv, keys, scripts};
use crate::declaration::CommandSpec;
use crate::diagnostic::{Diagnostic, Findings};
use crate::document::{Entry, Node, NodeValue};
use crate::environment::is_dangerous_env;
use crate::fields::{Fields, wrong_type};
use crate::template::{Reference, Template};

/// "Temporary failure; the user is invited to retry", says `sysexits.h`.
const EX_TEMPFAIL: i32 = 75;

/// Reads `run`, with `cwd` and the capture limit that stand beside it.
pub(super) fn read(
    entry: &Entry,
    cwd: Option<&str>,
    capture_bytes: usize,
    scope: &mut Scope,
    findings: &mut Findings<'_>,
) -> Option<CommandSpec> {
    let fields = Fields::read(&entry.node, &keys::RUN, findings)?;
    if !["argv", "script", "shell", "worker"].iter().any(|key| fields.has(key)) {
        findings.add(
            Diagnostic::error("missing-key", &entry.key_span, "`run` needs the key `argv`")
                .help("write the program and its arguments: argv: [df, -h]"),
        );
    }
    let argv =
        fields.entry("argv").map(|argv| argv::read(&argv.node, &argv.key_span, scope, findings));
    let stdin = fields.node("stdin").and_then(|node| {
        let template = scope.template(node, findings)?;
        let runs_stdin = argv.as_ref().is_some_and(|argv| argv.program_from_stdin);
        if let Some(reference) = template.references().next().filter(|_| runs_stdin) {
            findings.add(scripts::spliced(reference, &node.span));
        }
        Some(template)
    });
    let env = fields.node("env").map(|node| environment(node, scope, findings)).unwrap_or_default();
    if let Some(node) = fields.node("pass_env") {
        for name in node.items() {
            check_name(name.as_str().unwrap_or_default(), &name.span, findings);
        }
    }
    let codes = |key: &str, default: i32, findings: &mut Findings<'_>| {
        fields.node(key).map_or_else(|| vec![default], |node| exit_codes(key, node, findings))
    };
    let ok_exit = codes("ok_exit", 0, findings);
    if let Some(node) = fields.node("ok_exit").filter(|node| node.items().is_empty()) {
        let message = "no exit code means success, so every call would fail";
        findings.add(
            Diagnostic::error("out-of-range", &node.span, message).help("write `ok_exit: [0]`"),
        );
    }
    let mut retry_exit = codes("retry_exit", EX_TEMPFAIL, findings);
    if let Some(node) = fields.node("retry_exit") {
        check_retried(node, &ok_exit, findings);
    }
    // Where nothing is said of it, an author's success is one.
    retry_exit.retain(|code| !ok_exit.contains(code));
    Some(CommandSpec {
        argv: argv?.entries?,
        stdin,
        env,
        pass_env: fields.texts("pass_env").unwrap_or_default(),
        ok_exit,
        retry_exit,
        cwd: cwd.map(PathBuf::from),
        capture_bytes,
    })
}

fn environment(
    node: &Node,
    scope: &mut Scope,
    findings: &mut Findings<'_>,
) -> BTreeMap<String, Template> {
    let mut env = BTreeMap::new();
    for Entry { key, key_span, node } in node.entries() {
        let named = check_name(key, key_span, findings);
        let Some(template) = scope.template(node, findings) else { continue };
        let by_model = template.references().any(|found| matches!(found, Reference::Arg(_)));
        if named && by_model && is_dangerous_env(key) {
            findings.add(
                Diagnostic::error(
                    "dangerous-env",
                    key_span,
                    format!("`{key}` decides what programs load or run; a model must not set it"),
                )
                .help("pass the value as an argument, or in a variable of your own"),
            );
        }
        env.insert(key.clone(), template);
    }
    env
}

/// Whether a text can be a variable's name; says so if not.
pub(super) fn check_name(
    name: &str,
    place: &crate::source::Span,
    findings: &mut Findings<'_>,
) -> bool {
    if name.contains("${") {
        findings.add(
            Diagnostic::error(
                "reference-in-env-name",
                place,
                "a value must not become a variable's name",
            )
            .help("write the name; only the value may hold references"),
        );
        return false;
    }
    let fits = !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !fits {
        let message = format!("`{}` is not a variable's name", crate::document::shortened(name));
        findings.add(
            Diagnostic::error("bad-env-name", place, message)
                .help("use letters, digits and `_`, not beginning with a digit"),
        );
    }
    fits
}

/// A code that is a success is no failure to try again.
fn check_retried(retry_exit: &Node, ok_exit: &[i32], findings: &mut Findings<'_>) {
    for item in retry_exit.items() {
        if let NodeValue::Number(number) = &item.value
            && ok_exit.iter().any(|code| number.as_i64() == Some(i64::from(*code)))
        {
            let message = format!("the exit code {number} means success, which is not tried again");
            findings.add(
                Diagnostic::error("retried-success", &item.span, message)
                    .help("name it in `ok_exit` or in `retry_exit`; 0 is in `ok_exit` by default"),
            );
        }
    }
}

fn exit_codes(key: &str, node: &Node, findings: &mut Findings<'_>) -> Vec<i32> {
    let mut codes = Vec::new();
    for item in node.items() {
        let NodeValue::Number(number) = &item.value else {
            findings.add(wrong_type(item, None, &format!("`{key}` expects whole numbers")));
            continue;
        };
        let code = number.as_i64();
        match code.and_then(|code| u8::try_from(code).ok()) {
            Some(code) => codes.push(i32::from(code)),
            None => findings.add(Diagnostic::error(
                "out-of-range",
                &item.span,
                "an exit code is a whole number from 0 to 255",
            )),
        }
    }
    codes
}
