//! Manifests that change while the crib is in use: editors, deployments, deletions, storms.
#![cfg(all(unix, feature = "manifests"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, missing_docs)]
// Editors are run as people run them.
#![allow(clippy::disallowed_methods)]

#[path = "reload/crib.rs"]
mod crib;
#[path = "reload/dances.rs"]
mod dances;
#[cfg(feature = "mcp")]
#[path = "reload/lock.rs"]
mod lock;
#[cfg(feature = "mcp")]
#[path = "reload/names.rs"]
mod names;
#[path = "reload/storm.rs"]
mod storm;
#[cfg(all(target_os = "linux", feature = "mcp"))]
#[path = "reload/upstreams.rs"]
mod upstreams;
