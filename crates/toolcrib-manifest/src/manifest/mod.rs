//! Manifests: turns the text of a file into checked declarations, or into diagnostics.

mod http;
mod json_schema;
mod keys;
mod offering;
pub(crate) mod program;
mod schema;
mod tool;
mod upstream;
mod upstream_tools;
mod variants;
mod version;

use std::collections::HashMap;

pub(crate) use self::schema::subschemas;
pub(crate) use self::tool::input_text::look_at_texts;
pub(crate) use self::tool::references::Places;
pub(crate) use crate::manifest::program::argv::look;
pub use crate::manifest::program::shell::text_commands as shell_text;
pub(crate) use crate::manifest::program::shell::{slips, unknown_files};
pub(crate) use crate::manifest::program::started::{RunFile, StartedProgram, started};

pub use self::json_schema::manifest_schema;
use crate::declaration::{
    Declaration, PromptDeclaration, ResourceDeclaration, UpstreamDeclaration,
};
use crate::diagnostic::position::{Lines, Span, first_line, without_bom};
use crate::diagnostic::{Diagnostic, Findings, Severity};
use crate::document::{Format, Node, NodeValue, parse};
use crate::fields::Fields;
use crate::manifest::tool::limits::Limits;
use crate::manifest::tool::policies::Policies;

/// The version of the format this crate reads: the value of the key `toolcrib`.
pub const FORMAT_VERSION: i64 = 1;

/// The result of loading a manifest.
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    /// The tools, in the order of the file. Empty if there is any error: a file is loaded
    /// completely or not at all.
    pub declarations: Vec<Declaration>,
    /// MCP servers as sources of tools, in the order of the file. Empty if there is any error.
    pub upstreams: Vec<UpstreamDeclaration>,
    /// Prompts, in the order of the file. Empty if there is any error.
    pub prompts: Vec<PromptDeclaration>,
    /// Resources, in the order of the file. Empty if there is any error.
    pub resources: Vec<ResourceDeclaration>,
    /// All diagnostics, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}

impl Loaded {
    /// Whether the file has errors and was refused.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|found| found.severity == Severity::Error)
    }
}

/// Loads a manifest from its text.
///
/// `file` is the name for messages; its ending chooses YAML or TOML. Never panics. Nothing but the
/// text is read: whether programs and secrets exist is not checked.
///
/// ```
/// let text = "
/// toolcrib: 1
/// tools:
///   - name: uptime
///     description: Show how long the machine has been running.
///     run: {argv: [uptime]}
/// ";
/// let loaded = toolcrib_manifest::load_str("uptime.yaml", text);
/// assert_eq!(loaded.declarations[0].definition.name(), "uptime");
///
/// let broken = text.replace("description", "descripton");
/// let loaded = toolcrib_manifest::load_str("uptime.yaml", &broken);
/// assert!(loaded.declarations.is_empty());
/// assert_eq!(loaded.diagnostics[0].code, "missing-key");
/// assert_eq!(loaded.diagnostics[1].help.as_deref(), Some("did you mean `description`?"));
/// ```
pub fn load_str(file: &str, text: &str) -> Loaded {
    load_and(file, Findings::new(without_bom(text)), |_, _, _| {})
}

/// Like [`load_str`], but without a limit for listed problems.
pub(crate) fn load_listing_all(file: &str, text: &str) -> Loaded {
    load_and(file, Findings::unlimited(without_bom(text)), |_, _, _| {})
}

/// Loads a manifest from the text of the findings, then lets `look` add findings.
pub(crate) fn load_and<'t>(
    file: &str,
    mut findings: Findings<'t>,
    look: impl FnOnce(&Node, &[Declaration], &mut Findings<'t>),
) -> Loaded {
    let declared = parse(Format::of(file), &mut findings)
        .map(|root| {
            let declared = load_root(file, &root, &mut findings);
            look(&root, &declared.declarations, &mut findings);
            declared
        })
        .unwrap_or_default();
    if findings.has_errors() {
        // Errors come first.
        findings.leave_out_hints();
        return Loaded { diagnostics: findings.finish(), ..Loaded::default() };
    }
    Loaded { diagnostics: findings.finish(), ..declared }
}

/// The parts of a file that apply to all its tools.
#[derive(Debug)]
struct Shared<'a> {
    file: &'a str,
    lines: Lines<'a>,
    namespace: Option<&'a str>,
    owner: Option<&'a str>,
    defaults: Option<Fields<'a>>,
    limits: Limits<'a>,
    policies: Policies,
}

/// All declarations of a file; diagnostics are added to the findings.
fn load_root(file: &str, root: &Node, findings: &mut Findings<'_>) -> Loaded {
    if root.value == NodeValue::Null {
        findings.add(Diagnostic::error("wrong-type", &root.span, "this manifest is empty").help(
            "begin with `toolcrib: 1` and a list `tools:`, as `toolcrib new NAME` does; \
                 `tools: []` declares none",
        ));
        return Loaded::default();
    }
    let Some(fields) = Fields::read(root, &keys::FILE, findings) else {
        return Loaded::default();
    };
    if !version::check(&fields, findings) {
        return Loaded::default();
    }
    if !keys::DECLARING.iter().any(|key| fields.has(key)) {
        let place = first_line(findings.text, &fields.span);
        findings.add(
            Diagnostic::error("missing-key", &place, "a manifest needs the key `tools`").help(
                "add `tools:` with a list of tools, or `upstream:` with a list of MCP servers; \
                 `tools: []` declares none",
            ),
        );
    }
    let defaults = fields.node("defaults").and_then(|n| Fields::read(n, &keys::DEFAULTS, findings));
    let given = defaults.as_ref();
    let shared = Shared {
        file,
        lines: Lines::new(findings.text),
        namespace: fields.text("namespace"),
        owner: fields.text("owner"),
        limits: given.map(|fields| Limits::read(fields, findings)).unwrap_or_default(),
        policies: given.map(|fields| Policies::read(fields, findings)).unwrap_or_default(),
        defaults,
    };
    check_namespace(&fields, findings);
    let mut declarations = Vec::new();
    let mut names: HashMap<&str, &Span> = HashMap::new();
    for node in fields.node("tools").map(Node::items).unwrap_or_default() {
        if let Some(entry) = node.entry("name")
            && let Some(name) = entry.node.as_str()
            && let Some(first) = names.insert(name, &entry.node.span)
        {
            findings.add(
                Diagnostic::error(
                    "duplicate-tool",
                    &entry.node.span,
                    format!("two tools of this file are called `{name}`"),
                )
                .label("the same name again")
                .help("rename one of them")
                .also(first, "first used here"),
            );
            names.insert(name, first);
        }
        declarations.extend(tool::read(node, &shared, findings));
    }
    let upstreams = fields.node("upstream").map(|list| upstream::read_all(list, &shared, findings));
    let prompts = fields.node("prompts").map(|list| offering::prompts(list, &shared, findings));
    let resources =
        fields.node("resources").map(|list| offering::resources(list, &shared, findings));
    Loaded {
        declarations,
        upstreams: upstreams.unwrap_or_default(),
        prompts: prompts.unwrap_or_default(),
        resources: resources.unwrap_or_default(),
        diagnostics: Vec::new(),
    }
}

fn check_namespace(fields: &Fields<'_>, findings: &mut Findings<'_>) {
    if let Some(node) = fields.node("namespace")
        && let Some(Err(error)) = node.as_str().map(toolcrib_tool::ToolName::new)
    {
        let message = error.to_string().replace("a tool name", "a namespace");
        findings.add(Diagnostic::error("bad-namespace", &node.span, message));
    }
}
