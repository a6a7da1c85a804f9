//! The committed seeds of every fuzz target, run without a fuzzer.

use std::fs;
use std::path::Path;

use toolcrib_testkit::fuzzing::TARGETS;

/// Every target must have at least this many seeds.
const FEWEST_SEEDS: usize = 20;

#[test]
fn every_seed_of_every_target_keeps_the_promises() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    for (target, body) in TARGETS {
        let folder = seeds.join(target);
        let mut files: Vec<_> = fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
            .map(|entry| entry.expect("a directory entry").path())
            .collect();
        files.sort();
        assert!(files.len() >= FEWEST_SEEDS, "{target} has {} seeds", files.len());
        for file in files {
            // Printed before it runs, so that a panic below shows which seed it is.
            println!("{target}: {}", file.display());
            body(&fs::read(&file).expect("a readable seed"));
        }
    }
}

#[test]
fn every_target_takes_what_is_no_text_at_all() {
    for (_, body) in TARGETS {
        body(b"");
        body(b"\xff\xfe{\x00}");
        body("\u{feff}{}".as_bytes());
    }
}

/// If the loader refused a manifest early, most of the target's body would stay untested.
#[test]
fn the_good_manifest_seeds_load_without_errors() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/load_manifest");
    for file in [
        "minimal.yaml",
        "full.yaml",
        "policies.yaml",
        "policies.toml",
        "toml_minimal.toml",
        "toml_full.toml",
    ] {
        let text = fs::read_to_string(folder.join(file)).expect("a readable seed");
        let loaded = toolcrib_manifest::load_str(file, &text);
        let problems: Vec<_> =
            loaded.diagnostics.iter().map(|found| found.render(file, &text, false)).collect();
        assert!(!loaded.declarations.is_empty(), "{}", problems.join("\n"));
    }
}
