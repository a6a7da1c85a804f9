//! Programs in a file, each after a line with a word and a name.

/// One program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    /// The word before the colon.
    pub(crate) word: &'static str,
    /// The text after the colon.
    pub(crate) name: &'static str,
    /// The lines after it.
    pub(crate) text: &'static str,
}

/// All programs of a file, in order.
pub(crate) fn entries(file: &'static str) -> Vec<Entry> {
    let parts = file.split("\n### ").skip(1);
    parts
        .map(|part| {
            let (head, text) = part.split_once('\n').expect("a program stands below its name");
            let (word, name) = head.split_once(": ").expect("a name stands behind a word");
            Entry { word, name, text }
        })
        .collect()
}
