//! The references of this crate as texts in Markdown, for programs that show them.

/// What a manifest can say.
pub const MANIFEST: &str = include_str!("docs/manifest.md");
/// Every problem that a check can report, with its repair.
pub const DIAGNOSTICS: &str = include_str!("docs/diagnostics.md");
/// The lock file.
pub const LOCK: &str = include_str!("docs/lock.md");
/// Which changes take effect when.
pub const RELOADING: &str = include_str!("docs/reloading.md");
