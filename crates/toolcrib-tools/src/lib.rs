//! The native tools that come with toolcrib, a module and a cargo feature per family.
//!
//! Linking the crate registers its tools; there is nothing to call. What some of them need to know is
//! lent to the calls as a service: `shell::BashSettings`, `code::PythonSettings`. A binary that never
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
//! | `python` | `execute_python` | off |
//! | `shell` | `bash` | off |
#![forbid(unsafe_code)]

#[cfg(feature = "python")]
pub mod code;
#[cfg(feature = "data")]
mod data;
#[cfg(any(feature = "python", feature = "shell"))]
mod process;
#[cfg(feature = "shell")]
pub mod shell;
