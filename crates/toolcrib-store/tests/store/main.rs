//! The promises of every store, tested on disk and in memory.
#![expect(clippy::expect_used, reason = "tests stop where something is not as they need it")]
#![expect(clippy::disallowed_methods, reason = "the tests start processes to kill them")]

#[cfg(feature = "http")]
mod answers;
mod backup;
mod conformance;
mod deciding;
mod elsewhere;
mod fixture;
mod full_disk;
mod journal;
mod links;
mod nested;
mod opening;
#[cfg(feature = "mcp")]
mod pins;
mod places;
mod processes;
mod retention;
mod spills;
mod taking_over;
#[cfg(feature = "mcp")]
mod tasks;
