//! Manifests that change while the crib is in use: editors, deployments, deletions, storms.
#![cfg(all(unix, feature = "manifests"))]
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "reload/crib.rs"]
mod crib;
#[path = "reload/dances.rs"]
mod dances;
#[path = "reload/storm.rs"]
mod storm;
