//! References in other template languages: `{{path}}`, `<path>`, `$1`. Such texts are not replaced,
//! so an argument that is used only this way never reaches the program.

use std::sync::LazyLock;

use regex::Regex;

use super::{Places, Scope};
use crate::diagnostic::position::Span;
use crate::diagnostic::{Diagnostic, Findings};
use crate::document::Node;
use crate::template::{Piece, Template};

/// The forms, each with the argument's name as a group. The unambiguous one comes first.
static FORMS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?x)
        \{\{-?\s*([A-Za-z_][A-Za-z0-9_-]*)\s*(?:\|[^{}]*)?-?\}\}        # Mustache, Jinja
        | \{\{-?\s*[.$]([A-Za-z_][A-Za-z0-9_-]*)\s*(?:\|[^{}]*)?-?\}\}  # Go
        | [%\#@]\{([A-Za-z_][A-Za-z0-9_-]*)\}                           # %{path}, #{path}
        | %\(([A-Za-z_][A-Za-z0-9_]*)\)s                                  # Python
        | %([A-Za-z_][A-Za-z0-9_]*)%                                      # cmd.exe
        | <([A-Za-z_][A-Za-z0-9_-]*)>                                   # as in usage texts
        | \{([A-Za-z_][A-Za-z0-9_-]*)(?::[^{}]*)?\}                     # str.format, URI templates
        | \$\(([A-Za-z_][A-Za-z0-9_]*)\)                                  # make
        | \$([A-Za-z_][A-Za-z0-9_]*)                                      # shells
        | /:([A-Za-z_][A-Za-z0-9_]*)                                      # routes of a URL
        ",
    )
    .ok()
});

/// The group of [`FORMS`] that is unambiguous if an argument has the name.
const CERTAIN: usize = 1;

/// A text that was probably meant as a reference.
#[derive(Debug)]
pub(super) struct Placeholder {
    named: PlaceholderTarget,
    written: String,
    span: Span,
    /// Whether it is reported even if the argument is used elsewhere.
    is_certain: bool,
}

/// What a placeholder stands for.
#[derive(Debug)]
enum PlaceholderTarget {
    Argument(String),
    /// `$1` and so on: the arguments in the order they are declared, from 1.
    Position(usize),
    /// `$@` or `$*`.
    All,
}

impl Scope {
    /// Records the placeholders of a template. [`check_placeholders`](Self::check_placeholders)
    /// reports them when the unused arguments are known.
    pub(super) fn note_placeholders(&mut self, template: &Template, node: &Node, source: &str) {
        if let [Piece::Literal(text)] = template.pieces.as_slice()
            && let Some(named) = positional(text)
        {
            let written = text.clone();
            self.note(Placeholder { named, written, span: node.span.clone(), is_certain: false });
            return;
        }
        let mut places = Places::new(node);
        for piece in &template.pieces {
            let Piece::Literal(text) = piece else { continue };
            for (name, written, is_certain) in self.forms(text) {
                let span = places.next(&written, source);
                self.note(Placeholder {
                    named: PlaceholderTarget::Argument(name),
                    written,
                    span,
                    is_certain,
                });
            }
        }
    }

    fn forms(&self, text: &str) -> Vec<(String, String, bool)> {
        forms(text, |name| self.arguments.contains_key(name))
    }

    /// A template may be read more than once.
    fn note(&mut self, placeholder: Placeholder) {
        if self.placeholders.iter().all(|known| known.span != placeholder.span) {
            self.placeholders.push(placeholder);
        }
    }

    /// Reports placeholders of unused arguments. The arguments then count as used, so that each
    /// problem is reported once.
    pub(in crate::manifest) fn check_placeholders(&mut self, findings: &mut Findings<'_>) {
        let mut unused: Vec<&str> = self.unused().map(|(name, _)| name.as_str()).collect();
        unused.sort_by_key(|name| self.arguments[*name].span.start);
        let mut declared: Vec<&str> = self.arguments.keys().map(String::as_str).collect();
        declared.sort_by_key(|name| self.arguments[*name].span.start);
        let mut meant = Vec::new();
        for placeholder in &self.placeholders {
            let name = match &placeholder.named {
                PlaceholderTarget::Argument(name) => Some(name.as_str()),
                PlaceholderTarget::Position(nth) => declared.get(nth - 1).copied(),
                PlaceholderTarget::All => None,
            };
            let is_unused = |name: &&str| unused.contains(name);
            let name = name.filter(|name| placeholder.is_certain || is_unused(name));
            // If only one argument is left, a position can only mean that one.
            let name = name.or(match unused.as_slice() {
                [only] if !matches!(placeholder.named, PlaceholderTarget::Argument(_)) => {
                    Some(*only)
                }
                _ => None,
            });
            let Some(name) = name else { continue };
            let message =
                format!("`{}` is not a reference and is not replaced", placeholder.written);
            findings.add(
                Diagnostic::warning("unreplaced-reference", &placeholder.span, message)
                    .help(format!("write ${{args.{name}}}")),
            );
            meant.push(name.to_owned());
        }
        self.used.extend(meant);
    }

    /// Reports placeholders in a shell text, in which nothing is replaced: values are passed as
    /// variables.
    pub(in crate::manifest) fn check_placeholders_of_shell(
        &mut self,
        run: &Node,
        findings: &mut Findings<'_>,
    ) {
        let Some(node) = run.entry("text").map(|text| &text.node) else { return };
        let Some(text) = node.as_str() else { return };
        let is_set = |name: &str| {
            let mut variables = ["vars", "env"].iter().filter_map(|key| run.entry(key));
            variables.any(|variables| variables.node.entry(name).is_some())
                || ["=", " in "].iter().any(|sign| text.contains(&format!("{name}{sign}")))
                || text.contains(&format!("read {name}"))
        };
        let mut places = Places::new(node);
        for (name, written, is_certain) in self.forms(text) {
            // All other forms have a meaning in a shell.
            let is_variable = written == format!("${name}") && !is_set(&name);
            if self.used.contains(&name) || !(is_certain || is_variable) {
                continue;
            }
            let span = places.next(&written, findings.text);
            let message = format!("`{written}` is in a shell text, in which nothing is replaced");
            let variable = variable_for(&name);
            findings.add(Diagnostic::warning("unreplaced-reference", &span, message).help(
                format!(
                    "declare `vars: {{{variable}: \"${{args.{name}}}\"}}` and write \"${variable}\""
                ),
            ));
            self.used.insert(name);
        }
    }

    /// The unused arguments.
    pub(in crate::manifest) fn unused(&self) -> impl Iterator<Item = (&String, &super::Argument)> {
        self.arguments.iter().filter(|(name, _)| !self.used.contains(*name))
    }
}

/// A name for the variable of a shell that holds an argument.
pub(in crate::manifest) fn variable_for(name: &str) -> String {
    let upper = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let variable: String = name.chars().map(upper).collect();
    let is_plain = !variable.starts_with(|c: char| c.is_ascii_digit());
    if is_plain && !crate::environment::is_dangerous_env(&variable) {
        variable
    } else {
        format!("MY_{variable}")
    }
}

/// The placeholders of known names in a text: the name, the written text, and whether it is
/// unambiguous.
pub(in crate::manifest) fn forms(
    text: &str,
    is_known: impl Fn(&str) -> bool,
) -> Vec<(String, String, bool)> {
    let Some(forms) = FORMS.as_ref() else { return Vec::new() };
    let mut found = Vec::new();
    for captures in forms.captures_iter(text) {
        let mut groups = captures.iter().enumerate();
        let Some((_, Some(whole))) = groups.next() else { continue };
        let Some((group, name)) = groups.find_map(|(at, group)| Some((at, group?))) else {
            continue;
        };
        // `$${path}` is an escaped literal.
        if text[..whole.start()].ends_with('$') || !is_known(name.as_str()) {
            continue;
        }
        let written = whole.as_str().trim_start_matches('/').to_owned();
        found.push((name.as_str().to_owned(), written, group == CERTAIN));
    }
    found
}

/// The meaning of a text as a positional parameter of a shell.
fn positional(text: &str) -> Option<PlaceholderTarget> {
    let parameter = text.strip_prefix('$')?;
    let parameter = parameter
        .strip_prefix('{')
        .and_then(|braced| braced.strip_suffix('}'))
        .unwrap_or(parameter);
    match parameter {
        "@" | "*" => Some(PlaceholderTarget::All),
        digit => {
            digit.parse().ok().filter(|nth| (1..10).contains(nth)).map(PlaceholderTarget::Position)
        }
    }
}
