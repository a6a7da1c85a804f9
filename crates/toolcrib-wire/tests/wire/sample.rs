//! Catalogues of foreign tools.

use std::path::Path;

use serde_json::Value;

/// One tool of a catalogue.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) schema: Value,
}

impl Row {
    pub(crate) fn declaration(&self) -> (&str, &str, &Value) {
        (&self.name, &self.description, &self.schema)
    }
}

/// The sample beside the tests: ordinary tools, and every unusual form of tools.
pub(crate) fn sample() -> Vec<Row> {
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/sample_catalog.jsonl"))
}

/// The catalogue that the variable `TOOLCRIB_CATALOG` names (JSON lines of `name`, `description`
/// and `input_schema`); without it, the sample.
pub(crate) fn catalogue() -> Vec<Row> {
    match std::env::var_os("TOOLCRIB_CATALOG") {
        Some(path) => read(Path::new(&path)),
        None => sample(),
    }
}

fn read(path: &Path) -> Vec<Row> {
    let text = std::fs::read_to_string(path)
        .unwrap_or_else(|error| panic!("{} cannot be read: {error}", path.display()));
    text.lines()
        .map(|line| {
            let row: Value = serde_json::from_str(line).unwrap();
            let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
            Row {
                name: text("name"),
                description: text("description"),
                schema: row["input_schema"].clone(),
            }
        })
        .collect()
}
