//! Manifests and the lock: checked, listed, accepted, tested.

pub(crate) mod checks;
mod enabled;
mod init;
mod listed;
mod lock;
mod lock_files;
mod lock_servers;
mod sarif;
mod scaffolds;
mod tests_in_manifests;
mod trust;
