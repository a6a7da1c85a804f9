//! Parses TOML into a tree.

use serde_json::Number;
use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

use super::scalar::is_rounded;
use super::{DEPTH_MAX, Entry, Node, NodeValue, Style, first_content, too_deep};
use crate::diagnostic::position::Span;
use crate::diagnostic::{Diagnostic, Findings};

/// Parses TOML; reports all syntax errors and duplicate keys.
pub(super) fn parse(findings: &mut Findings<'_>) -> Option<Node> {
    let text = findings.text;
    let (root, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty()
        && let Some(diagnostic) = yaml(text)
    {
        findings.add(diagnostic);
        return None;
    }
    for error in &errors {
        let span = error.span().unwrap_or(0..0);
        findings.add(explain(&span, error.message()));
    }
    if !errors.is_empty() {
        return None;
    }
    let mut builder = TreeBuilder { findings, whole: true };
    let span = root.span();
    let node = builder.table(root.get_ref(), span, 1);
    builder.whole.then_some(node)
}

/// The diagnostic for a file that is YAML.
fn yaml(text: &str) -> Option<Diagnostic> {
    let (start, line) = first_content(text)?;
    let (key, rest) = line.split_once(':')?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    let is_key = !key.is_empty() && key.bytes().all(plain);
    (is_key && (rest.is_empty() || rest.starts_with(' '))).then(|| {
        let message = "this is YAML, but the file is read as TOML because of its name";
        Diagnostic::error("syntax", &(start..start + line.len()), message)
            .help("rename the file so that it ends in .yaml, or write it as TOML: `toolcrib = 1`")
    })
}

/// Adds a help text for the most frequent mistakes in TOML.
fn explain(span: &Span, message: &str) -> Diagnostic {
    let diagnostic = |code| Diagnostic::error(code, span, format!("not valid TOML: {message}"));
    if message.contains("duplicate key") {
        diagnostic("duplicate-key").help("remove one, or rename it")
    } else if message.contains("boolean") || message.contains("unquoted") {
        diagnostic("syntax").help("text needs quotes in TOML; booleans are true and false")
    } else {
        diagnostic("syntax")
    }
}

struct TreeBuilder<'f, 't> {
    findings: &'f mut Findings<'t>,
    whole: bool,
}

impl TreeBuilder<'_, '_> {
    fn table(&mut self, table: &DeTable<'_>, span: Span, depth: usize) -> Node {
        let mut entries: Vec<Entry> = table
            .iter()
            .map(|(key, value)| Entry {
                key: key.get_ref().clone().into_owned(),
                key_span: key.span(),
                node: self.value(value, depth + 1),
            })
            .collect();
        // The parser sorts by name; restore the order of the file.
        entries.sort_by_key(|entry| entry.key_span.start);
        explicit(NodeValue::Mapping(entries), span)
    }

    fn value(&mut self, value: &Spanned<DeValue<'_>>, depth: usize) -> Node {
        let span = value.span();
        if depth > DEPTH_MAX + 1 {
            self.refuse(too_deep(&span));
            return explicit(NodeValue::Null, span);
        }
        let value = match value.get_ref() {
            DeValue::String(text) => NodeValue::String(text.clone().into_owned()),
            DeValue::Boolean(value) => NodeValue::Bool(*value),
            DeValue::Integer(integer) => {
                if exact(integer).is_none() {
                    self.ambiguous(&span, "is an integer too large to be represented exactly");
                }
                exact(integer).map_or(NodeValue::Null, NodeValue::Number)
            }
            DeValue::Float(float) => {
                let number = float.as_str().parse::<f64>().ok().and_then(Number::from_f64);
                if number.is_none() {
                    self.ambiguous(&span, "is not a JSON number");
                } else if is_rounded(float.as_str()) {
                    self.ambiguous(
                        &span,
                        "is a number with more digits than can be represented \
                     exactly",
                    );
                }
                number.map_or(NodeValue::Null, NodeValue::Number)
            }
            DeValue::Datetime(_) => {
                self.ambiguous(&span, "is a TOML date or time, which JSON does not have");
                NodeValue::Null
            }
            DeValue::Array(items) => {
                NodeValue::Sequence(items.iter().map(|item| self.value(item, depth + 1)).collect())
            }
            DeValue::Table(table) => return self.table(table, span, depth),
        };
        explicit(value, span)
    }

    fn ambiguous(&mut self, span: &Span, problem: &str) {
        let raw = self.findings.text.get(span.clone()).unwrap_or_default();
        let diagnostic = Diagnostic::error(
            "ambiguous-scalar",
            span,
            format!("`{raw}` without quotes {problem}"),
        )
        .help(format!("quote it: \"{raw}\""));
        self.refuse(diagnostic);
    }

    fn refuse(&mut self, diagnostic: Diagnostic) {
        self.whole = false;
        self.findings.add(diagnostic);
    }
}

fn explicit(value: NodeValue, span: Span) -> Node {
    Node { value, span, style: Style::Explicit }
}

fn exact(integer: &DeInteger<'_>) -> Option<Number> {
    let (digits, radix) = (integer.as_str(), integer.radix());
    i64::from_str_radix(digits, radix)
        .map(Number::from)
        .or_else(|_| u64::from_str_radix(digits, radix).map(Number::from))
        .ok()
}
