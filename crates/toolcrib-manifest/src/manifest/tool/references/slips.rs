//! Suggestions for references in the syntax of other languages.

use std::sync::LazyLock;

use regex::Regex;

use super::{HOST_VALUES, Places, Scope};
use crate::diagnostic::{Diagnostic, Findings, meant};
use crate::document::Node;
use crate::template::{Piece, Template};

/// Words for the kinds of references, with ours.
const KINDS: [(&str, &[&str]); 4] = [
    (
        "args",
        &[
            "arg",
            "args",
            "argument",
            "arguments",
            "param",
            "params",
            "parameter",
            "parameters",
            "input",
            "inputs",
        ],
    ),
    ("ctx", &["context", "ctx", "host"]),
    ("env", &["env", "environ", "environment"]),
    ("secret", &["secret", "secrets", "vault"]),
];

/// A reference with the braces of other template languages, or without braces.
static FOREIGN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?:\{\{-?\s*|\$\(|\$|%\{|#\{|\{|<)(args?|arguments|params|ctx|context|secrets?)\.([A-Za-z_][A-Za-z0-9_-]*)(?:\s*-?\}\}|\}|\)|>)?",
    )
    .ok()
});

fn kind(word: &str) -> Option<&'static str> {
    let word = word.to_ascii_lowercase();
    KINDS.iter().find(|(_, words)| words.contains(&word.as_str())).map(|(kind, _)| *kind)
}

impl Scope {
    /// A suggestion for an invalid reference in `${…}`.
    pub(super) fn reference_meant(&self, written: &str) -> String {
        const LITERAL: &str = "a literal `${` is written `$${`";
        let inside = written.strip_prefix("${").unwrap_or(written);
        let inside = inside.strip_suffix('}').unwrap_or(inside).trim();
        if self.arguments.contains_key(inside) {
            return format!("write ${{args.{inside}}} for the argument; {LITERAL}");
        }
        if inside == "args" {
            return "write ${args.name} for one argument; `stdin: \"${args}\"` of `run`, with nothing \
                    else in the text, hands over all of them as one JSON object"
                .to_owned();
        }
        let plain = |c: char| c.is_alphanumeric() || "_-".contains(c);
        let (word, rest) = inside.split_once(|c: char| !plain(c)).unwrap_or((inside, ""));
        let rest = rest.trim_start_matches(['.', '[', '\'', '"', ' ']);
        let end = rest.find(|c: char| !plain(c)).unwrap_or(rest.len());
        let (name, rest) = rest.split_at(end);
        let Some(kind) = kind(word) else {
            let is_variable = !word.is_empty()
                && word.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
            return if is_variable {
                format!("write ${{env.{word}}} for the variable of the server; {LITERAL}")
            } else {
                format!("write ${{args.name}}; {LITERAL}")
            };
        };
        let name = match kind {
            _ if name.is_empty() => "name",
            "args" if !self.arguments.contains_key(name) => {
                meant(name, self.arguments.keys().map(String::as_str)).unwrap_or(name)
            }
            _ => name,
        };
        let rest = rest.trim_start();
        if rest.starts_with([':', '|', '-']) {
            return format!(
                "write ${{{kind}.{name}}}: a reference has no default and no filter; a default \
                 stands \
                 in the schema of the argument, as `default: …`"
            );
        }
        format!("write ${{{kind}.{name}}}; {LITERAL}")
    }

    /// Reports texts that look like references of other template languages.
    pub(super) fn note_slips(
        &mut self,
        template: &Template,
        node: &Node,
        findings: &mut Findings<'_>,
    ) {
        let Some(foreign) = FOREIGN.as_ref() else { return };
        let mut places = Places::new(node);
        for piece in &template.pieces {
            let Piece::Literal(text) = piece else { continue };
            for found in foreign.captures_iter(text) {
                let (Some(whole), Some(word), Some(name)) =
                    (found.get(0), found.get(1), found.get(2))
                else {
                    continue;
                };
                // `$${args.x}` is an escaped literal.
                if text[..whole.start()].ends_with('$') {
                    continue;
                }
                let Some(kind) = kind(word.as_str()) else { continue };
                let name = name.as_str();
                let name = match kind {
                    "args" => meant(name, self.arguments.keys().map(String::as_str)),
                    "ctx" => {
                        let known = self.context.iter().map(String::as_str).chain(HOST_VALUES);
                        meant(name, known)
                    }
                    _ => Some(name),
                };
                let Some(name) = name.map(str::to_owned) else { continue };
                let written = whole.as_str();
                let span = places.next(written, findings.text);
                let message = format!("`{written}` is not a reference and is not replaced");
                findings.add(
                    Diagnostic::warning("unreplaced-reference", &span, message)
                        .help(format!("write ${{{kind}.{name}}}")),
                );
                if kind == "args" {
                    self.used.insert(name);
                }
            }
        }
    }
}
