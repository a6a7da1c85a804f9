//! `toolcrib stats`: statistics of the tools of running servers.

use clap::Args;
use comfy_table::{CellAlignment, Table, presets};
use serde_json::Value;
use toolcrib::servers::OwnerClient;

use super::ask_servers::{WHICH, each, list, text};
use crate::Exit;
use crate::options::{JsonOutput, Options};

#[derive(Debug, Args)]
#[command(after_help = WHICH)]
pub(crate) struct StatsOptions {
    #[command(flatten)]
    output: JsonOutput,
}

pub(in crate::command) fn run(options: &Options, own: &StatsOptions) -> anyhow::Result<Exit> {
    each(
        options,
        own.output,
        &async |server: &OwnerClient| server.get("/v1/stats").await,
        stats_page,
    )
}

fn stats_page(answer: &Value) -> String {
    let tools = list(answer, "tools");
    if tools.is_empty() {
        return "  nothing has been called".to_owned();
    }
    let (unit, seconds_of_unit) = unit(&tools);
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header([
        "  TOOL",
        "CALLS",
        "FAILED",
        "REFUSED",
        "DENIED",
        "TIMEOUTS",
        "CACHED",
        "RUNNING",
        &format!("AVG {unit}"),
        &format!("P50 {unit}"),
        &format!("P99 {unit}"),
    ]);
    for tool in &tools {
        let number = |key: &str| tool[key].to_string();
        let time = |key: &str| {
            let seconds = tool[key].as_f64();
            seconds.map_or_else(|| "-".to_owned(), |time| digits(time / seconds_of_unit))
        };
        table.add_row([
            format!("  {}", text(&tool["tool"])),
            number("executions"),
            number("failures"),
            number("refused"),
            number("denied"),
            number("timeouts"),
            number("cache_hits"),
            number("in_flight"),
            time("average_seconds"),
            time("p50_seconds"),
            time("p99_seconds"),
        ]);
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if index > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// The unit of all durations in the table, in seconds: milliseconds, unless an average is ten
/// seconds or more.
fn unit(tools: &[&Value]) -> (&'static str, f64) {
    let averages = tools.iter().filter_map(|tool| tool["average_seconds"].as_f64());
    if averages.fold(0.0, f64::max) >= 10.0 { ("s", 1.0) } else { ("ms", 1e-3) }
}

/// The number with two decimal places.
fn digits(number: f64) -> String {
    // A duration is never displayed as zero.
    if number > 0.0 && number < 0.01 { "<0.01".to_owned() } else { format!("{number:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_column_of_durations_has_one_unit() {
        let tool = |name: &str, seconds: f64| {
            json!({
                "tool": name, "executions": 7, "failures": 1, "refused": 2, "denied": 3, "timeouts": 0,
                "cache_hits": 0, "in_flight": 0, "average_seconds": seconds, "p50_seconds": seconds,
                "p99_seconds": null,
            })
        };
        let page = stats_page(&json!({"tools": [tool("fast", 0.000_001_9), tool("slow", 2.5)]}));
        let rows: Vec<Vec<&str>> = page
            .lines()
            .map(|line| line.split("  ").filter(|cell| !cell.is_empty()).collect())
            .collect();
        let trimmed = |row: usize| rows[row].iter().map(|cell| cell.trim()).collect::<Vec<_>>();
        assert_eq!(trimmed(0)[..5], ["TOOL", "CALLS", "FAILED", "REFUSED", "DENIED"]);
        assert_eq!(trimmed(0)[8..], ["AVG ms", "P50 ms", "P99 ms"]);
        assert_eq!(trimmed(1)[..5], ["fast", "7", "1", "2", "3"]);
        assert_eq!(trimmed(1)[8..], ["<0.01", "<0.01", "-"]);
        assert_eq!(trimmed(2)[8..], ["2500.00", "2500.00", "-"]);
        let page = stats_page(&json!({"tools": [tool("slow", 40.0)]}));
        assert!(page.contains("P50 s") && page.contains("40.00"), "{page}");
    }
}
