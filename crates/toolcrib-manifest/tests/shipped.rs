//! The tools that are shipped in `tools.d`, and those in its catalogue: nothing is wrong with any of them.

use std::collections::HashSet;
use std::path::Path;

use toolcrib_manifest::LintContext;
use toolcrib_manifest::declaration::{Declaration, Expectation};
use toolcrib_manifest::directory::{DirectoryLoad, catalogue, lint_paths_with, load_dirs};

fn shipped() -> DirectoryLoad {
    let loaded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools.d");
    let dirs: Vec<_> = std::iter::once(loaded.clone()).chain(catalogue(&loaded)).collect();
    assert_eq!(dirs.len(), 2, "there is a catalogue");
    load_dirs(&dirs)
}

/// The tools for which something does not hold.
fn failing(holds: impl Fn(&Declaration) -> bool) -> Vec<String> {
    let load = shipped();
    let failing = load.declarations().filter(|tool| !holds(tool));
    failing.map(|tool| tool.definition.name().to_string()).collect()
}

#[test]
fn the_shipped_tools_load_without_a_single_diagnostic() {
    let load = shipped();
    let problems: String =
        load.unreadable.iter().chain(&load.files).map(|file| file.render(false)).collect();
    assert_eq!(problems, "");
    assert!(load.declarations().count() >= 16);
}

#[test]
fn a_check_of_the_shipped_tools_and_of_the_catalogue_says_nothing_at_all() {
    let loaded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools.d");
    let dirs: Vec<_> = std::iter::once(loaded.clone()).chain(catalogue(&loaded)).collect();
    let load = lint_paths_with(&dirs, &LintContext::default().files(true), &|_| Vec::new());
    let said: String = load.files.iter().map(|file| file.render(false)).collect();
    assert_eq!(said, "");
}

#[test]
fn no_two_shipped_tools_share_a_name() {
    let load = shipped();
    let mut names = HashSet::new();
    let twice: Vec<_> =
        load.declarations().filter(|tool| !names.insert(tool.definition.name())).collect();
    assert!(twice.is_empty(), "{twice:?}");
}

#[test]
fn every_shipped_tool_names_its_owner_and_its_program() {
    let named = |tool: &Declaration| tool.http().is_some() || !tool.needs.bins.is_empty();
    assert_eq!(failing(|tool| tool.owner.is_some() && named(tool)), [""; 0]);
}

#[test]
fn every_shipped_tool_only_reads_and_says_so() {
    let honest = |tool: &Declaration| {
        let said = tool.definition.annotations();
        said.read_only
            && said.idempotent
            && !said.destructive
            && tool.definition.description().ends_with("Read-only.")
    };
    assert_eq!(failing(honest), [""; 0]);
}

#[test]
fn every_shipped_tool_has_a_test_that_must_succeed_and_one_that_must_be_refused() {
    let refused = |expect: &Expectation| expect.error.as_deref() == Some("invalid_args");
    let both = |tool: &Declaration| {
        tool.tests.iter().any(|test| refused(&test.expect))
            && tool.tests.iter().any(|test| test.expect.error.is_none())
    };
    assert_eq!(failing(both), [""; 0]);
}

#[test]
fn every_text_argument_of_a_shipped_tool_is_bounded() {
    let bounded = |tool: &Declaration| {
        let properties = tool.definition.input_schema()["properties"].as_object();
        properties.into_iter().flatten().all(|(_, schema)| {
            schema["type"] != "string"
                || !schema["maxLength"].is_null()
                || schema["pattern"].as_str().is_some_and(|pattern| pattern.ends_with('$'))
        })
    };
    assert_eq!(failing(bounded), [""; 0]);
}
