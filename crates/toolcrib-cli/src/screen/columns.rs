//! Lays out tables.

use comfy_table::{ColumnConstraint, ContentArrangement, Table, presets};
use toolcrib::tool::fully_visible;

use crate::screen;

/// The minimum width to which a cell is shortened.
const MIN_WIDTH: usize = 24;
/// The number of spaces between columns.
const COLUMN_GAP: usize = 2;

/// How many columns are never broken.
const NAMES: usize = 2;

/// A table without lines.
pub(crate) struct Columns {
    heads: Vec<String>,
    shortened: Option<usize>,
}

impl Columns {
    pub(crate) fn new<const N: usize>(heads: [&str; N]) -> Self {
        Self { heads: heads.map(str::to_owned).to_vec(), shortened: None }
    }

    /// Shortens the cells of this column if lines would be wider than the screen, unless `wide` is
    /// set.
    pub(crate) fn shorten(mut self, column: usize, wide: bool) -> Self {
        self.shortened = Some(column).filter(|_| !wide);
        self
    }

    /// Formats the rows as a table. Control and invisible characters are escaped.
    pub(crate) fn rows<T: AsRef<str>, const N: usize>(
        self,
        rows: impl Iterator<Item = [T; N]>,
    ) -> String {
        self.rows_within(rows, screen::terminal_width())
    }

    /// The rows for a terminal of this width, if there is one.
    fn rows_within<T: AsRef<str>, const N: usize>(
        self,
        rows: impl Iterator<Item = [T; N]>,
        terminal: Option<usize>,
    ) -> String {
        let cell = |text: T| fully_visible(text.as_ref()).into_owned();
        let mut rows: Vec<Vec<String>> = rows.map(|row| row.map(cell).to_vec()).collect();
        if let Some(column) = self.shortened {
            fit(&self.heads, &mut rows, column, screen::width());
        }
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header(self.heads);
        table.add_rows(rows);
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        // In a file or a pipe, each row stays on one line.
        if self.shortened.is_none()
            && let Some(columns) = terminal
        {
            let columns = u16::try_from(columns).unwrap_or(u16::MAX);
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(columns);
            // The first columns have names and ids, which people copy.
            for column in table.column_iter_mut().take(NAMES) {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
        table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    }
}

/// Shortens the cells of a column so that lines fit into `width`, if possible.
fn fit(heads: &[String], rows: &mut [Vec<String>], column: usize, width: usize) {
    let length = |text: &String| text.chars().count();
    let widest = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at));
        cells.chain(heads.get(at)).map(length).max().unwrap_or_default()
    };
    let others: usize =
        (0..heads.len()).filter(|at| *at != column).map(|at| widest(at) + COLUMN_GAP).sum();
    let room = width.saturating_sub(others).max(MIN_WIDTH);
    for cell in rows.iter_mut().filter_map(|row| row.get_mut(column)) {
        if length(cell) > room {
            let kept: String = cell.chars().take(room - 1).collect();
            *cell = format!("{}\u{2026}", kept.trim_end());
        }
    }
    // Still too wide: keep the end of a position, which is the most informative part.
    let last = heads.len().saturating_sub(1);
    let before: usize = (0..last)
        .map(|at| {
            let cells = rows.iter().filter_map(|row| row.get(at));
            cells.chain(heads.get(at)).map(length).max().unwrap_or_default() + COLUMN_GAP
        })
        .sum();
    let room = width.saturating_sub(before).max(MIN_WIDTH / 2);
    for cell in rows.iter_mut().filter_map(|row| row.get_mut(last)).filter(|_| last != column) {
        let over = length(cell).saturating_sub(room);
        if over > 0 {
            *cell = format!("\u{2026}{}", cell.chars().skip(over + 1).collect::<String>());
        }
    }
}

/// The first sentence of a description; `show` has the rest.
pub(crate) fn gist(description: &str) -> &str {
    let line = description.lines().next().unwrap_or_default();
    line.find(". ").map_or(line, |end| &line[..=end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_description_is_shortened_to_the_width_and_other_cells_stay_whole() {
        let heads = ["NAME", "DESCRIPTION", "SOURCE"].map(str::to_owned);
        let mut rows = vec![
            ["a", &"word ".repeat(20), "tools.d/a.yaml:1"].map(str::to_owned).to_vec(),
            ["b", "Short.", "tools.d/b.yaml:1"].map(str::to_owned).to_vec(),
        ];
        fit(&heads, &mut rows, 1, 60);
        assert_eq!(rows[0][1], "word word word word word word word\u{2026}");
        assert_eq!(rows[1][1], "Short.");
        let line = rows[0].iter().map(|cell| cell.chars().count() + COLUMN_GAP).sum::<usize>();
        assert!(line - COLUMN_GAP <= 60, "{line}");
    }

    #[test]
    fn a_position_is_cut_at_its_start_when_the_description_is_too_short() {
        let heads = ["NAME", "DESCRIPTION", "SOURCE"].map(str::to_owned);
        let place = format!("/a/long/way/{}/tools.d/network.yaml:14", "down/".repeat(10));
        let mut rows =
            vec![["resolve_name", &"word ".repeat(20), &place].map(str::to_owned).to_vec()];
        fit(&heads, &mut rows, 1, 80);
        let line = rows[0].iter().map(|cell| cell.chars().count() + COLUMN_GAP).sum::<usize>();
        assert!(
            line - COLUMN_GAP <= 80 && rows[0][2].ends_with("tools.d/network.yaml:14"),
            "{rows:?}"
        );
    }

    #[test]
    fn an_id_stays_on_one_line_on_a_narrow_screen() {
        let id = "approval_0123456789abcdef0123456789abcdef";
        let rows = [[id, "restart_service", "client:deploy", "9 min 58 s", "{\"unit\":\"nginx\"}"]];
        let heads = ["ID", "TOOL", "ASKED BY", "EXPIRES IN", "ARGUMENTS"];
        let table = Columns::new(heads).rows_within(rows.into_iter(), Some(80));
        assert!(table.lines().any(|line| line.starts_with(id)), "{table}");
        assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    }

    #[test]
    fn cells_contain_no_control_characters() {
        let rows = [["a\u{1b}[2K\u{9b}0m\u{202e}b\nc"]].into_iter();
        let table = Columns::new(["NAME"]).rows(rows);
        assert_eq!(table.lines().nth(1), Some(r"a\u{1b}[2K\u{9b}0m\u{202e}b\nc"));
    }
}
