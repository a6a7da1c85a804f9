//! Turns checked declarations into tools that run.
//!
//! A [`Declaration`](toolcrib_manifest::declaration::Declaration) says what to start; [`entry`] turns it into a
//! registry's [`ToolEntry`](toolcrib_tool::ToolEntry) and decides whether the tool can run here. A call has three
//! steps, one file each:
//!
//! 1. [`expand`] turns templates and arguments into an [`Invocation`]. Its rules keep a model's value one argument that
//!    is never taken for an option.
//! 2. `toolcrib-sandbox` runs the program and leaves no process behind.
//! 3. The program's exit status and output become a result with the exit code, both streams and what was cut.
//!
//! With the feature `http`, requests go the same way: `http/request.rs`, `toolcrib-net`,
//! `http/answer.rs` and `http/failure.rs`.
//!
//! A [`WorkerRunner`] passes calls to a program that keeps running instead.
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
mod trust_guard;
mod worker;

pub use crate::expansion::{Invocation, ServerValues, expand};
pub use crate::trust::deciding_files::{DecidingFiles, ReferencedFile, RivalFiles};
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
/// Lets a program that embeds this crate confine the programs it starts.
pub use toolcrib_sandbox::jail;
/// The files that no program of a declaration may change; see [`RunnerHost::control_plane`].
pub use toolcrib_sandbox::{ControlPlane, ExposureRecord, Places, server_path};
pub use trust::{
    Trust, TrustDecision, TrustEverything, TrustNothing, TrustRequest, prompt_trust_decision,
    prompt_wants, resource_trust_decision, resource_wants, served_file, tool_trust_decision,
    tool_wants, upstream_trust_decision, upstream_wants,
};
pub use worker::WorkerRunner;
