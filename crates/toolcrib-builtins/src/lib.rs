//! toolcrib's native tools, one module and one cargo feature for each family.
//!
//! Linking the crate registers its tools. Calls get their settings as services: [`Projects`], `shell::BashSettings`,
//! `code::PythonSettings`. Rust does not link a crate that the binary never names, and then no tool is registered, so
//! name it once:
//!
//! ```
//! use toolcrib_builtins as _;
//! # #[cfg(feature = "data")]
//! assert!(toolcrib_tool::native_tools().iter().any(|tool| tool.name == "calculator"));
//! ```
//!
//! | feature | tools | default |
//! |---|---|---|
//! | `data` | `calculator`, `text_process`, `json_process` | on |
//! | `files` | `file_read` `file_write` `file_delete` `file_list` `file_exists` `file_mkdir` `file_search` `edit_file` | on |
//! | `jq` | jq queries in `json_process` | on |
//! | `python` | `execute_python` | off |
//! | `shell` | `bash` | off |
//!
//! [`Builtins`] lets the host decide which tools are exposed, under which names, and where they work.
#![forbid(unsafe_code)]

mod builtins;
#[cfg(feature = "python")]
pub mod code;
#[cfg(feature = "data")]
mod data;
#[cfg(feature = "files")]
mod files;
#[cfg(any(feature = "python", feature = "shell"))]
mod process;
#[cfg(any(feature = "files", feature = "python", feature = "shell"))]
mod projects;
#[cfg(feature = "shell")]
pub mod shell;

pub use builtins::Builtins;
#[cfg(feature = "files")]
pub use files::{NameProfile, path_error};
#[cfg(any(feature = "files", feature = "python", feature = "shell"))]
pub use projects::{PROJECT_ID, Projects};
#[cfg(feature = "files")]
pub use toolcrib_sandbox::PROTECTED_NAMES;
