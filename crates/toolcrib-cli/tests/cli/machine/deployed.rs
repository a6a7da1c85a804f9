//! What is shipped for deployments fits the program: unit, alerts, dashboard, Kubernetes, the site's table of contents.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::crib::Crib;
use crate::harness::http::Http;

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn text(path: &str) -> String {
    fs::read_to_string(repository(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The names of metrics in a text; a histogram's buckets are the histogram.
fn metrics(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let named = words.filter(|word| word.starts_with("toolcrib_"));
    named.map(|word| word.trim_end_matches("_bucket")).collect()
}

#[test]
fn every_metric_of_the_alerts_and_the_dashboard_exists() {
    let crib = Crib::new(&[]);
    let server = Http::start(&crib, "");
    let real = server.ask("GET /metrics", None).body;
    let types = real.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let real: BTreeSet<&str> = types.filter_map(|line| line.split(' ').next()).collect();
    for file in ["deploy/prometheus/alerts.yml", "deploy/grafana/toolcrib.json"] {
        let text = text(file);
        let named = metrics(&text);
        assert!(named.len() > 5, "{file}: {named:?}");
        let unknown: Vec<_> = named.difference(&real).collect();
        assert!(unknown.is_empty(), "{file} names metrics that there are not: {unknown:?}");
    }
}

#[test]
fn no_line_of_the_shipped_unit_takes_a_promise_away() {
    let crib = Crib::new(&[]);
    let unit = repository("release/linux/toolcrib.service");
    let run = crib.run(&["doctor", "--unit", unit.to_str().expect("a path")]);
    assert!(run.code == Some(0) && run.stdout.contains("good"), "{run:?}");
}

#[test]
fn shipped_settings_and_manifests_can_be_used() {
    let crib = Crib::new(&[]);
    for config in ["release/linux/config.yml", "deploy/kubernetes/config.yml"] {
        let config = repository(config);
        let run = crib.run(&["config", "show", "--config", config.to_str().expect("a path")]);
        assert_eq!(run.code, Some(0), "{run:?}");
    }
    let manifest = repository("deploy/kubernetes/tools.yaml");
    let run = crib.run(&["check", "--strict", manifest.to_str().expect("a path")]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
}

#[test]
fn what_is_shipped_names_this_version() {
    let version = env!("CARGO_PKG_VERSION");
    let server = text("release/server.json");
    assert_eq!(server.matches(&format!("\"version\": \"{version}\"")).count(), 3, "{server}");
    for file in ["deploy/compose/compose.yml", "deploy/kubernetes/kustomization.yaml"] {
        assert!(text(file).contains(&format!("{version}-tools")), "{file}");
    }
}

#[test]
fn the_table_of_contents_has_every_page() {
    let summary = text("docs/SUMMARY.md");
    for entry in fs::read_dir(repository("docs")).expect("a folder").flatten() {
        let name = entry.file_name().into_string().expect("UTF-8");
        let is_page =
            name != "SUMMARY.md" && entry.path().extension().is_some_and(|end| end == "md");
        assert!(!is_page || summary.contains(&format!("({name})")), "{name} is not in SUMMARY.md");
    }
    for link in summary.split('(').skip(1).filter_map(|rest| rest.split(')').next()) {
        assert!(repository("docs").join(link).exists(), "{link}");
    }
}
