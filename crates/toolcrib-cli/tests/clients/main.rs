//! The built binary, driven by MCP clients that were written elsewhere: the Python MCP SDK,
//! `FastMCP`, the TypeScript SDKs and the MCP Inspector, over stdio and HTTP, in both families of protocol revisions; and as a client itself,
//! of the MCP reference servers, and of mock providers of models; by clients of OpenAI's protocols; and the page about a first tool, with one of them connected.
//!
//! `prepare` installs the clients in the target directory on the first run, from the Python and npm
//! registries. If they are not available, these tests fail and say what is missing;
//! `TOOLCRIB_SKIP_CLIENTS=1` skips them.

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
mod responses;
mod startup;
mod upstreams;
