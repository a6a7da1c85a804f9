//! The native tools that come with toolcrib, a module and a cargo feature per family.
//!
//! There is nothing to call here: linking the crate registers its tools. A binary that never
//! names a crate does not link it, and then nothing is registered, so say it once:
//!
//! ```
//! use toolcrib_tools as _;
//! # #[cfg(feature = "data")]
//! assert!(toolcrib_tool::native_tools().iter().any(|tool| tool.name == "calculator"));
//! ```
//!
//! | feature | tools | default |
//! |---|---|---|
//! | `data` | `calculator`, `text_process`, `json_process` | on |
//! | `jq` | jq queries in `json_process` | on |
#![forbid(unsafe_code)]

#[cfg(feature = "data")]
mod data;
