//! `tools` of an upstream: which of the server's tools are offered, and what replaces its words
//! about them.

use std::collections::{BTreeMap, HashMap};

use toolcrib_tool::{AnnotationOverrides, Pattern, ToolName};

use super::{Shared, keys};
use crate::declaration::{
    NamePattern, ToolOverride, UpstreamPrompts, UpstreamResources, UpstreamTools,
};
use crate::diagnostic::position::Span;
use crate::diagnostic::{Diagnostic, Findings};
use crate::document::{Entry, Node, shortened};
use crate::fields::Fields;
use crate::manifest::tool::cases::origin;
use crate::manifest::tool::description;
use crate::manifest::tool::policies::Policies;

/// Reads `tools` of an upstream. `upstream` is its name, namespace included, if it has a good one.
pub(super) fn read(
    fields: &Fields<'_>,
    upstream: Option<&str>,
    shared: &Shared<'_>,
    findings: &mut Findings<'_>,
) -> UpstreamTools {
    let tools = fields.node("tools");
    let Some(fields) = tools.and_then(|node| Fields::read(node, &keys::UPSTREAM_TOOLS, findings))
    else {
        return UpstreamTools::default();
    };
    let prefix = prefix(&fields, findings);
    let begins = prefix.as_deref().or(upstream).unwrap_or_default();
    let include = patterns(&fields, "include", shared, findings);
    let exclude = patterns(&fields, "exclude", shared, findings);
    check_left_out(&fields, &include, &exclude, findings);
    UpstreamTools {
        include,
        exclude,
        overrides: overrides(&fields, begins, shared, findings),
        prefix,
    }
}

/// Reads `resources` of an upstream.
pub(super) fn resources(
    fields: &Fields<'_>,
    shared: &Shared<'_>,
    findings: &mut Findings<'_>,
) -> Option<UpstreamResources> {
    let fields = Fields::read(fields.node("resources")?, &keys::UPSTREAM_RESOURCES, findings)?;
    Some(UpstreamResources {
        include: patterns(&fields, "include", shared, findings),
        exclude: patterns(&fields, "exclude", shared, findings),
    })
}

/// Reads `prompts` of an upstream.
pub(super) fn prompts(
    fields: &Fields<'_>,
    shared: &Shared<'_>,
    findings: &mut Findings<'_>,
) -> Option<UpstreamPrompts> {
    let fields = Fields::read(fields.node("prompts")?, &keys::UPSTREAM_PROMPTS, findings)?;
    Some(UpstreamPrompts {
        include: patterns(&fields, "include", shared, findings),
        exclude: patterns(&fields, "exclude", shared, findings),
    })
}

/// What the tools' names begin with.
fn prefix(fields: &Fields<'_>, findings: &mut Findings<'_>) -> Option<String> {
    let (node, prefix) = fields.node("prefix").zip(fields.text("prefix"))?;
    if prefix.is_empty() {
        return Some(String::new());
    }
    if let Err(error) = ToolName::new(prefix) {
        let message =
            error.to_string().replace("a tool name", "a prefix").replace("1 to 64", "0 to 32");
        findings
            .add(Diagnostic::error("bad-name", &node.span, message).help(
                "the prefix and the server's name of a tool are joined with `_`: prefix: gh",
            ));
    } else if prefix.len() > super::upstream::NAME_MAX {
        let message = format!(
            "the prefix has {} characters; it may have at most {}",
            prefix.len(),
            super::upstream::NAME_MAX
        );
        findings.add(
            Diagnostic::error("name-too-long", &node.span, message)
                .help("shorten it: the names of the tools come after it"),
        );
    }
    Some(prefix.to_owned())
}

/// Patterns of the server's names, with their places.
fn patterns(
    fields: &Fields<'_>,
    key: &str,
    shared: &Shared<'_>,
    findings: &mut Findings<'_>,
) -> Vec<NamePattern> {
    let mut patterns = Vec::new();
    for item in fields.node(key).map(Node::items).unwrap_or_default() {
        let Some(pattern) = item.as_str() else { continue };
        if pattern.trim().is_empty() {
            let message = "an empty pattern matches nothing";
            findings.add(
                Diagnostic::error("bad-pattern", &item.span, message)
                    .help("write a name as the server has it, with * for any characters: get_*"),
            );
        }
        patterns.push(NamePattern {
            pattern: pattern.to_owned(),
            origin: origin(shared.file, &shared.lines, &item.span),
        });
    }
    patterns
}

/// Reports overrides of tools that `include` or `exclude` leaves out.
fn check_left_out(
    fields: &Fields<'_>,
    include: &[NamePattern],
    exclude: &[NamePattern],
    findings: &mut Findings<'_>,
) {
    let has = |patterns: &[NamePattern], name: &str| {
        patterns.iter().any(|one| Pattern::new(one.pattern.as_str()).matches(name))
    };
    for entry in fields.node("override").map(Node::entries).unwrap_or_default() {
        let is_left_out =
            !include.is_empty() && !has(include, &entry.key) || has(exclude, &entry.key);
        if is_left_out && !entry.key.contains(['*', '?']) {
            let message =
                format!("`{}` is overridden, but `include` and `exclude` leave it out", entry.key);
            findings.add(Diagnostic::warning("unmatched-name", &entry.key_span, message).help(
                format!("add it to `include`, or remove the override: include: [{}]", entry.key),
            ));
        }
    }
}

/// `override`, by the server's names.
fn overrides(
    fields: &Fields<'_>,
    begins: &str,
    shared: &Shared<'_>,
    findings: &mut Findings<'_>,
) -> BTreeMap<String, ToolOverride> {
    let mut overrides = BTreeMap::new();
    let mut names: HashMap<&str, &Span> = HashMap::new();
    for Entry { key, key_span, node } in
        fields.node("override").map(Node::entries).unwrap_or_default()
    {
        if key.contains('*') {
            let message = format!("`{}` is a pattern; an override is for one tool", shortened(key));
            findings.add(
                Diagnostic::error("bad-pattern", key_span, message)
                    .help("write the server's name of the tool: override: {get_issue: {…}}"),
            );
            continue;
        }
        let Some(own) = Fields::read(node, &keys::UPSTREAM_OVERRIDE, findings) else { continue };
        if let Some((place, name)) = own.node("name").zip(own.text("name"))
            && check_name(begins, name, &place.span, findings)
        {
            if let Some(first) = names.get(name) {
                let message = format!("two overrides of this upstream have the name `{name}`");
                findings.add(
                    Diagnostic::error("duplicate-tool", &place.span, message)
                        .label("the same name again")
                        .help("give one of them another name")
                        .also(first, "first used here"),
                );
            } else {
                names.insert(name, &place.span);
            }
        }
        let read = ToolOverride {
            name: own.text("name").map(str::to_owned),
            title: own.text("title").map(str::to_owned),
            description: description(&own, findings).map(str::to_owned),
            annotations: annotations(&own, findings),
            approval: own
                .has("approval")
                .then(|| Policies::upstream_approval(&own, &Policies::default())),
            origin: origin(shared.file, &shared.lines, key_span),
        };
        overrides.insert(key.clone(), read);
    }
    overrides
}

/// Whether the name can follow the prefix.
fn check_name(begins: &str, name: &str, place: &Span, findings: &mut Findings<'_>) -> bool {
    if let Err(error) = ToolName::new(name) {
        findings.add(Diagnostic::error("bad-name", place, error.to_string()));
        return false;
    }
    let whole = if begins.is_empty() { name.to_owned() } else { format!("{begins}_{name}") };
    if whole.len() > ToolName::MAX_LEN {
        let message = format!(
            "`{whole}` has {} characters; a name has at most {}, prefix included",
            whole.len(),
            ToolName::MAX_LEN
        );
        findings.add(
            Diagnostic::error("name-too-long", place, message)
                .help("shorten the name, or give `tools` a shorter `prefix`"),
        );
        return false;
    }
    true
}

fn annotations(fields: &Fields<'_>, findings: &mut Findings<'_>) -> AnnotationOverrides {
    let node = fields.node("annotations");
    let Some(given) = node.and_then(|node| Fields::read(node, &keys::ANNOTATIONS, findings)) else {
        return AnnotationOverrides::default();
    };
    AnnotationOverrides {
        read_only: given.flag("read_only"),
        destructive: given.flag("destructive"),
        idempotent: given.flag("idempotent"),
        open_world: given.flag("open_world"),
    }
}
