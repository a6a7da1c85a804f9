//! How a listing is laid out.

use std::io::IsTerminal as _;

use comfy_table::{ContentArrangement, Table, presets};

/// A table without lines.
pub(super) struct Columns(Table);

impl Columns {
    pub(super) fn new<const N: usize>(heads: [&str; N]) -> Self {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header(heads);
        Self(table)
    }

    /// The table with these rows, as text.
    pub(super) fn rows<T: Into<String>, const N: usize>(
        self,
        rows: impl Iterator<Item = [T; N]>,
    ) -> String {
        let Self(mut table) = self;
        for row in rows {
            table.add_row(row.map(Into::into));
        }
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        // On a terminal lines are folded to fit; in a file or a pipe each tool keeps its own line.
        if std::io::stdout().is_terminal()
            && let Some((terminal_size::Width(columns), _)) = terminal_size::terminal_size()
        {
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(columns);
        }
        table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    }
}

/// A description's first sentence: the rest is for `show`.
pub(super) fn gist(description: &str) -> &str {
    let line = description.lines().next().unwrap_or_default();
    line.find(". ").map_or(line, |end| &line[..=end])
}
