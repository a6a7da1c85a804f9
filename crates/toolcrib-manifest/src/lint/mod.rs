//! Lints: warnings and hints of `check` in addition to errors: probable mistakes, possible
//! improvements, and problems with providers.

mod answers;
mod confinement;
mod context;
mod descriptions;
mod files;
mod habits;
mod hidden;
mod loaded_code;
mod schemas;
mod shell;
mod shell_texts;
mod tools;

use toolcrib_tool::ToolDefinition;

use crate::declaration::Declaration;
use crate::diagnostic::position::{Lines, Span, first_line, without_bom};
use crate::diagnostic::{Diagnostic, Findings, Severity};
use crate::document::{Entry, Node, NodeValue};
use crate::manifest::{Loaded, load_and, look, look_at_texts};

pub use crate::lint::context::LintContext;

/// A remark about a tool from outside of this crate, for example about its treatment by a model's
/// provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// Its severity. Errors count as warnings, because remarks do not keep a file from being
    /// loaded.
    pub severity: Severity,
    /// The stable code of the kind of remark, one of [`CODES`](crate::CODES).
    pub code: &'static str,
    /// The part of the tool.
    pub at: RemarkTarget,
    /// The message, as one clause.
    pub message: String,
    /// How to fix it.
    pub help: Option<String>,
}

/// The part of a tool that a [`Remark`] is about.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RemarkTarget {
    /// Its name.
    Name,
    /// Its description.
    Description,
    /// A place in the schema of its arguments, as a JSON pointer; empty for the schema itself.
    Input(String),
}

/// Loads a manifest as [`load_str`](crate::load_str) does, and adds warnings about probable
/// mistakes and hints about possible improvements. `remarks` is called for every valid tool.
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
    lint_with(file, text, &LintContext::default(), remarks)
}

/// Like [`lint_str`], with knowledge about the config's secrets and limits and about the machine.
pub fn lint_with(
    file: &str,
    text: &str,
    known: &LintContext,
    remarks: &dyn Fn(&ToolDefinition) -> Vec<Remark>,
) -> Loaded {
    load_and(file, Findings::new(without_bom(text)), |root, declarations, findings| {
        hidden::check_text(findings);
        known.check(file, root, findings);
        for server in root.entry("upstream").map(|list| list.node.items()).unwrap_or_default() {
            shell::check_upstream(server, findings);
        }
        tools::check_namespace(root, findings);
        let lines = Lines::new(findings.text);
        let mut declarations = declarations.iter();
        for tool in root.entry("tools").map(|tools| tools.node.items()).unwrap_or_default() {
            descriptions::check(tool, findings);
            tools::check(tool, findings);
            look(tool, findings);
            look_at_texts(tool, findings);
            shell::check(tool, findings);
            shell_texts::check(tool, findings);
            loaded_code::check(tool, findings);
            confinement::check(tool, findings);
            answers::check(tool, findings);
            habits::check(tool, findings);
            for schema in ["input", "output_schema"].iter().filter_map(|key| tool.entry(key)) {
                schemas::check(&schema.node, findings);
            }
            schemas::check_formats(tool, findings);
            let Some(declaration) = declared(tool, &mut declarations, &lines) else { continue };
            // Remarks of providers depend on the schema, so files with errors have none.
            if !findings.has_errors() {
                for remark in remarks(&declaration.definition) {
                    add(remark, tool, findings);
                }
            }
        }
    })
}

/// The declaration of a tool, from the remaining ones: declarations are in the order of the tools,
/// of which some may have none.
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
        RemarkTarget::Name => whole(),
        RemarkTarget::Description => tool.entry("description").map_or_else(whole, shown),
        RemarkTarget::Input(pointer) => tool.entry("input").map_or_else(whole, |input| {
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

/// The place to underline for an entry: its value, or the key of a list or a mapping.
fn shown(entry: &Entry) -> Span {
    match entry.node.value {
        NodeValue::Sequence(_) | NodeValue::Mapping(_) | NodeValue::Null => entry.key_span.clone(),
        _ => entry.node.span.clone(),
    }
}
