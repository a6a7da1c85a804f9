//! The life cycle of tool bodies: use, refresh, closing.
//!
//! Every instance has one [`LiveBody`], shared by all snapshots, names and registries: clones of an
//! entry share it through their [`SharedTool`](toolcrib_tool::SharedTool).
//! [`Tool::close`](toolcrib_tool::Tool::close) is called once for each body:
//!
//! - when the last snapshot, turn and call that hold it are gone ([`LiveBody`]'s drop), or
//! - when it has been in no current snapshot for the grace period ([`Bodies`]), or
//! - when the executor is shut down.
//!
//! Calls have no overhead: the turn pins the snapshot, and the snapshot holds the body. Only an
//! instance created for one call has a [`Lease`].

mod bodies;
mod closer;
mod instance;
mod live_body;
mod poll_watch;
mod refresh;
mod shutdown;
#[cfg(test)]
mod tests;

pub(crate) use self::bodies::Bodies;
pub(crate) use self::live_body::LiveBody;
pub(crate) use self::poll_watch::PollWatch;
pub use self::refresh::{RefreshReport, Refreshed, Refresher};
pub(crate) use self::shutdown::Shutdown;
pub use self::shutdown::ShutdownReport;
pub(crate) use crate::lifecycle::instance::{Instance, Lease};
