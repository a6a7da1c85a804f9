//! Turning checked declarations into tools that run.
//!
//! A [`Declaration`](toolcrib_manifest::declaration::Declaration) says what to start;
//! [`entry`] makes a registry's [`ToolEntry`](toolcrib_tool::ToolEntry) of it and decides whether
//! the tool can run here. What happens in a call, in three steps of one file each:
//!
//! 1. [`expand`]: templates and arguments become an [`Invocation`], by rules under which a model's
//!    value stays one argument and never becomes an option.
//! 2. `toolcrib-sandbox` runs it, and leaves nothing behind.
//! 3. The program's end and output become a result, truthfully: exit code, both streams, what was
//!    cut.
//!
//! With the feature `http`, requests go the same way: `http/request.rs`, `toolcrib-net`,
//! `http/answer.rs` and `http/failure.rs`.
//!
//! A [`WorkerRunner`] hands calls to a program that keeps running instead.
#![forbid(unsafe_code)]

mod availability;
mod command;
mod confinement;
mod entry;
mod expansion;
mod host;
#[cfg(feature = "http")]
mod http;
mod output;
mod secrets;
mod trust;
mod vouched;
mod worker;

pub use crate::expansion::{Invocation, ServerValues, expand};
pub use crate::trust::deciding_files::{Deciding, Named};
pub use crate::trust::pinned_files::{check_files, pin_files};
pub use command::CommandRunner;
pub use confinement::{confinement, grants};
pub use entry::{entries, entry};
pub use host::{Lease, RunnerHost};
#[cfg(feature = "http")]
pub use http::{HttpHeader, HttpRequest, HttpRunner};
pub use secrets::{
    ExposeSecret, MissingSecret, SECRET_MAX, SecretSource, SecretSources, SecretString, Secrets,
};
/// What lets a program that embeds this crate confine the programs it starts.
pub use toolcrib_sandbox::jail;
/// What no program of a declaration may change; see [`RunnerHost::control_plane`].
pub use toolcrib_sandbox::{ControlPlane, Places, server_path};
pub use trust::{
    Claim, Trust, TrustEverything, TrustNothing, Word, prompt_wants, prompt_word, resource_wants,
    resource_word, served_file, tool_wants, tool_word, upstream_wants, upstream_word,
};
pub use worker::WorkerRunner;
