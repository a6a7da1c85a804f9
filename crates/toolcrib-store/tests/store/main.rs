//! What every store promises, held against the database on disk and in memory.

mod conformance;
mod fixture;
mod opening;
mod taking_over;
