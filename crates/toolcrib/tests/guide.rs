//! What the guide promises of its examples.
#![expect(clippy::expect_used, reason = "a test that cannot be set up fails")]

use std::fs;
use std::path::Path;

/// The most lines that an example of the page of five tasks shows.
const LINES: usize = 15;

/// A file of a page.
fn part_of(page: &str, name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/docs/guide").join(page);
    fs::read_to_string(folder.join(name)).expect("it is part of the page")
}

/// A file of the page of five tasks.
fn part(name: &str) -> String {
    part_of("five_tasks", name)
}

/// The lines that a page shows of its example.
fn shown(page: &str) -> String {
    let code = page.split("```").nth(1).expect("it has an example");
    let is_hidden = |line: &&str| *line == "#" || line.starts_with("# ");
    code.lines().filter(|line| !is_hidden(line)).fold(String::new(), |all, line| all + line + "\n")
}

fn check(name: &str, code: &str) {
    let lines = code.lines().filter(|line| !line.trim().is_empty()).count();
    assert!((1..=LINES).contains(&lines), "{name}: {lines} lines");
    assert!(code.lines().all(|line| line.chars().count() <= 100), "{name}: a long line");
}

#[test]
fn each_of_the_five_tasks_takes_at_most_15_lines_and_so_does_its_like_in_rmcp() {
    for name in ["register", "identity", "batch", "approve", "stream"] {
        check(name, &shown(&part(&format!("{name}.md"))));
    }
    for name in ["register", "identity", "batch", "stream"] {
        check(name, &part(&format!("rmcp/{name}.rs")));
    }
}

#[test]
fn an_agent_runs_in_ten_lines_and_shows_what_it_does_in_fifteen() {
    for (name, limit) in [("run", 10), ("stream", LINES), ("test", LINES)] {
        let code = shown(&part_of("agents", &format!("{name}.md")));
        check(name, &code);
        let lines = code.lines().skip(1).filter(|line| !line.trim().is_empty()).count();
        assert!(lines <= limit, "{name}: {lines} lines");
    }
}
