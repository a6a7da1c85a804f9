//! Finds tools by the words of a question, and by a misspelled name.
//!
//! [`Index`] ranks tools by the words of a question.
//!
//! Language models misspell the names of tools, properties and keys in their own ways: different case, word order, an
//! added namespace, an extra letter. [`near_names`] finds the probable names, so that an error can suggest them.
//!
//! ```
//! let tools = ["disk_usage", "read_file", "resolve_name"];
//! assert_eq!(toolcrib_search::near_names("mcp__files__readFile", tools), ["read_file"]);
//! assert_eq!(toolcrib_search::near_names("disc_usage", tools), ["disk_usage"]);
//! assert!(toolcrib_search::near_names("send_mail", tools).is_empty());
//! ```
//!
//! Names and tools are only suggested. Nothing is ever run, applied or accepted because it is similar.

#![forbid(unsafe_code)]

mod near;
mod ranked;

pub use near::{Fingerprints, MAX_QUERY, MAX_SUGGESTIONS, near_names, near_names_among};
pub use ranked::{
    Document, Field, Index, MAX_DOCUMENTS, MAX_QUESTION, Match, Parameter, Searchable, Weights,
};
#[cfg(feature = "embeddings")]
pub use ranked::{Embedder, HybridIndex};
