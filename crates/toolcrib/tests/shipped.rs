//! The shipped manifests: no complaint of any kind, and every test in them holds.
#![cfg(feature = "manifests")]
#![cfg_attr(
    feature = "manifests",
    expect(clippy::expect_used, reason = "a test that cannot be set up fails")
)]

use std::path::{Path, PathBuf};

use toolcrib::Toolcrib;
use toolcrib::manifest_tests::run_test;
use toolcrib::manifests::Manifests;
use toolcrib::runners::RunnerHost;

fn shipped() -> (PathBuf, Manifests) {
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the root");
    let manifests = Manifests::load(&[root.join("tools.d")], RunnerHost::new(&root));
    (root, manifests)
}

#[test]
fn nothing_is_wrong_with_the_shipped_manifests() {
    let (_, manifests) = shipped();
    let problems: Vec<_> = manifests.files().problems().map(|(_, problem)| problem).collect();
    assert!(problems.is_empty(), "{problems:#?}");
    assert!(manifests.files().declarations().count() >= 16);
}

#[test]
fn every_shipped_tool_teaches_and_is_tested() {
    let (_, manifests) = shipped();
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

#[tokio::test(flavor = "multi_thread")]
async fn the_tests_in_the_shipped_manifests_hold() {
    let (root, manifests) = shipped();
    let host = RunnerHost::new(&root);
    let crib = Toolcrib::builder().entries(manifests.entries()).build().expect("a crib");
    let mut ran = 0;
    let mut failures = Vec::new();
    for declaration in manifests.files().declarations() {
        if crib.turn().describe(declaration.definition.name()).is_none() {
            // Its program is not on this machine: said here, and counted as not run.
            println!("not run: {} is unavailable here", declaration.definition.name());
            continue;
        }
        for test in &declaration.tests {
            ran += 1;
            if let Err(problems) = run_test(crib.executor(), &host, declaration, test).await {
                failures.push(format!(
                    "{} / {}: {problems:#?}",
                    declaration.definition.name(),
                    test.name
                ));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(ran >= 20, "only {ran} tests could run here");
}
