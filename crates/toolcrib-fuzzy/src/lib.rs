//! Finding text that is nearly right.
//!
//! Language models misspell the names of tools, properties and keys in their own ways: another
//! case, another order of the words, a namespace in front, a letter too many. [`near_names`] finds
//! what they meant, so that the refusal can say it.
//!
//! ```
//! let tools = ["disk_usage", "read_file", "resolve_name"];
//! assert_eq!(toolcrib_fuzzy::near_names("mcp__files__readFile", tools), ["read_file"]);
//! assert_eq!(toolcrib_fuzzy::near_names("disc_usage", tools), ["disk_usage"]);
//! assert!(toolcrib_fuzzy::near_names("send_mail", tools).is_empty());
//! ```
//!
//! [`mod@search`] ranks tools by the words of a question.
//!
//! [`mod@edit`] replaces text in files by what a model quotes of them: it finds the one place that is
//! meant, whatever has drifted, or says how to quote it.
//!
//! Names and tools are only suggested. Nothing is ever run, applied or accepted because it looked
//! alike: an edit is made where its source stands, by rules that leave no room for likeness.

#![forbid(unsafe_code)]

pub mod edit;
mod near;
pub mod search;

pub use near::{Fingerprints, MAX_QUERY, MAX_SUGGESTIONS, near_names, near_names_among};
