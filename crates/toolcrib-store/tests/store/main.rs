//! What every store promises, held against the database on disk and in memory.

mod conformance;
mod fixture;
mod full_disk;
mod opening;
mod processes;
mod spills;
mod taking_over;
