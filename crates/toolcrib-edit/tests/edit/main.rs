//! The promises of the edit engine: case by case, compared with simpler schemes, and for arbitrary bytes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod case;
mod corpus;
mod oracle;
mod plain;
mod properties;
