//! The results of all rows, as text: a table of goals, and every row that was reached or skipped.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::dimensions::{Goal, Row};
use crate::run::Verdict;

/// The rows of one goal, counted.
#[derive(Default)]
struct Count {
    reached: usize,
    held: usize,
    skipped: usize,
    by: BTreeSet<&'static str>,
}

/// The whole report.
pub(crate) fn text(verdicts: &[(Row, Verdict)]) -> String {
    let mut goals: BTreeMap<Goal, Count> = BTreeMap::new();
    let mut reached: BTreeMap<String, (usize, String)> = BTreeMap::new();
    let mut skipped: BTreeMap<String, usize> = BTreeMap::new();
    for (row, verdict) in verdicts {
        let count = goals.entry(row.goal).or_default();
        match verdict {
            Verdict::Held => count.held += 1,
            Verdict::Reached(damage) => {
                count.reached += 1;
                count.by.insert(row.tool.name());
                let entry = reached.entry(row.attack()).or_insert_with(|| {
                    let shown: Vec<_> = damage.iter().take(4).cloned().collect();
                    (0, format!("{}: {}", row.name(), shown.join("; ")))
                });
                entry.0 += 1;
            }
            Verdict::Skipped(reason) => {
                count.skipped += 1;
                *skipped.entry(reason.clone()).or_default() += 1;
            }
        }
    }
    let mut text = String::from("goal                     reached   held  skipped  reached by\n");
    for (goal, count) in &goals {
        let by = count.by.iter().copied().collect::<Vec<_>>().join(" ");
        let _ = writeln!(
            text,
            "{:<24} {:>7} {:>6} {:>8}  {by}",
            goal.name(),
            count.reached,
            count.held,
            count.skipped
        );
    }
    if !reached.is_empty() {
        text.push_str("\nreached (attack, rows, the first of them and what was seen)\n");
    }
    for (count, first) in reached.values() {
        let _ = writeln!(text, "  {count:>4} x {first}");
    }
    if !skipped.is_empty() {
        text.push_str("\nskipped (rows, why)\n");
    }
    for (reason, count) in &skipped {
        let _ = writeln!(text, "  {count:>4} x {}", reason.replace('\n', " "));
    }
    let held = goals.values().map(|count| count.held).sum::<usize>();
    let missed = goals.values().map(|count| count.skipped).sum::<usize>();
    let failed = verdicts.len() - held - missed;
    let _ = writeln!(
        text,
        "\n{} rows: {failed} reached, {held} held, {missed} skipped",
        verdicts.len()
    );
    text
}
