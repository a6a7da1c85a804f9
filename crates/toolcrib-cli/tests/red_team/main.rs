//! A red team: hostile clients and hostile programs against the real binary, in every combination
//! of right, surface, layout, user and tool, and which of their goals they reach.
//!
//! The regular run tries a covering array, in which each pair of circumstances occurs;
//! `.ci/long red-team` tries all rows. `TOOLCRIB_RED_TEAM_PROGRAM` names another build of the
//! program to attack.
#![cfg(all(test, target_os = "linux"))]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "all of it is a test")]
#![allow(clippy::trivially_copy_pass_by_ref, reason = "a row is passed like any other struct")]

mod attack;
mod controls;
mod dimensions;
mod edits;
mod folder;
mod goals;
mod looking;
mod oracle;
mod others;
mod possible;
mod report;
mod reports;
mod repository;
mod run;
mod surfaces;
mod world;
