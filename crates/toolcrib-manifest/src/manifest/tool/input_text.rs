//! Checks texts with values of a call: JSON whose structure a value could change, and input that is
//! empty without an optional argument.

use serde_json::Value;

use super::references::{Places, Scope};
use crate::diagnostic::{Diagnostic, Findings};
use crate::document::Node;
use crate::manifest::schema::value_shape::can_hold;
use crate::template::{Piece, Reference, Template};

/// Characters that have to be escaped in a JSON string.
const SPECIAL_IN_JSON: [(char, char); 3] = [('\0', '\u{1f}'), ('"', '"'), ('\\', '\\')];

/// Checks arguments, variables, standard input, and `text` of `http`.
pub(crate) fn look_at_texts(tool: &Node, findings: &mut Findings<'_>) {
    let mut scope = Scope::default();
    if let Some(input) = tool.entry("input") {
        scope.declare(&input.node);
    }
    let text = |section: &str, key: &str| tool.entry(section)?.node.entry(key);
    let help = |name: &str| {
        format!(
            "declare one argument of `type: object` that holds `{name}` and write \"${{args.NAME}}\" for the \
             whole text, which is passed on as JSON; or write `stdin: \"${{args}}\"`, which hands over all \
             arguments as one JSON object"
        )
    };
    for entry in text("run", "argv").map(|argv| argv.node.items()).unwrap_or_default() {
        let then = entry.entry("then").map(|then| then.node.items()).unwrap_or_default();
        for word in std::iter::once(entry).chain(then) {
            check_json(word, tool, help, findings);
        }
    }
    for key in ["env", "vars"] {
        for variable in text("run", key).map(|env| env.node.entries()).unwrap_or_default() {
            check_json(&variable.node, tool, help, findings);
        }
    }
    if let Some(stdin) = text("run", "stdin") {
        check_json(&stdin.node, tool, help, findings);
        check_absent(&stdin.node, &scope, findings);
    }
    if let Some(body) = text("http", "text") {
        let help = |name: &str| {
            format!(
                "write the body as `json: {{{name}: \"${{args.{name}}}\"}}` instead of `text`: each value \
                 stays one value there"
            )
        };
        check_json(&body.node, tool, help, findings);
    }
}

/// Reports values in strings of a JSON text that could end these strings.
fn check_json(
    node: &Node,
    tool: &Node,
    help: impl Fn(&str) -> String,
    findings: &mut Findings<'_>,
) {
    let is_json = |text: &&str| text.trim_start().starts_with(['{', '[']);
    let Some(Ok(template)) = node.as_str().filter(is_json).map(Template::parse) else { return };
    let between_quotes = quoted(&template);
    let properties = tool.entry("input").and_then(|input| input.node.entry("properties"));
    let schema = |name: &str| Some(&properties?.node.entry(name)?.node);
    let could_end =
        |name: &&str| schema(name).is_some_and(|schema| can_hold(schema, &SPECIAL_IN_JSON));
    let Some(name) = between_quotes.iter().copied().find(could_end) else { return };
    let written = Reference::Arg(name.to_owned()).to_string();
    let place = Places::new(node).next(&written, findings.text);
    let message = format!(
        "{written} stands between the quotes of a JSON text, and a value with a `\"` in it adds members of \
         its own"
    );
    findings.add(Diagnostic::warning("spliced-json", &place, message).help(help(name)));
}

/// The arguments in strings of a JSON text; empty if the text is not JSON.
fn quoted(template: &Template) -> Vec<&str> {
    let mut names = Vec::new();
    let mut text = String::new();
    let mut is_quoted = false;
    for piece in &template.pieces {
        match piece {
            Piece::Literal(literal) => {
                text.push_str(literal);
                let mut escaped = false;
                for c in literal.chars() {
                    match c {
                        '\\' if is_quoted => escaped = !escaped,
                        '"' if !escaped => is_quoted = !is_quoted,
                        _ => escaped = false,
                    }
                }
            }
            Piece::Reference(reference) => {
                // A digit is a valid value, and a valid character in a string.
                text.push('0');
                if let (Reference::Arg(name), true) = (reference, is_quoted) {
                    names.push(name.as_str());
                }
            }
        }
    }
    match serde_json::from_str::<Value>(&text) {
        Ok(Value::Object(_) | Value::Array(_)) => names,
        _ => Vec::new(),
    }
}

/// Reports an optional argument in a text for standard input, which is empty without it.
fn check_absent(node: &Node, scope: &Scope, findings: &mut Findings<'_>) {
    let Some(Ok(template)) = node.as_str().map(Template::parse) else { return };
    if template.pieces.len() < 2 {
        return;
    }
    let optional = template.references().find_map(|reference| match reference {
        Reference::Arg(name) if scope.arguments.get(name)?.optional => Some(name),
        _ => None,
    });
    let Some(name) = optional else { return };
    let written = format!("${{args.{name}}}");
    let place = Places::new(node).next(&written, findings.text);
    let message = format!(
        "a call without `{name}` hands the program no input at all, the text around included"
    );
    findings.add(
        Diagnostic::hint("emptied-input", &place, message)
            .help(format!("add `{name}` to `required` of `input`, or give it a `default`")),
    );
}
