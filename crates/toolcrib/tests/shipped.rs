//! The shipped manifests: no complaint of any kind, and every test in them holds.
#![cfg(feature = "manifests")]
#![cfg_attr(
    feature = "manifests",
    expect(clippy::expect_used, reason = "a test that cannot be set up fails")
)]

use std::path::Path;

use toolcrib::Toolcrib;
use toolcrib::manifest_tests::{TestOptions, TestOutcome, run_tests};
use toolcrib::manifests::Manifests;
use toolcrib::runners::RunnerHost;

fn shipped() -> Manifests {
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the root");
    Manifests::load(&[root.join("tools.d")], RunnerHost::new(&root))
}

#[test]
fn nothing_is_wrong_with_the_shipped_manifests() {
    let manifests = shipped();
    let problems: Vec<_> = manifests.files().problems().map(|(_, problem)| problem).collect();
    assert!(problems.is_empty(), "{problems:#?}");
    assert!(manifests.files().declarations().count() >= 16);
}

#[test]
fn every_shipped_tool_teaches_and_is_tested() {
    let manifests = shipped();
    for declaration in manifests.files().declarations() {
        let definition = &declaration.definition;
        let name = definition.name();
        assert!(definition.annotations().read_only, "{name} says what it does to the world");
        assert!(definition.timeout().is_some(), "{name} states its time limit");
        let named = declaration.http().is_some() || !declaration.needs.bins.is_empty();
        assert!(named, "{name} says what it needs");
        let takes_arguments = definition.input_schema()["properties"]
            .as_object()
            .is_some_and(|properties| !properties.is_empty());
        assert!(
            !takes_arguments || !definition.input_examples().is_empty(),
            "{name} has an example"
        );
        assert!(!declaration.tests.is_empty(), "{name} has a test");
    }
}

#[test]
fn every_shipped_tool_that_asks_a_server_is_tested_with_a_recorded_answer() {
    let manifests = shipped();
    let mut asking = manifests.files().declarations().filter(|tool| tool.http().is_some());
    assert!(asking.all(|tool| tool.tests.iter().any(|test| test.answer.is_some())));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tests_in_the_shipped_manifests_hold() {
    let manifests = shipped();
    let crib = Toolcrib::builder().entries(manifests.entries()).build().expect("a crib");
    let tools = manifests.files().declarations();
    let reports = run_tests(crib.executor(), tools, TestOptions::default()).await;
    let (mut ran, mut failures) = (0, Vec::new());
    for report in &reports {
        match &report.outcome {
            // Its program is not on this machine: said here, and counted as not run.
            TestOutcome::Skipped(reason) => println!("not run: {}: {reason}", report.tool),
            TestOutcome::Passed => ran += 1,
            failed => {
                ran += 1;
                failures.push(format!("{} / {}: {failed:#?}", report.tool, report.name));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(ran >= 20, "only {ran} tests could run here");
}
