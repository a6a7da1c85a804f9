//! The log for code scanning services, validated with the schema of the standard.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::harness::crib::Crib;
use crate::manifests::checks::crib;

/// The problems of a log according to the standard's schema (`sarif/README.md`).
fn problems(log: &Value) -> Vec<String> {
    let schema = include_str!("sarif/sarif-schema-2.1.0.json");
    // An unbalanced bracket: as published, most readers reject this regular expression.
    let mended = schema.replace("{2}]?$", "{2}\\\\]?$");
    let schema: Value = serde_json::from_str(&mended).expect("a schema");
    let validator = jsonschema::validator_for(&schema).expect("a schema that can be used");
    let found = validator.iter_errors(log);
    found.map(|error| format!("{}: {error}", error.instance_path())).collect()
}

#[test]
fn the_log_of_every_broken_manifest_fits_the_schema_and_explains_its_rules() {
    let gallery = Path::new(env!("CARGO_MANIFEST_DIR")).join("../toolcrib-manifest/tests/gallery");
    let crib = Crib::new(&[]);
    let mut command = crib.command(&["check", "--format", "sarif"]);
    let files = std::fs::read_dir(&gallery).expect("the gallery");
    let mut files: Vec<_> = files
        .map(|file| file.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "yaml" || ending == "toml"))
        .collect();
    files.sort();
    assert!(files.len() > 40, "{}", files.len());
    let log = crate::harness::crib::run(command.args(files)).json();
    assert_eq!(problems(&log), [""; 0]);
    let run = &log["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().expect("rules");
    assert!(rules.len() > 40, "{}", rules.len());
    for rule in rules {
        assert!(rule["help"]["text"].is_string(), "{rule}");
    }
    let broken = serde_json::json!({"version": "2.1.0", "runs": [{"results": []}]});
    assert_ne!(problems(&broken), [""; 0], "the schema says something");
}

#[test]
fn the_log_of_nothing_fits_the_schema_too() {
    let crib = Crib::new(&[]);
    let log = crib.run(&["check", "--format", "sarif"]).json();
    assert_eq!(problems(&log), [""; 0]);
}

#[test]
fn the_sarif_log_keeps_to_the_rules_of_the_format() {
    let run = crib().run(&["check", "--format", "sarif"]);
    assert_eq!(run.stderr, "");
    let log = run.json();
    assert_eq!(log["version"], "2.1.0");
    assert_eq!(log["$schema"], "https://json.schemastore.org/sarif-2.1.0.json");
    let runs = log["runs"].as_array().expect("runs");
    let [run] = runs.as_slice() else { panic!("one run: {runs:?}") };
    assert_eq!(run["columnKind"], "unicodeCodePoints");
    let driver = &run["tool"]["driver"];
    assert_eq!(driver["name"], "toolcrib");
    let rules: Vec<&str> = driver["rules"]
        .as_array()
        .expect("rules")
        .iter()
        .map(|rule| {
            assert!(rule["shortDescription"]["text"].is_string(), "{rule}");
            assert!(rule["help"]["text"].is_string(), "{rule}");
            let page = rule["helpUri"].as_str().expect("a page");
            assert!(page.ends_with(&format!("#{}", rule["id"].as_str().expect("an id"))), "{page}");
            rule["id"].as_str().expect("an id")
        })
        .collect();
    assert_eq!(rules.iter().collect::<BTreeSet<_>>().len(), rules.len(), "each rule once");
    let results = run["results"].as_array().expect("results");
    assert!(results.len() >= 4, "{results:#?}");
    for result in results {
        let index =
            usize::try_from(result["ruleIndex"].as_u64().expect("an index")).expect("small");
        assert_eq!(
            Some(&result["ruleId"].as_str().expect("an id")),
            rules.get(index).as_ref().map(|id| *id)
        );
        let level = result["level"].as_str().expect("a level");
        assert!(["error", "warning", "note"].contains(&level), "{level}");
        assert!(!result["message"]["text"].as_str().expect("a text").is_empty());
        let related = result["relatedLocations"].as_array().cloned().unwrap_or_default();
        for location in result["locations"].as_array().expect("places").iter().chain(&related) {
            check_location(&location["physicalLocation"]);
        }
    }
    let shadowed = results.iter().find(|found| found["ruleId"] == "shadowed-name").expect("found");
    let place = &shadowed["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "tools.d/b%20c.yaml");
}

/// Columns and lines count from 1, ends are no earlier than starts, and URIs are relative.
fn check_location(place: &Value) {
    let uri = place["artifactLocation"]["uri"].as_str().expect("a uri");
    assert!(!uri.starts_with('/') && !uri.contains([':', ' ', '\\']), "{uri}");
    let number = |key: &str| place["region"][key].as_u64();
    let (line, column) =
        (number("startLine").expect("a line"), number("startColumn").expect("one"));
    assert!(line >= 1 && column >= 1);
    if let (Some(end_line), Some(end_column)) = (number("endLine"), number("endColumn")) {
        assert!((end_line, end_column) >= (line, column), "{place}");
    }
}
