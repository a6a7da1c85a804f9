//! `toolcrib stats`: statistics of the tools of running servers.

use clap::Args;
use comfy_table::{CellAlignment, Table, presets};
use serde_json::Value;
use toolcrib::servers::OwnerClient;

use super::ask_servers::{WHICH, each, list, text};
use crate::Exit;
use crate::options::{JsonOutput, Options};
use crate::screen;

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

/// The minimum width to which names are shortened, with their indentation.
const NAME_MIN: usize = 12;
/// The number of spaces between columns.
const COLUMN_GAP: usize = 2;

fn stats_page(answer: &Value) -> String {
    page_within(answer, screen::terminal_width())
}

/// The page for a screen of this width, if there is one.
fn page_within(answer: &Value, width: Option<usize>) -> String {
    let tools = list(answer, "tools");
    if tools.is_empty() {
        return "  nothing has been called".to_owned();
    }
    let mut columns = columns(&tools);
    if let Some(width) = width {
        fit(&mut columns, width);
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(columns.iter().map(|column| column.head.as_str()));
    for row in 0..tools.len() {
        table.add_row(columns.iter().map(|column| column.cells[row].as_str()));
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if index > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// A column of the table.
struct Column {
    head: String,
    /// A shorter head, for a narrow screen.
    short: &'static str,
    cells: Vec<String>,
}

impl Column {
    fn width(&self) -> usize {
        let length = |text: &String| text.chars().count();
        self.cells.iter().chain([&self.head]).map(length).max().unwrap_or_default()
    }
}

fn columns(tools: &[&Value]) -> Vec<Column> {
    let (unit, seconds_of_unit) = unit(tools);
    let names = tools.iter().map(|tool| format!("  {}", text(&tool["tool"]))).collect();
    let mut columns = vec![Column { head: "  TOOL".to_owned(), short: "  TOOL", cells: names }];
    for (head, short, key) in [
        ("CALLS", "CALLS", "executions"),
        ("FAILED", "FAIL", "failures"),
        ("REFUSED", "REF", "refused"),
        ("DENIED", "DEN", "denied"),
        ("TIMEOUTS", "TIME", "timeouts"),
        ("CACHED", "HITS", "cache_hits"),
        ("RUNNING", "RUN", "in_flight"),
    ] {
        let cells = tools.iter().map(|tool| tool[key].to_string()).collect();
        columns.push(Column { head: head.to_owned(), short, cells });
    }
    for (head, key) in [("AVG", "average_seconds"), ("P50", "p50_seconds"), ("P99", "p99_seconds")]
    {
        let time = |tool: &&Value| {
            let seconds = tool[key].as_f64();
            seconds.map_or_else(|| "-".to_owned(), |time| digits(time / seconds_of_unit))
        };
        let cells = tools.iter().map(time).collect();
        columns.push(Column { head: format!("{head} {unit}"), short: "", cells });
    }
    columns
}

/// Makes the table as narrow as the screen, if possible: leaves out columns that are zero for every tool, then
/// shortens heads, then names.
fn fit(columns: &mut Vec<Column>, width: usize) {
    let over = |columns: &[Column]| {
        let gaps = COLUMN_GAP * columns.len().saturating_sub(1);
        (columns.iter().map(Column::width).sum::<usize>() + gaps).saturating_sub(width)
    };
    if over(columns) > 0 {
        columns.retain(|column| !column.cells.iter().all(|cell| cell == "0"));
    }
    if over(columns) > 0 {
        for column in columns.iter_mut().filter(|column| !column.short.is_empty()) {
            column.head = column.short.to_owned();
        }
    }
    let over = over(columns);
    let Some(names) = columns.first_mut().filter(|_| over > 0) else { return };
    let room = names.width().saturating_sub(over).max(NAME_MIN);
    for name in names.cells.iter_mut().filter(|name| name.chars().count() > room) {
        let kept: String = name.chars().take(room - 1).collect();
        *name = format!("{kept}\u{2026}");
    }
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
        let page =
            page_within(&json!({"tools": [tool("fast", 0.000_001_9), tool("slow", 2.5)]}), None);
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
        let page = page_within(&json!({"tools": [tool("slow", 40.0)]}), None);
        assert!(page.contains("P50 s") && page.contains("40.00"), "{page}");
    }
    #[test]
    fn statistics_fit_a_screen_of_eighty_columns() {
        let tool = |name: &str, many: u64| {
            json!({
                "tool": name, "executions": 120_000, "failures": many, "refused": many, "denied": many,
                "timeouts": many, "cache_hits": many, "in_flight": many, "average_seconds": 2.5,
                "p50_seconds": 2.5, "p99_seconds": 9.75,
            })
        };
        let widest = |page: &str| page.lines().map(|line| line.chars().count()).max();
        let name = "tickets_search_all_open_tickets_of_a_team";
        let usual = json!({"tools": [tool("get_weather", 0), tool(name, 0)]});
        let page = page_within(&usual, Some(80));
        assert!(widest(&page) <= Some(80) && !page.contains("DENIED"), "{page}");
        assert!(page.contains("get_weather") && page.contains("9750.00"), "{page}");
        let page = page_within(&json!({"tools": [tool(name, 12)]}), Some(80));
        assert!(widest(&page) <= Some(80) && page.contains("DEN"), "{page}");
        assert!(page.contains('\u{2026}'), "{page}");
        let page = page_within(&usual, None);
        assert!(
            page.contains("DENIED") && page.contains(name),
            "nothing is left out in a pipe: {page}"
        );
    }
}
