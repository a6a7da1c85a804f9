//! What `check` says beyond what keeps a file from loading: what is probably not meant, what could
//! be better, and what others would make of it.

mod answers;
mod confinement;
mod descriptions;
mod hidden;
mod schemas;
mod shell;
mod surroundings;
mod tools;

use toolcrib_tool::ToolDefinition;

use crate::declaration::Declaration;
use crate::diagnostic::position::{Lines, Span, first_line, without_bom};
use crate::diagnostic::{Diagnostic, Findings, Severity};
use crate::document::{Entry, Node, NodeValue};
use crate::manifest::{Loaded, load_and, look, look_at_texts};

pub use crate::lint::surroundings::Known;

/// Something to be said of a tool by somebody who knows more than its file, such as what a model's
/// provider makes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// How bad it is. An error is taken for a warning: what is said here keeps no file from loading.
    pub severity: Severity,
    /// A stable name of the kind of remark, one of [`CODES`](crate::CODES).
    pub code: &'static str,
    /// Of what.
    pub at: Place,
    /// What is the matter, as one clause.
    pub message: String,
    /// What would be right.
    pub help: Option<String>,
}

/// The part of a tool that a [`Remark`] is about.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// Its name.
    Name,
    /// Its description.
    Description,
    /// A place in the schema of its arguments, as a JSON pointer; empty for the schema itself.
    Input(String),
}

/// Loads a manifest as [`load_str`](crate::load_str) does, and says more about it: what is probably
/// not meant is a warning, what could be better a hint. `remarks` is asked about every tool that could
/// be read.
///
/// ```
/// let text = "toolcrib: 1\ntools:\n  - name: uptime\n    description: Uptime.\n    run: {argv: [uptime]}\n";
/// let found = toolcrib_manifest::lint_str("uptime.yaml", text, &|_| Vec::new()).diagnostics;
/// assert!(found.iter().any(|found| found.code == "short-description"));
/// assert!(toolcrib_manifest::load_str("uptime.yaml", text).diagnostics.is_empty());
/// ```
pub fn lint_str(
    file: &str,
    text: &str,
    remarks: &dyn Fn(&ToolDefinition) -> Vec<Remark>,
) -> Loaded {
    lint_with(file, text, &Known::default(), remarks)
}

/// The same with what is known beside the file: the config's secrets and limits, and the disk.
pub fn lint_with(
    file: &str,
    text: &str,
    known: &Known,
    remarks: &dyn Fn(&ToolDefinition) -> Vec<Remark>,
) -> Loaded {
    load_and(file, Findings::new(without_bom(text)), |root, declarations, findings| {
        hidden::check_text(findings);
        known.check(file, root, findings);
        for server in root.entry("upstream").map(|list| list.node.items()).unwrap_or_default() {
            shell::check_upstream(server, findings);
        }
        let lines = Lines::new(findings.text);
        let mut declarations = declarations.iter();
        for tool in root.entry("tools").map(|tools| tools.node.items()).unwrap_or_default() {
            descriptions::check(tool, findings);
            tools::check(tool, findings);
            look(tool, findings);
            look_at_texts(tool, findings);
            shell::check(tool, findings);
            confinement::check(tool, findings);
            answers::check(tool, findings);
            for schema in ["input", "output_schema"].iter().filter_map(|key| tool.entry(key)) {
                schemas::check(&schema.node, findings);
            }
            schemas::check_formats(tool, findings);
            let Some(declaration) = declared(tool, &mut declarations, &lines) else { continue };
            // What a provider makes of a tool follows from its schema: errors come first.
            if !findings.has_errors() {
                for remark in remarks(&declaration.definition) {
                    add(remark, tool, findings);
                }
            }
        }
    })
}

/// The declaration that was made of a tool, taken from those that follow: declarations are in the
/// order of the tools, of which some may have none.
fn declared<'d>(
    tool: &Node,
    declarations: &mut std::slice::Iter<'d, Declaration>,
    lines: &Lines<'_>,
) -> Option<&'d Declaration> {
    let place = lines.line_column(tool.entry("name")?.node.span.start);
    let next = declarations.as_slice().first()?;
    let origin = (next.origin.line as usize, next.origin.column as usize);
    if origin == place { declarations.next() } else { None }
}

fn add(remark: Remark, tool: &Node, findings: &mut Findings<'_>) {
    let whole = || tool.entry("name").map_or(&tool.span, |name| &name.node.span).clone();
    let span = match &remark.at {
        Place::Name => whole(),
        Place::Description => tool.entry("description").map_or_else(whole, shown),
        Place::Input(pointer) => tool.entry("input").map_or_else(whole, |input| {
            let (node, entry) = input.node.at_pointer(pointer);
            entry.map_or_else(
                || if pointer.is_empty() { shown(input) } else { node.span.clone() },
                shown,
            )
        }),
    };
    let span = first_line(findings.text, &span);
    let severity = remark.severity.max(Severity::Warning);
    let diagnostic = Diagnostic::warning(remark.code, &span, remark.message);
    findings.add(Diagnostic { severity, ..diagnostic.maybe_help(remark.help) });
}

/// The place that is underlined for an entry: its value, or the key of a list or a mapping.
fn shown(entry: &Entry) -> Span {
    match entry.node.value {
        NodeValue::Sequence(_) | NodeValue::Mapping(_) | NodeValue::Null => entry.key_span.clone(),
        _ => entry.node.span.clone(),
    }
}
