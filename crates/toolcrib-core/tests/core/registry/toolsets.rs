//! One filter decides what is listed, found, described and called.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;
use toolcrib_core::{
    AnnotationPattern, Registry, RegistryBuilder, RegistrySnapshot, ToolFilter, Toolset,
};
use toolcrib_tool::{Layer, Source, ToolDefinition, ToolEntry, tool_fn};

fn entry(name: &str, category: &str, tag: &str, read_only: bool, source: Source) -> ToolEntry {
    let definition = ToolDefinition::builder(name)
        .description("A tool for a test.")
        .category(category)
        .tags(vec![tag.to_owned()])
        .read_only(read_only)
        .build()
        .expect("valid");
    let body = tool_fn(|_: serde_json::Value, _| async { "x" });
    ToolEntry::new(definition, Arc::new(body), source)
}

fn snapshot() -> Arc<RegistrySnapshot> {
    let mut builder = RegistryBuilder::new();
    let manifest = || Source::new(Layer::Manifest, "tools.d/disk.yaml");
    for entry in [
        entry("read_file", "file", "io", true, Source::new(Layer::Native, "core")),
        entry("write_file", "file", "io", false, Source::new(Layer::Native, "core")),
        entry("disk_usage", "data", "system", true, manifest()),
        entry("disk_repair", "data", "system", true, manifest()).unavailable("no disk"),
        entry("hub_search", "web", "io", true, Source::new(Layer::Upstream, "hub")),
    ] {
        let _ = builder.register(entry);
    }
    Arc::new(builder.build())
}

fn names(toolset: &Toolset) -> Vec<String> {
    let view = toolset.view(&snapshot());
    view.definitions().iter().map(|definition| definition.name().to_owned()).collect()
}

fn of(rules: serde_json::Value) -> Toolset {
    serde_json::from_value(rules).expect("a toolset")
}

#[test]
fn every_condition_of_a_filter_has_to_be_met_by_any_of_its_items() {
    for (rules, expected) in [
        (json!({}), &["disk_usage", "hub_search", "read_file", "write_file"][..]),
        (json!({"include": [{"names": ["read_*", "disk_?sage"]}]}), &["disk_usage", "read_file"]),
        (
            json!({"include": [{"categories": ["file"], "annotations": {"read_only": true}}]}),
            &["read_file"],
        ),
        (json!({"include": [{"annotations": {"destructive": true}}]}), &["write_file"]),
        (
            json!({"include": [{"tags": ["io"]}], "exclude": [{"sources": ["upstream"]}]}),
            &["read_file", "write_file"],
        ),
        (json!({"include": [{"sources": ["manifest:tools.d/*"]}]}), &["disk_usage"]),
        (
            json!({"include": [{"sources": ["h?b"]}, {"names": ["read_file"]}]}),
            &["hub_search", "read_file"],
        ),
        (json!({"include": [{"sources": ["manifest:hub"]}]}), &[]),
        (json!({"exclude": [{}]}), &[]),
    ] {
        assert_eq!(names(&of(rules.clone())), expected, "{rules}");
    }
}

#[test]
fn a_misspelt_condition_is_an_error() {
    for rules in [
        json!({"includes": []}),
        json!({"include": [{"name": ["x"]}]}),
        json!({"include": [{"annotations": {"readonly": true}}]}),
    ] {
        let error = serde_json::from_value::<Toolset>(rules).expect_err("unknown");
        assert!(error.to_string().contains("unknown field"), "{error}");
    }
}

#[test]
fn what_is_not_allowed_is_not_there() {
    let files = Toolset::new().include(ToolFilter::new().category("file"));
    assert_eq!(files, of(json!({"include": [{"categories": ["file"]}]})));
    let view = files.view(&snapshot());
    assert!(view.get("disk_usage").is_none() && view.describe("disk_usage").is_none());
    assert!(view.near("disk_usag").is_empty());
    assert_eq!(view.near("readfile"), ["read_file"]);
    assert_eq!(view.entries().count(), 2);
    assert!(view.snapshot().get("disk_usage").is_some());
}

#[test]
fn an_allowed_tool_that_cannot_run_here_is_unavailable_and_not_unknown() {
    let view = Toolset::new().view(&snapshot());
    assert!(view.get("disk_repair").is_some());
    assert!(view.describe("disk_repair").is_none());
}

#[test]
fn a_view_of_another_snapshot_is_made_anew() {
    let all = Toolset::new();
    let one = snapshot();
    assert_eq!(all.view(&one).definitions().len(), 4);
    let other = Registry::scratch().tool("x", |_, _| async { "x" }).build().expect("built");
    assert_eq!(all.view(&other.snapshot()).definitions().len(), 1);
    assert_eq!(all.view(&one).definitions().len(), 4);
    assert!(std::ptr::eq(all.view(&one).definitions(), all.view(&one).definitions()));
}

proptest! {
    #[test]
    fn all_doors_agree(
        names in prop::collection::vec("[dhrw*?_]{1,4}\\*?", 0..3),
        hidden in prop::collection::vec("[a-z*]{1,3}\\*?", 0..2),
        read_only in any::<Option<bool>>(),
    ) {
        let annotations = AnnotationPattern { read_only, ..AnnotationPattern::default() };
        let plain = ToolFilter::new().annotations(annotations);
        let wanted = names.iter().fold(plain, ToolFilter::name);
        let toolset = hidden.iter().fold(
            Toolset::new().include(wanted),
            |toolset, name| toolset.exclude(ToolFilter::new().name(name)),
        );
        let snapshot = snapshot();
        let view = toolset.view(&snapshot);
        for entry in snapshot.entries() {
            let allowed = toolset.allows(entry);
            let available = entry.unavailable_reason().is_none();
            let name = entry.name();
            prop_assert_eq!(view.get(name).is_some(), allowed);
            prop_assert_eq!(view.entries().any(|other| other.name() == name), allowed);
            prop_assert_eq!(view.describe(name).is_some(), allowed && available);
            prop_assert_eq!(view.definitions().iter().any(|d| d.name() == name), allowed && available);
            let near = view.near(&name.to_uppercase());
            prop_assert_eq!(near.contains(&name), allowed && available);
        }
    }
}
