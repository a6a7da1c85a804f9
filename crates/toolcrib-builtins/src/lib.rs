//! The native tools that come with toolcrib, a module and a cargo feature per family.
//!
//! Linking the crate registers its tools. What some of them need to know is lent to the calls as a
//! service: [`Projects`], `shell::BashSettings`, `code::PythonSettings`. A binary that never names a crate
//! does not link it, and then nothing is registered, so say it once:
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
//! Which of them are offered, by which names, and where they work, is the host's to say: [`Builtins`].
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
pub use files::NameProfile;
#[cfg(any(feature = "files", feature = "python", feature = "shell"))]
pub use projects::{PROJECT_ID, Projects};
#[cfg(feature = "files")]
pub use toolcrib_sandbox::PROTECTED_NAMES;
