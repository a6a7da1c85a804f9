//! What the guide promises of its examples.

use std::fs;
use std::path::Path;

/// The most lines that an example of the page of five tasks shows.
const LINES: usize = 15;

fn five_tasks() -> impl Iterator<Item = (String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/docs/guide/five_tasks");
    let names = ["register", "identity", "batch", "approve", "stream"];
    let ours = names.map(|name| format!("{name}.md"));
    let theirs = ["register", "identity", "batch", "stream"].map(|name| format!("rmcp/{name}.rs"));
    ours.into_iter().chain(theirs).map(move |name| {
        let text = fs::read_to_string(folder.join(&name));
        (name, text.expect("it is part of the page"))
    })
}

#[test]
fn each_of_the_five_tasks_takes_at_most_15_lines() {
    for (name, text) in five_tasks() {
        let is_page = name.ends_with(".md");
        let mut is_code = !is_page;
        let mut lines = 0;
        for line in text.lines() {
            if line.starts_with("```") {
                is_code = !is_code;
            } else if is_code
                && !line.trim().is_empty()
                && !(is_page && (line == "#" || line.starts_with("# ")))
            {
                lines += 1;
                assert!(line.chars().count() <= 100, "{name}: a line of more than 100: {line}");
            }
        }
        assert!(lines > 0 && lines <= LINES, "{name}: {lines} lines");
    }
}
