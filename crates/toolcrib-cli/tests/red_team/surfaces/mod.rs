//! The program under attack, and how clients reach it and are reached.

pub(crate) mod http;
pub(crate) mod listeners;
pub(crate) mod mcp;
pub(crate) mod program;
