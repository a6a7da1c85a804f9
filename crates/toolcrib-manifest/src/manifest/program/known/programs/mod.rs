//! Tables of programs, one file for each kind. Shells and interpreters of scripts are in
//! `interpreters`.

mod containers;
mod databases;
mod developer;
mod git;
mod module_loaders;
mod options;
mod packages;
mod scripted;
mod shells;
mod toolchains;
mod values;
mod wrappers;

use super::program::Program;

pub(super) use options::END_OPTIONS;

/// Every table. The first entry with a name counts.
const TABLES: [&[Program]; 11] = [
    wrappers::PROGRAMS,
    packages::PROGRAMS,
    shells::PROGRAMS,
    scripted::PROGRAMS,
    git::PROGRAMS,
    databases::PROGRAMS,
    containers::PROGRAMS,
    options::PROGRAMS,
    toolchains::PROGRAMS,
    developer::PROGRAMS,
    module_loaders::PROGRAMS,
];

/// Every program about which something is known.
pub(super) fn all() -> impl Iterator<Item = &'static Program> {
    TABLES.iter().copied().flatten()
}
