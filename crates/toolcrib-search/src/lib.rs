//! Finding tools: by the words of a question, and by a name that is nearly right.
//!
//! [`Index`] ranks tools by the words of a question.
//!
//! Language models misspell the names of tools, properties and keys in their own ways: another
//! case, another order of the words, a namespace in front, a letter too many. [`near_names`] finds
//! what they meant, so that the refusal can say it.
//!
//! ```
//! let tools = ["disk_usage", "read_file", "resolve_name"];
//! assert_eq!(toolcrib_search::near_names("mcp__files__readFile", tools), ["read_file"]);
//! assert_eq!(toolcrib_search::near_names("disc_usage", tools), ["disk_usage"]);
//! assert!(toolcrib_search::near_names("send_mail", tools).is_empty());
//! ```
//!
//! Names and tools are only suggested. Nothing is ever run, applied or accepted because it looked
//! alike.

#![forbid(unsafe_code)]

mod near;
mod ranked;

pub use near::{Fingerprints, MAX_QUERY, MAX_SUGGESTIONS, near_names, near_names_among};
pub use ranked::{Document, Field, Index, MAX_DOCUMENTS, Match, Parameter, Searchable};
#[cfg(feature = "embeddings")]
pub use ranked::{Embedder, HybridIndex};
