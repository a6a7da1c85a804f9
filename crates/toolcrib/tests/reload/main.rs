//! Manifests that change while the crib is in use: editors, deployments, deletions, storms.
#![cfg(all(unix, feature = "manifests"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, missing_docs)]
// Editors are run as people run them.
#![allow(clippy::disallowed_methods)]

mod crib;
mod dances;
#[cfg(feature = "mcp")]
mod lock;
#[cfg(feature = "mcp")]
mod names;
mod storm;
#[cfg(all(target_os = "linux", feature = "mcp"))]
mod upstreams;
