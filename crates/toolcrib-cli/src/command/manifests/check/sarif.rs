//! Writes SARIF 2.1.0, which code scanning services and editors read.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Component, Path};

use serde_json::{Value, json};
use toolcrib::manifest::directory::FileLoad;
use toolcrib::manifest::{Code, Diagnostic, Severity};
use toolcrib::tool::Origin;

use super::report::Report;

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
/// The page with a section for every diagnostic.
const PAGE: &str = concat!(
    env!("CARGO_PKG_REPOSITORY"),
    "/blob/main/crates/toolcrib-manifest/src/docs/diagnostics.md"
);

/// The whole log: one run with the violated rules and one result per problem.
pub(super) fn log(report: &Report<'_>) -> Value {
    let codes: BTreeSet<&str> = report.problems().map(|(_, problem)| problem.code).collect();
    let codes: Vec<&str> = codes.into_iter().collect();
    let results: Vec<Value> = report
        .values()
        .map(|(file, problem, place)| {
            let index = codes.binary_search(&problem.code).unwrap_or_default();
            result(file, problem, &place, index)
        })
        .collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "toolcrib",
                "version": env!("CARGO_PKG_VERSION"),
                "informationUri": env!("CARGO_PKG_REPOSITORY"),
                "rules": codes.iter().map(|code| rule(code)).collect::<Vec<Value>>(),
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn rule(code: &str) -> Value {
    let mut rule = json!({"id": code});
    if let Some(known) = Code::find(code) {
        rule["shortDescription"] = json!({"text": known.summary});
        rule["help"] = json!({"text": known.help});
        rule["helpUri"] = json!(format!("{PAGE}#{code}"));
        rule["defaultConfiguration"] = json!({"level": level(known.severity)});
    }
    rule
}

/// `place` is the problem in the JSON report, whose lines and columns start at 1, as in SARIF.
fn result(file: &FileLoad, problem: &Diagnostic, place: &Value, index: usize) -> Value {
    let mut text = problem.message.clone();
    if let Some(help) = &problem.help {
        text.push_str("\nhelp: ");
        text.push_str(help);
    }
    let mut result = json!({
        "ruleId": problem.code,
        "ruleIndex": index,
        "level": level(problem.severity),
        "message": {"text": text},
        "locations": [{"physicalLocation": {
            "artifactLocation": {"uri": uri(&file.path)},
            "region": {
                "startLine": place["line"],
                "startColumn": place["column"],
                "endLine": place["end_line"],
                "endColumn": place["end_column"],
            },
        }}],
    });
    if !problem.related.is_empty() {
        result["relatedLocations"] = problem.related.iter().map(related).collect();
    }
    result
}

fn related((place, what): &(Origin, String)) -> Value {
    let mut location = json!({"artifactLocation": {"uri": uri(Path::new(&place.file))}});
    if place.line > 0 {
        location["region"] = json!({"startLine": place.line, "startColumn": place.column.max(1)});
    }
    json!({"physicalLocation": location, "message": {"text": what}})
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Hint => "note",
    }
}

/// A path as a URI: relative to the working directory if possible, as scanners expect.
fn uri(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let below = path.strip_prefix(&here).unwrap_or(path);
    let parts: Vec<String> = below
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(escaped(&name.to_string_lossy())),
            Component::ParentDir => Some("..".to_owned()),
            Component::RootDir | Component::Prefix(_) | Component::CurDir => None,
        })
        .collect();
    let path = parts.join("/");
    if below.is_absolute() { format!("file:///{path}") } else { path }
}

/// Percent-encodes characters that a URI path cannot contain.
fn escaped(name: &str) -> String {
    let mut shown = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            shown.push(char::from(byte));
        } else {
            let _ = write!(shown, "%{byte:02X}");
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_relative_uris_where_they_can() {
        let here = std::env::current_dir().unwrap();
        for (path, expected) in [
            ("tools.d/a b.yaml".into(), "tools.d/a%20b.yaml"),
            ("./tools.d/ä#.yaml".into(), "tools.d/%C3%A4%23.yaml"),
            ("../x.yaml".into(), "../x.yaml"),
            (here.join("tools.d/x.yaml"), "tools.d/x.yaml"),
            ("/etc/toolcrib/x.yaml".into(), "file:///etc/toolcrib/x.yaml"),
        ] {
            let path: std::path::PathBuf = path;
            assert_eq!(uri(&path), expected);
        }
    }
}
