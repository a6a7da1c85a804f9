//! Names, toolsets, and finding tools.

mod finding;
mod names;
mod owners;
mod toolsets;
