//! What the edit engine promises: case by case, against plainer schemes, and for any bytes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod case;
mod corpus;
mod oracle;
mod plain;
mod properties;
