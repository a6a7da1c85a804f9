//! The built binary, driven by MCP clients that were written elsewhere: the Python MCP SDK,
//! `FastMCP`, the TypeScript SDKs and the MCP Inspector, over stdio and HTTP, in both families of protocol revisions; and as a client itself,
//! of the MCP reference servers; and the page about a first tool, with one of them connected.
//!
//! `prepare` installs the clients below the target directory on the first run, from the Python
//! and npm registries; without the means to do so these tests fail and say what is missing. Where
//! that cannot be had, `TOOLCRIB_SKIP_CLIENTS=1` leaves them out.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stdout, reason = "`--nocapture` shows what was agreed on")]

mod conformance;
mod conversation;
mod crib;
mod everyday;
mod first_tool;
mod inspector;
mod installed;
mod lines;
mod process;
mod python_sdk;
mod reference_servers;
mod startup;
