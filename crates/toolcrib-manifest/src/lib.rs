#![doc = include_str!("docs/manifest.md")]
#![forbid(unsafe_code)]

mod codes;
pub mod declaration;
mod decode;
mod diagnostic;
#[doc = include_str!("docs/diagnostics.md")]
pub mod diagnostics {}
pub mod directory;
mod document;
mod environment;
mod fields;
mod findings;
mod fix;
pub mod layers;
mod lint;
pub mod live;
pub mod lock;
mod manifest;
#[doc = include_str!("docs/reloading.md")]
pub mod reloading {}
mod source;
pub mod template;
mod violation;

pub use codes::{CODES, Code};
pub use decode::decode;
pub use diagnostic::{Diagnostic, Severity};
pub use document::{FILE_MAX_BYTES, Format};
pub use environment::is_dangerous_env;
pub use fix::{Applied, Fix, Fixed, fix_str};
pub use lint::{Known, Place, Remark, lint_str, lint_with};
pub use manifest::{FORMAT_VERSION, Loaded, load_str, manifest_schema};
pub use source::Lines;
pub use toolcrib_tool::units;
