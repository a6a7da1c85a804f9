//! Prompts, resources and other MCP servers in a listing.

use serde_json::{Value, json};
use toolcrib::manifest::lock::Kind;
use toolcrib::names::{DeclaredName, NotOffered};
use toolcrib::tool::fully_visible;

use crate::options::ToolsetChoice;
use crate::screen::columns::{Columns, gist};
use crate::screen::{FAINT, STRONG, WARNING};
use crate::startup::Started;

/// Declarations in files that are not tools.
pub(super) struct OtherDeclarations(Vec<DeclaredName>);

impl OtherDeclarations {
    /// The declarations of a toolset; other MCP servers belong to every toolset.
    pub(super) fn of(started: &Started, toolset: &ToolsetChoice) -> anyhow::Result<Self> {
        let mut names = started.crib.declared_names();
        if let Some(toolset) = toolset.chosen(&started.crib)? {
            names.retain(|one| match one.kind {
                Kind::Prompt => toolset.allows_prompt(&one.name),
                Kind::Resource => toolset.allows_resource(&one.name),
                Kind::Upstream | Kind::Tool => true,
            });
        }
        Ok(Self(names))
    }

    /// What clients are offered, as one table per kind.
    pub(super) fn tables(&self, wide: bool) -> Vec<String> {
        let table = |(kind, head): (Kind, &str)| {
            let mut offered = self.offered(kind).peekable();
            offered.peek()?;
            let columns = Columns::new([head, "DESCRIPTION", "SOURCE"]).shorten(1, wide);
            Some(columns.rows(offered.map(|one| {
                let description = one.description.as_deref().unwrap_or_default();
                let source =
                    one.source.origin.as_ref().map_or_else(String::new, ToString::to_string);
                [one.name.clone(), gist(description).to_owned(), source]
            })))
        };
        [(Kind::Prompt, "PROMPT"), (Kind::Resource, "RESOURCE")]
            .into_iter()
            .filter_map(table)
            .collect()
    }

    fn offered(&self, kind: Kind) -> impl Iterator<Item = &DeclaredName> {
        self.0.iter().filter(move |one| one.kind == kind && one.withheld.is_none())
    }

    /// Remarks, one line each.
    pub(super) fn lines(&self) -> Vec<String> {
        let line = |one: &DeclaredName| {
            let (word, reason) = match (&one.withheld, &one.remark) {
                (Some(NotOffered::Blocked(reason)), _) => ("blocked", reason.clone()),
                (Some(NotOffered::Untrusted(reason)), _) => ("unavailable", reason.clone()),
                (Some(NotOffered::Shadowed(by)), _) => {
                    ("shadowed", format!("the name belongs to {by}"))
                }
                (None, Some(remark)) => ("remark", remark.clone()),
                (None, None) => return None,
            };
            let (kind, source) = (one.kind.as_str(), one.source.to_string());
            let (name, reason) = (fully_visible(&one.name), fully_visible(&reason));
            let source = fully_visible(&source);
            Some(format!(
                "{WARNING}{word}{WARNING:#} {kind} {STRONG}{name}{STRONG:#}: {reason} \
                 {FAINT}({source}){FAINT:#}"
            ))
        };
        self.0.iter().filter_map(line).collect()
    }

    /// Adds `prompts` and `resources` to the JSON document, if there are any, and with `all` those
    /// that are withheld.
    pub(super) fn add_to(&self, document: &mut Value, all: bool) {
        for (kind, key) in [(Kind::Prompt, "prompts"), (Kind::Resource, "resources")] {
            let records: Vec<_> = self.offered(kind).map(record).collect();
            if !records.is_empty() {
                document[key] = records.into();
            }
        }
        let withheld: Vec<_> =
            self.0.iter().filter(|one| one.withheld.is_some()).map(record).collect();
        if all && !withheld.is_empty() {
            document["withheld"] = withheld.into();
        }
    }

    /// How many are withheld until the operator trusts them.
    pub(super) fn untrusted(&self) -> usize {
        self.0.iter().filter(|one| matches!(one.withheld, Some(NotOffered::Untrusted(_)))).count()
    }

    pub(super) fn blocked(&self) -> usize {
        self.0.iter().filter(|one| matches!(one.withheld, Some(NotOffered::Blocked(_)))).count()
    }

    pub(super) fn shadowed(&self) -> usize {
        self.0.iter().filter(|one| one.shadowed_by().is_some()).count()
    }

    pub(super) fn remarks(&self) -> usize {
        self.0.iter().filter(|one| one.withheld.is_none() && one.remark.is_some()).count()
    }

    pub(super) fn differ_from_lock(&self) -> bool {
        self.blocked() + self.remarks() > 0
    }
}

fn record(one: &DeclaredName) -> Value {
    let origin = one.source.origin.as_ref();
    let mut record = json!({
        "kind": one.kind.as_str(),
        "name": one.name,
        "description": one.description,
        "source": one.source.unit,
        "line": origin.map(|origin| origin.line),
    });
    match &one.withheld {
        Some(NotOffered::Blocked(reason)) => record["blocked"] = json!(reason),
        Some(NotOffered::Untrusted(reason)) => record["untrusted"] = json!(reason),
        Some(NotOffered::Shadowed(by)) => record["kept_by"] = json!(by.to_string()),
        None => {}
    }
    if let Some(remark) = &one.remark {
        record["remark"] = json!(remark);
    }
    record
}
