//! `run: {script}` and `run: {shell}`: programs with a fixed text, which get values as arguments or
//! variables.

use std::collections::BTreeMap;
use std::path::Path;

use super::argv;
use super::command::check_name;
use super::shell::{self, Analysis, ShellFinding, Taint, Use};
use crate::declaration::{ArgvEntry, ScriptFile};
use crate::diagnostic::{Diagnostic, Findings, meant};
use crate::document::{Entry, Node};
use crate::environment::is_dangerous_env;
use crate::fields::Fields;
use crate::manifest::tool::references::{Places, Scope, variable_for};
use crate::template::{Piece, Template};

/// The maximum length of a shell text, in bytes: it is one argument, for which the kernel allows
/// 128 KiB.
const TEXT_MAX: usize = 64 * 1024;

/// Where the findings about a text go.
pub(in crate::manifest) struct Checked<'f, 't> {
    pub(in crate::manifest) findings: &'f mut Findings<'t>,
    /// Those that `unsafe_argv` allows.
    pub(in crate::manifest) unsafe_values: &'f mut Vec<Diagnostic>,
}

fn literal(text: &str) -> ArgvEntry {
    ArgvEntry::One(Template { pieces: vec![Piece::Literal(text.to_owned())] })
}

/// The file of a script, and the vector that runs it.
pub(in crate::manifest) fn script(
    fields: &Fields<'_>,
    folder: &Path,
    scope: &mut Scope,
    unsafe_values: &mut Vec<Diagnostic>,
    findings: &mut Findings<'_>,
) -> Option<(ScriptFile, Vec<ArgvEntry>)> {
    let args = match fields.node("args") {
        Some(list) => {
            let argv = argv::arguments(list, scope, findings);
            unsafe_values.extend(argv.unsafe_values);
            argv.entries
        }
        None => Some(Vec::new()),
    };
    let node = fields.node("script")?;
    let written = node.as_str()?;
    if written.trim().is_empty() {
        let message = "the script's name is empty";
        findings.add(Diagnostic::error("empty-argv", &node.span, message));
        return None;
    }
    if written.contains("${") {
        let message = "a value must not choose the script";
        findings.add(
            Diagnostic::error("model-chosen-program", &node.span, message)
                .help("name the file; for a choice among several, declare one tool for each"),
        );
        return None;
    }
    let entries = std::iter::once(literal(written)).chain(args?);
    Some((ScriptFile::read(folder.join(written)), entries.collect()))
}

/// The vector that runs a shell text, and its variables.
pub(in crate::manifest) fn shell(
    fields: &Fields<'_>,
    run: &Entry,
    env: &BTreeMap<String, Template>,
    scope: &mut Scope,
    checked: &mut Checked<'_, '_>,
) -> Option<(Vec<ArgvEntry>, BTreeMap<String, Template>)> {
    let Checked { findings, unsafe_values } = checked;
    let vars = variables(fields, scope, findings);
    let Some(entry) = fields.entry("text") else {
        if !fields.has("text") {
            let message = "a shell needs the key `text`, which it runs";
            findings.add(
                Diagnostic::error("missing-key", &run.key_span, message)
                    .help("write what it runs: text: 'tail -n 5 \"$FILE\" | sort'"),
            );
        }
        return None;
    };
    let text = entry.node.as_str()?;
    let whole = entry.node.visible_span(Some(entry));
    if text.trim().is_empty() || text.len() > TEXT_MAX || text.contains('\0') {
        let (message, help) = if text.trim().is_empty() {
            ("the text is empty, so there is nothing to run", "write it, or remove the tool")
        } else {
            (
                "the text is longer than 64 KiB, or contains a NUL",
                "put it into a file: `script: ./x.sh`",
            )
        };
        findings.add(Diagnostic::error("bad-script", &whole, message).help(help));
        return None;
    }
    let right = check_spliced(text, &entry.node, findings);
    let given = |(name, template): (&String, &Template)| (name.clone(), Taint::of(template, scope));
    let known = env.iter().chain(&vars).map(given).collect();
    let shell = fields.text("shell");
    let analysis = shell::analyse(shell.unwrap_or_default(), text, &known, &[]);
    for (found, diagnostic) in diagnostics(&analysis, text, &entry.node, findings.text) {
        // What only may be run is a warning, which a reason silences too.
        if found.is_certain || found.is_doubt && fields.has("unsafe_argv") {
            unsafe_values.push(diagnostic);
        } else {
            findings.add(diagnostic);
        }
    }
    check_uses(text, &entry.node, fields, &vars, &analysis, findings);
    let shell = shell?;
    right.then(|| {
        let words = [shell, "-c", text, shell];
        (words.map(literal).to_vec(), vars)
    })
}

/// `vars`: the only way a value reaches a shell.
fn variables(
    fields: &Fields<'_>,
    scope: &mut Scope,
    findings: &mut Findings<'_>,
) -> BTreeMap<String, Template> {
    let mut vars = BTreeMap::new();
    for Entry { key, key_span, node } in fields.node("vars").map(Node::entries).unwrap_or_default()
    {
        let named = check_name(key, key_span, findings);
        let template = scope.template(node, findings).filter(|_| named);
        if named && is_dangerous_env(key) {
            let message = format!(
                "`{key}` decides what programs load or run; a script's variable has another name"
            );
            findings.add(
                Diagnostic::error("dangerous-env", key_span, message)
                    .help("choose a name of your own; fixed values belong in `env`"),
            );
        }
        if let Some(other) = fields.node("env").and_then(|env| env.entry(key)) {
            let message = format!("`{key}` is set in `env`, too");
            findings.add(
                Diagnostic::error("duplicate-variable", key_span, message)
                    .help("remove one of them")
                    .also(&other.key_span, "set here"),
            );
        }
        if let Some(template) = template {
            vars.insert(key.clone(), template);
        }
    }
    vars
}

/// Whether the text contains no references; adds a diagnostic if it does.
fn check_spliced(text: &str, node: &Node, findings: &mut Findings<'_>) -> bool {
    let mut right = true;
    let mut places = Places::new(node);
    for (at, _) in text.match_indices("${") {
        let rest = &text[at..];
        let written = rest.find('}').map_or(rest, |end| &rest[..=end]);
        let Some((kind, name)) = written[2..].trim_end_matches('}').split_once('.') else {
            continue;
        };
        if !matches!(kind, "args" | "ctx" | "env" | "secret") {
            continue;
        }
        right = false;
        let span = places.next(written, findings.text);
        let variable = variable_for(name);
        let message = format!("{written} is in a shell text, in which nothing is replaced");
        findings.add(Diagnostic::error("spliced-script", &span, message).help(format!(
            "declare `vars: {{{variable}: \"{written}\"}}` and write \"${variable}\""
        )));
    }
    right
}

/// What is wrong in the text of a shell, with its place in the manifest.
pub(super) fn diagnostics<'a>(
    analysis: &'a Analysis,
    text: &'a str,
    node: &'a Node,
    source: &'a str,
) -> impl Iterator<Item = (&'a ShellFinding, Diagnostic)> {
    analysis.findings.iter().map(move |found| {
        let written = text.get(found.range.clone()).unwrap_or_default();
        let span = Places::nth(node, written, text, found.range.start, source);
        let build = match found {
            ShellFinding { is_certain: true, .. } => Diagnostic::error,
            ShellFinding { is_hint: true, .. } => Diagnostic::hint,
            _ => Diagnostic::warning,
        };
        (found, build(found.code, &span, found.message.clone()).help(found.help.clone()))
    })
}

/// Warnings about variables that the shell splits.
pub(super) fn split_uses<'a>(
    text: &'a str,
    node: &'a Node,
    analysis: &'a Analysis,
    source: &'a str,
) -> impl Iterator<Item = Diagnostic> + 'a {
    let is_reported = move |found: &Use| {
        analysis.findings.iter().any(|other| {
            other.range.start <= found.range.start && found.range.end <= other.range.end
        })
    };
    let split = analysis.uses.iter().filter(move |found| found.is_split && !is_reported(found));
    split.map(move |found| {
        let written = &text[found.range.clone()];
        let span = Places::nth(node, written, text, found.range.start, source);
        let message = format!(
            "`{written}` is not quoted: the shell splits its value at spaces, and expands \
             `*` and `?` in it to file names"
        );
        Diagnostic::warning("unquoted-variable", &span, message)
            .help(format!("write \"{written}\""))
    })
}

/// Reports variables that the shell splits, and those that the text does not use.
fn check_uses(
    text: &str,
    node: &Node,
    fields: &Fields<'_>,
    vars: &BTreeMap<String, Template>,
    analysis: &Analysis,
    findings: &mut Findings<'_>,
) {
    let Analysis { uses, unknown, .. } = analysis;
    findings.add_all(split_uses(text, node, analysis, findings.text));
    for entry in fields.node("vars").map(Node::entries).unwrap_or_default() {
        // A variable need not occur in the text, because programs that the shell starts see it,
        // too.
        let known = vars.contains_key(&entry.key) && !is_dangerous_env(&entry.key);
        if known && !uses.iter().any(|found| found.name == entry.key) {
            let message =
                format!("the variable `{}` is declared, but the text does not use it", entry.key);
            let help = match meant(&entry.key, unknown.iter().map(String::as_str)) {
                Some(near) => format!("the text uses `${near}`: write \"${}\" there", entry.key),
                None => {
                    format!("write \"${}\" where it is meant, or move it to `env`", entry.key)
                }
            };
            findings
                .add(Diagnostic::warning("unused-variable", &entry.key_span, message).help(help));
        }
    }
}
