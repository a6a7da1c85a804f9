//! Tools that lie ready beside those that are loaded.

use std::path::PathBuf;

use serde_json::{Value, json};
use toolcrib::manifest::directory::{catalogue, load_dirs};

use crate::screen::{FAINT, count};
use crate::startup::Started;

/// The catalogues of the config's directories, each with the number of its tools.
fn catalogues(started: &Started) -> impl Iterator<Item = (PathBuf, usize)> {
    let folders = started.config.manifests.dirs.iter().filter_map(|dir| catalogue(dir));
    folders.map(|folder| {
        let tools = load_dirs(std::slice::from_ref(&folder)).declarations().count();
        (folder, tools)
    })
}

/// A line for each catalogue.
pub(super) fn lines(started: &Started) -> impl Iterator<Item = String> {
    catalogues(started).map(|(folder, tools)| {
        format!(
            "{FAINT}{} in {}: `toolcrib enable` lists and loads them{FAINT:#}",
            count(tools, "more tool"),
            folder.display()
        )
    })
}

/// The catalogues as JSON.
pub(super) fn records(started: &Started) -> Value {
    catalogues(started).map(|(folder, tools)| json!({"folder": folder, "tools": tools})).collect()
}
