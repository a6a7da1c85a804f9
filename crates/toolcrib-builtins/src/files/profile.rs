//! The two sets of names for the file tools, of which one is exposed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The set of names under which the file tools are exposed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NameProfile {
    /// `file_read file_write file_delete file_list file_exists file_mkdir file_search edit_file`.
    #[default]
    Default,
    /// `read_file write_file delete_file list_files file_exists make_dir search_files edit_file`.
    Harness,
}

/// The names of each tool in both profiles.
const NAMES: [[&str; 2]; 8] = [
    ["file_read", "read_file"],
    ["file_write", "write_file"],
    ["file_delete", "delete_file"],
    ["file_list", "list_files"],
    ["file_exists", "file_exists"],
    ["file_mkdir", "make_dir"],
    ["file_search", "search_files"],
    ["edit_file", "edit_file"],
];

impl NameProfile {
    /// The names of the profile, in no particular order.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(move |[default, harness]| match self {
            Self::Default => *default,
            Self::Harness => *harness,
        })
    }
}
