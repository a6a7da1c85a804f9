#![doc = include_str!("docs/manifest.md")]
#![forbid(unsafe_code)]

mod config;
pub mod declaration;
mod diagnostic;
#[doc = include_str!("docs/diagnostics.md")]
pub mod diagnostics {}
pub mod directory;
mod document;
mod environment;
mod fields;
pub use config::layers;
mod lint;
pub mod live;
pub mod lock;
mod manifest;
pub mod programs;
pub mod reference;
#[doc = include_str!("docs/reloading.md")]
pub mod reloading {}
pub mod template;
mod words;

pub use crate::config::decode::decode;
pub use crate::diagnostic::codes::{CODES, Code};
pub use crate::diagnostic::fix::{AppliedFix, Fix, Fixed, fix_str};
pub use crate::diagnostic::position::Lines;
pub use diagnostic::{Diagnostic, Severity};
pub use document::{FILE_MAX_BYTES, Format};
pub use environment::is_dangerous_env;
pub use lint::{LintContext, Remark, RemarkTarget, lint_str, lint_with};
pub use manifest::{FORMAT_VERSION, Loaded, load_str, manifest_schema, shell_text};
pub use toolcrib_tool::units;
