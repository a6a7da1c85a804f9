//! The names to which a tool's templates may refer, and those that they use.

mod placeholders;
mod slips;

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostic::fix::{Fix, only_slip};
use crate::diagnostic::position::Span;
use crate::diagnostic::{Diagnostic, Findings, meant};
use crate::document::{Entry, Node, NodeValue};
use crate::manifest::schema::addresses::names_host;
use crate::manifest::schema::too_free::too_free;
use crate::manifest::schema::value_shape::{Beginning, Shape};
use crate::template::{Reference, Template};

use placeholders::Placeholder;
pub(in crate::manifest) use placeholders::{forms, variable_for};

/// Context values that need no declaration in `context`.
pub(in crate::manifest) const HOST_VALUES: [&str; 7] =
    ["user", "tenant", "session_id", "request_id", "call_id", "project_id", "model"];

/// A declared argument.
#[derive(Debug)]
pub(in crate::manifest) struct Argument {
    /// The place of its name.
    pub(in crate::manifest) span: Span,
    /// Whether it is a list; `None` if the schema does not say.
    pub(in crate::manifest) list: Option<bool>,
    /// The shape of its values.
    pub(in crate::manifest) shape: Shape,
    /// What texts among its values can begin with.
    pub(in crate::manifest) beginning: Beginning,
    /// The texts that its schema lists.
    pub(in crate::manifest) listed: Vec<String>,
    /// Whether a pattern begins its values with a scheme: `^https?://` says that any host is meant.
    pub(in crate::manifest) has_host: bool,
    /// Whether calls can omit it: it is not required and has no default.
    pub(in crate::manifest) optional: bool,
}

/// The names of a tool, and which are used.
#[derive(Debug, Default)]
pub(in crate::manifest) struct Scope {
    pub(in crate::manifest) arguments: BTreeMap<String, Argument>,
    /// The part of an argument's schema that takes any text, and what restricts it, if it is only a part.
    too_free: BTreeMap<String, String>,
    pub(in crate::manifest) context: BTreeSet<String>,
    /// Arguments that are used.
    pub(in crate::manifest) used: BTreeSet<String>,
    /// Whether a reference is undeclared or invalid, so that unused arguments cannot be determined.
    pub(in crate::manifest) unclear: bool,
    /// Variables of the server that are used.
    pub(in crate::manifest) env: BTreeSet<String>,
    /// Secrets that are used.
    pub(in crate::manifest) secrets: BTreeSet<String>,
    /// Texts that look like references in other template languages.
    placeholders: Vec<Placeholder>,
}

impl Scope {
    /// Declares the properties of an object schema, including those of combined schemas.
    pub(in crate::manifest) fn declare(&mut self, schema: &Node) {
        self.declare_below(schema, schema, 0);
    }

    fn declare_below(&mut self, root: &Node, schema: &Node, depth: usize) {
        // The depth is limited, because a schema may refer to itself.
        if depth > 4 {
            return;
        }
        for entry in schema.entries() {
            match entry.key.as_str() {
                "properties" => {
                    for property in entry.node.entries() {
                        // A list of names that belongs beside `properties`.
                        if property.key == "required" && !property.node.items().is_empty() {
                            continue;
                        }
                        if let Some(part) = too_free(&property.key, &property.node) {
                            self.too_free.entry(property.key.clone()).or_insert(part);
                        }
                        self.arguments.entry(property.key.clone()).or_insert_with(|| Argument {
                            span: property.key_span.clone(),
                            list: is_list(&property.node),
                            shape: Shape::of(&property.node),
                            beginning: Beginning::of(&property.node),
                            has_host: property
                                .node
                                .entry("pattern")
                                .and_then(|pattern| pattern.node.as_str())
                                .is_some_and(names_host),
                            listed: listed(&property.node),
                            optional: is_optional(schema, property),
                        });
                    }
                }
                "allOf" | "anyOf" | "oneOf" => {
                    for branch in entry.node.items() {
                        self.declare_below(root, branch, depth + 1);
                    }
                }
                "if" | "then" | "else" => self.declare_below(root, &entry.node, depth + 1),
                "dependentSchemas" => {
                    for branch in entry.node.entries() {
                        self.declare_below(root, &branch.node, depth + 1);
                    }
                }
                "$ref" => {
                    let pointer = entry.node.as_str().and_then(|target| target.strip_prefix('#'));
                    if let Some(pointer) = pointer {
                        self.declare_below(root, root.at_pointer(pointer).0, depth + 1);
                    }
                }
                _ => {}
            }
        }
    }

    /// The part of the schema of a reference's argument that takes any text, and what restricts it, if it is only a part.
    pub(in crate::manifest) fn too_free(&self, reference: &Reference) -> Option<&str> {
        let Reference::Arg(name) = reference else { return None };
        self.too_free.get(name).map(String::as_str)
    }

    /// Reads a template and checks what it refers to.
    pub(in crate::manifest) fn template(
        &mut self,
        node: &Node,
        findings: &mut Findings<'_>,
    ) -> Option<Template> {
        self.read(node, Self::refer, findings)
    }

    /// Reads a template that is expanded without a call: variables and secrets.
    pub(in crate::manifest) fn standing_template(
        &mut self,
        node: &Node,
        findings: &mut Findings<'_>,
    ) -> Option<Template> {
        let refer =
            |scope: &mut Self, reference: &Reference, span: &Span, findings: &mut Findings<'_>| {
                if !matches!(reference, Reference::Arg(_) | Reference::Ctx(_)) {
                    return scope.refer(reference, span, findings);
                }
                let message =
                    format!("`{reference}` is a value of a call, and there is no call yet");
                findings.add(Diagnostic::error("no-call", span, message).help(
                    "one connection serves all calls: only ${env.NAME} and ${secret.name} are \
                     known when it is made",
                ));
            };
        self.read(node, refer, findings)
    }

    fn read(
        &mut self,
        node: &Node,
        refer: impl Fn(&mut Self, &Reference, &Span, &mut Findings<'_>),
        findings: &mut Findings<'_>,
    ) -> Option<Template> {
        let text = node.as_str()?;
        let mut place = Places::new(node);
        match Template::parse(text) {
            Ok(template) => {
                for reference in template.references() {
                    let span = place.next(&reference.to_string(), findings.text);
                    refer(self, reference, &span, findings);
                }
                self.note_slips(&template, node, findings);
                self.note_placeholders(&template, node, findings.text);
                Some(template)
            }
            Err(errors) => {
                self.unclear = true;
                for error in errors {
                    let written = text.get(error.range).unwrap_or_default();
                    let span = place.next(written, findings.text);
                    let help = self.reference_meant(written);
                    findings
                        .add(Diagnostic::error("bad-reference", &span, error.message).help(help));
                }
                None
            }
        }
    }

    /// Records the use of an argument; adds a diagnostic if it is undeclared.
    pub(in crate::manifest) fn refer_argument(
        &mut self,
        name: &str,
        span: &Span,
        findings: &mut Findings<'_>,
    ) {
        self.used.insert(name.to_owned());
        if self.arguments.contains_key(name) {
            return;
        }
        self.unclear = true;
        let declared = self.arguments.keys().map(String::as_str);
        let help = if self.context.contains(name) {
            Some(format!("it is a context value: write ${{ctx.{name}}}"))
        } else if let Some((whole, _)) =
            name.split_once('.').filter(|(whole, _)| self.arguments.contains_key(*whole))
        {
            Some(format!("a reference names a whole argument: write ${{args.{whole}}}"))
        } else {
            meant(name, declared).map(|name| format!("did you mean `{name}`?"))
        };
        let help = help.unwrap_or_else(|| "declare it in `input: {properties: …}`".to_owned());
        let message = format!("no argument is called `{name}`");
        let fix = self.renamed(name, span, findings.text);
        findings.add(Diagnostic::error("undeclared-argument", span, message).help(help).fix(fix));
    }

    /// The edit that corrects a misspelt argument name, if there is only one possible correction.
    fn renamed(&self, name: &str, span: &Span, text: &str) -> Option<Fix> {
        let declared: Vec<&str> = self.arguments.keys().map(String::as_str).collect();
        let meant = only_slip(name, &declared).filter(|_| !self.context.contains(name))?;
        let written = text.get(span.clone())?;
        let mut places = written.match_indices(name);
        let (at, _) = places.next()?;
        if places.next().is_some() {
            return None;
        }
        let start = span.start + at;
        let place = start..start + name.len();
        Some(Fix::replace(&place, meant, format!("refer to `{meant}` instead of `{name}`")))
    }

    fn refer(&mut self, reference: &Reference, span: &Span, findings: &mut Findings<'_>) {
        match reference {
            Reference::Arg(name) => self.refer_argument(name, span, findings),
            Reference::Ctx(name) => {
                if self.context.contains(name) || HOST_VALUES.contains(&name.as_str()) {
                    return;
                }
                let known = self.context.iter().map(String::as_str).chain(HOST_VALUES);
                let declare = format!("declare it: `context: {{{name}: {{from: ctx.{name}}}}}`");
                let help = match meant(name, known) {
                    Some(near) => format!("did you mean ${{ctx.{near}}}? If not, {declare}"),
                    None => declare,
                };
                let message = format!("no context value is called `{name}`");
                findings.add(Diagnostic::error("undeclared-context", span, message).help(help));
            }
            Reference::Env(name) => {
                self.env.insert(name.clone());
            }
            Reference::Secret(name) => {
                self.secrets.insert(name.clone());
            }
        }
    }
}

/// Whether a schema is a list; `None` if it does not say.
fn is_list(schema: &Node) -> Option<bool> {
    match &schema.entry("type")?.node.value {
        NodeValue::String(name) => Some(name == "array"),
        NodeValue::Sequence(names) => Some(names.iter().any(|name| name.as_str() == Some("array"))),
        _ => None,
    }
}

/// The texts that a schema, or the schema of a list's items, lists.
fn listed(schema: &Node) -> Vec<String> {
    let schema = match schema.entry("items") {
        Some(items) if is_list(schema) == Some(true) => &items.node,
        _ => schema,
    };
    let values = schema.entry("enum").map(|entry| entry.node.items()).unwrap_or_default();
    let only = schema.entry("const").map(|entry| &entry.node);
    values.iter().chain(only).filter_map(Node::as_str).map(str::to_owned).collect()
}

/// Whether a property of an object schema is optional.
fn is_optional(schema: &Node, property: &Entry) -> bool {
    let required = schema.entry("required").map(|entry| entry.node.items()).unwrap_or_default();
    let default = property.node.entry("default").map(|entry| &entry.node.value);
    !required.iter().any(|name| name.as_str() == Some(&property.key))
        && default.is_none_or(|default| *default == NodeValue::Null)
}

/// Finds pieces of a text in its source, in order.
///
/// Quoting and folding move the text; a piece that cannot be found has the node's place.
pub(crate) struct Places<'n> {
    node: &'n Node,
    from: usize,
}

impl<'n> Places<'n> {
    pub(in crate::manifest) fn new(node: &'n Node) -> Self {
        Self { node, from: node.span.start }
    }

    /// The place of the piece at offset `at` of the node's value, among equal pieces.
    pub(crate) fn nth(node: &Node, piece: &str, value: &str, at: usize, text: &str) -> Span {
        let before = value[..at].matches(piece).count();
        let mut places = Places::new(node);
        for _ in 0..before {
            places.next(piece, text);
        }
        places.next(piece, text)
    }

    pub(in crate::manifest) fn next(&mut self, piece: &str, text: &str) -> Span {
        let found = text.get(self.from..self.node.span.end).and_then(|source| source.find(piece));
        match found {
            Some(found) => {
                let start = self.from + found;
                self.from = start + piece.len();
                start..self.from
            }
            None => self.node.span.clone(),
        }
    }
}
