//! The committed seeds of every fuzz target, run without a fuzzer.

use std::fs;
use std::path::Path;

use toolcrib_testkit::fuzzing::TARGETS;

/// As many as make a set of seeds worth its name.
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
            // Named before it runs: a panic below must say whose it is.
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

/// A manifest that the loader refuses early would leave most of the body above unused.
#[test]
fn the_good_manifests_among_the_seeds_are_good() {
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
