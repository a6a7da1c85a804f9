//! `run`: the program and its environment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{argv, texts, worker};
use crate::declaration::{CommandSpec, DeclaredBody, StandardInput};
use crate::diagnostic::{Diagnostic, Findings};
use crate::document::{Entry, Node, NodeValue};
use crate::environment::is_dangerous_env;
use crate::fields::{Fields, number, wrong_type};
use crate::manifest::keys;
use crate::manifest::program::script::{self, Checked};
use crate::manifest::program::{input, interpreters};
use crate::manifest::schema::value_shape::Shape;
use crate::manifest::tool::references::Scope;
use crate::template::{Reference, Template};

/// "Temporary failure; the user is invited to retry", in `sysexits.h`.
const EX_TEMPFAIL: i32 = 75;

/// Settings beside `run` that apply to it.
pub(in crate::manifest) struct Beside<'a> {
    /// `cwd`, with its key.
    pub(in crate::manifest) cwd: Option<&'a Entry>,
    /// How many bytes of each output stream are kept.
    pub(in crate::manifest) capture_bytes: usize,
    /// The manifest's folder.
    pub(in crate::manifest) folder: &'a Path,
}

/// Reads `run`.
pub(in crate::manifest) fn read(
    entry: &Entry,
    beside: &Beside<'_>,
    scope: &mut Scope,
    findings: &mut Findings<'_>,
) -> Option<DeclaredBody> {
    let fields = Fields::read(&entry.node, &keys::RUN, findings)?;
    let way = way(entry, &fields, findings)?;
    if way == "worker" {
        return worker::read(&fields, beside, scope, findings).map(DeclaredBody::Worker);
    }
    let mut script = None;
    let mut program_from_stdin = false;
    let mut input_run = None;
    let mut unknown_reader = None;
    let mut chooses_target = false;
    let mut assigned = Vec::new();
    let mut variables = BTreeMap::new();
    let (mut doubts, mut unsafe_values) = (Vec::new(), Vec::new());
    let mut env = environment(&fields, scope, findings);
    let argv = match way {
        "argv" => fields.entry("argv").and_then(|argv_entry| {
            let argv = argv::read(&argv_entry.node, &argv_entry.key_span, scope, findings);
            program_from_stdin = argv.program_from_stdin;
            input_run = argv.input_run;
            unknown_reader = argv.unknown_reader;
            chooses_target = argv.chooses_target;
            assigned = argv.assigned;
            unsafe_values.extend(argv.unsafe_values);
            if unsafe_values.is_empty() {
                let found = texts::texts_with(&argv_entry.node, &env, scope, findings.text);
                unsafe_values.extend(found.errors);
                doubts.extend(found.doubts);
                findings.add_all(found.warnings);
            }
            argv.entries
        }),
        "script" => {
            let read = script::script(&fields, beside.folder, scope, &mut unsafe_values, findings);
            read.map(|(file, argv)| {
                script = Some(file);
                argv
            })
        }
        _ => {
            if let Some((text, node)) = fields.text("text").zip(fields.node("text")) {
                input_run = input::text_runs_input(text, node, scope);
                unsafe_values.extend(input::runs_written_file(text, node));
            }
            let mut checked = Checked { findings, unsafe_values: &mut unsafe_values };
            script::shell(&fields, entry, &env, scope, &mut checked).map(|(argv, vars)| {
                variables = vars;
                argv
            })
        }
    };
    let stdin = fields.node("stdin").and_then(|node| {
        if node.as_str() == Some(StandardInput::ALL_ARGUMENTS) {
            scope.used.extend(scope.arguments.keys().cloned());
            let written = StandardInput::ALL_ARGUMENTS;
            if program_from_stdin {
                unsafe_values.push(interpreters::spliced(&written, &node.span));
            } else if let Some(reason) = &input_run {
                unsafe_values.push(input::run_from_input(reason, &written, node));
            } else if let Some(program) = &unknown_reader {
                doubts.push(input::not_known_as_data(program, node));
            }
            return Some(StandardInput::Arguments);
        }
        let template = scope.template(node, findings)?;
        unsafe_values.extend(input::unquoted_variable(&template, &assigned, node));
        if let Some(reference) = template.references().next().filter(|_| program_from_stdin) {
            unsafe_values.push(interpreters::spliced(reference, &node.span));
        } else if let Some(reason) = &input_run
            && let Some(reference) = template.references().find(|it| is_free(it, scope))
        {
            unsafe_values.push(input::run_from_input(reason, reference, node));
        } else if let Some(program) = &unknown_reader
            && template.references().any(|it| is_free(it, scope))
        {
            doubts.push(input::not_known_as_data(program, node));
        }
        Some(StandardInput::Text(template))
    });
    if fields.has("unsafe_argv") {
        unsafe_values.extend(doubts);
    } else {
        findings.add_all(doubts);
    }
    let unsafe_argv = insisted(&fields, unsafe_values, chooses_target, findings);
    env.extend(variables);
    let pass_env = pass_env(&fields, findings);
    let (ok_exit, retry_exit) = exits(&fields, findings);
    Some(DeclaredBody::Command(CommandSpec {
        argv: argv?,
        script,
        files: BTreeMap::new(),
        stdin,
        env,
        pass_env,
        ok_exit,
        retry_exit,
        cwd: beside.cwd.and_then(|cwd| cwd.node.as_str()).map(PathBuf::from),
        unsafe_argv,
        capture_bytes: beside.capture_bytes,
    }))
}

/// Whether a reference is to an argument whose values are not all listed.
fn is_free(reference: &Reference, scope: &Scope) -> bool {
    match reference {
        Reference::Arg(name) => {
            scope.arguments.get(name).is_none_or(|known| known.shape > Shape::Fixed)
        }
        _ => false,
    }
}

/// Reads `unsafe_argv`, the reason why values may choose a program or what it reaches, be run or name an option.
/// Without it each such value is an error, or for what a program reaches a warning of `check`.
fn insisted(
    fields: &Fields<'_>,
    unsafe_values: Vec<Diagnostic>,
    chooses_target: bool,
    findings: &mut Findings<'_>,
) -> Option<String> {
    let Some(node) = fields.node("unsafe_argv") else {
        findings.add_all(unsafe_values);
        return None;
    };
    let reason = node.as_str().unwrap_or_default().trim();
    if reason.is_empty() {
        let message = "`unsafe_argv` needs a reason: it is shown wherever the tool is listed";
        findings.add(
            Diagnostic::error("bad-unsafe-argv", &node.span, message)
                .help("say why the value is harmless: unsafe_argv: only our own jobs send it"),
        );
    } else if unsafe_values.is_empty() && !chooses_target {
        let message = "nothing here needs `unsafe_argv`: no value chooses a program or is run";
        findings
            .add(Diagnostic::warning("idle-unsafe-argv", &node.span, message).help("remove it"));
    }
    Some(reason.to_owned()).filter(|reason| !reason.is_empty())
}

/// The key for what to run; reports keys that do not apply to it.
fn way(entry: &Entry, fields: &Fields<'_>, findings: &mut Findings<'_>) -> Option<&'static str> {
    let mut given = keys::WAYS.iter().filter(|(way, _)| fields.has(way));
    let Some((way, own)) = given.next() else {
        findings.add(
            Diagnostic::error("missing-key", &entry.key_span, "`run` needs the key `argv`").help(
                "write the program and its arguments: argv: [df, -h]; or `script`, `shell` or \
                 `worker`",
            ),
        );
        return None;
    };
    let first = fields.entry(way);
    for (other, _) in given {
        let (Some(first), Some(second)) = (first, fields.entry(other)) else { continue };
        let message = format!("`{way}` and `{other}` cannot be combined: only one of them can run");
        findings.add(
            Diagnostic::error("two-ways-to-run", &second.key_span, message)
                .label("this one would also run")
                .help("remove one of them")
                .also(&first.key_span, "this one runs"),
        );
    }
    let known = |key: &str| keys::WAYS.iter().any(|(_, keys)| keys.contains(&key));
    for other in entry.node.entries() {
        if !known(&other.key) || own.contains(&other.key.as_str()) {
            continue;
        }
        let ways: Vec<String> = keys::WAYS
            .iter()
            .filter(|(_, keys)| keys.contains(&other.key.as_str()))
            .map(|(way, _)| format!("`{way}`"))
            .collect();
        let message =
            format!("`{}` goes with {}, and here `{way}` runs", other.key, ways.join(" or "));
        let help = match (*way, other.key.as_str()) {
            ("argv", "args") => "move its entries to the end of `argv`, and remove it",
            _ => "remove it: it would have no effect here",
        };
        findings.add(Diagnostic::error("not-for-this-run", &other.key_span, message).help(help));
    }
    Some(way)
}

/// The exit codes that mean success, and those after which a call may be tried again.
fn exits(fields: &Fields<'_>, findings: &mut Findings<'_>) -> (Vec<i32>, Vec<i32>) {
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
    // A success code of the author is removed from the default retry codes.
    retry_exit.retain(|code| !ok_exit.contains(code));
    (ok_exit, retry_exit)
}

/// Variables that are passed on, with checked names.
pub(in crate::manifest) fn pass_env(
    fields: &Fields<'_>,
    findings: &mut Findings<'_>,
) -> Vec<String> {
    for name in fields.node("pass_env").map(Node::items).unwrap_or_default() {
        check_name(name.as_str().unwrap_or_default(), &name.span, findings);
    }
    fields.texts("pass_env").unwrap_or_default()
}

/// `env`: variables set for the program.
pub(in crate::manifest) fn environment(
    fields: &Fields<'_>,
    scope: &mut Scope,
    findings: &mut Findings<'_>,
) -> BTreeMap<String, Template> {
    let mut env = BTreeMap::new();
    for Entry { key, key_span, node } in fields.node("env").map(Node::entries).unwrap_or_default() {
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

/// Whether a text is a valid variable name; adds a diagnostic if not.
pub(in crate::manifest) fn check_name(
    name: &str,
    place: &crate::diagnostic::position::Span,
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

/// Reports exit codes that mean both success and a retry.
fn check_retried(retry_exit: &Node, ok_exit: &[i32], findings: &mut Findings<'_>) {
    for item in retry_exit.items() {
        if let NodeValue::Number(number) = &item.value
            && ok_exit.iter().any(|code| number.as_i64() == Some(i64::from(*code)))
        {
            let message = format!(
                "the exit code {number} means success, and successful calls are \
             not retried"
            );
            findings.add(
                Diagnostic::error("retried-success", &item.span, message)
                    .help("list it in `ok_exit` or in `retry_exit`; 0 is in `ok_exit` by default"),
            );
        }
    }
}

fn exit_codes(key: &str, node: &Node, findings: &mut Findings<'_>) -> Vec<i32> {
    let mut codes = Vec::new();
    for item in node.items() {
        let NodeValue::Number(number) = &item.value else {
            let wrong = wrong_type(item, None, &format!("`{key}` expects whole numbers"));
            findings.add(wrong.maybe_help(number(item)));
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
