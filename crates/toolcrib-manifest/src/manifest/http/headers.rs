//! `headers`: literal names, and values of one line.

use std::collections::BTreeMap;

use super::{argument_of, check_plain_key, place_of};
use crate::diagnostic::{Diagnostic, Findings};
use crate::document::{Entry, Node};
use crate::manifest::tool::references::Scope;
use crate::template::{Piece, Template};
use crate::words::Words;

/// Headers that the HTTP client sets itself. Conflicting lengths would allow request smuggling.
static OF_THE_CLIENT: Words = Words::of(
    "accept-encoding connection content-length expect host keep-alive proxy-authorization \
     proxy-connection te trailer transfer-encoding upgrade via",
);

/// Headers with credentials.
const CREDENTIALS: [&str; 2] = ["authorization", "cookie"];

/// Reads the headers.
pub(super) fn read(
    node: &Node,
    scope: &mut Scope,
    findings: &mut Findings<'_>,
) -> BTreeMap<String, Template> {
    let mut headers = BTreeMap::<String, Template>::new();
    for entry in node.entries() {
        let named = check_plain_key(entry, "reference-in-name", "the name of a header", findings)
            && check_name(entry, findings);
        let Some(template) = scope.template(&entry.node, findings) else { continue };
        check_value(&entry.node, &template, findings);
        if CREDENTIALS.contains(&entry.key.to_ascii_lowercase().as_str())
            && let Some(reference) = argument_of(&template)
        {
            let place = place_of(reference, &entry.node, findings);
            findings.add(model_chosen(&place));
        }
        if headers.keys().any(|known| known.eq_ignore_ascii_case(&entry.key)) {
            let message =
                format!("`{}` occurs twice here: header names are case-insensitive", entry.key);
            findings.add(
                Diagnostic::error("duplicate-key", &entry.key_span, message)
                    .help("remove one of them"),
            );
        } else if named {
            headers.insert(entry.key.clone(), template);
        }
    }
    headers
}

/// Whether a key is a valid header name; adds a diagnostic if not.
pub(super) fn check_name(entry: &Entry, findings: &mut Findings<'_>) -> bool {
    name_problem(&entry.key).is_none_or(|(code, message, help)| {
        findings.add(Diagnostic::error(code, &entry.key_span, message).help(help));
        false
    })
}

/// Why a text is not a valid header name: code, message and help.
pub(super) fn name_problem(name: &str) -> Option<(&'static str, String, &'static str)> {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(token) {
        let message = format!("`{}` is not a header name", crate::document::shortened(name));
        return Some(("bad-header", message, "use letters, digits and `-`: X-Request-Id"));
    }
    if OF_THE_CLIENT.contains(name.to_ascii_lowercase().as_str()) {
        let message = format!("the HTTP client sets `{name}` itself");
        let help = match name.to_ascii_lowercase().as_str() {
            "host" => "remove it: the host is that of `url`",
            "proxy-authorization" => "remove it: no proxy is used",
            _ => "remove it: it describes how the request is sent",
        };
        return Some(("reserved-header", message, help));
    }
    None
}

/// Refuses line ends and other control characters in literals.
pub(super) fn check_value(node: &Node, template: &Template, findings: &mut Findings<'_>) {
    let control = template.pieces.iter().any(|piece| match piece {
        Piece::Literal(text) => text.chars().any(|c| c.is_control() && c != '\t'),
        Piece::Reference(_) => false,
    });
    if control {
        let message = "a header is one line, without control characters";
        findings.add(
            Diagnostic::error("bad-header", &node.span, message)
                .help("in YAML, write it in quotes on one line; a `|` block ends with a line end"),
        );
    }
}

/// The diagnostic for credentials from a model.
pub(super) fn model_chosen(place: &crate::diagnostic::position::Span) -> Diagnostic {
    let message = "a model must not choose the credentials";
    Diagnostic::error("model-chosen-credential", place, message)
        .help("use ${secret.name}, or ${ctx.name} for what the host knows about the user")
}
