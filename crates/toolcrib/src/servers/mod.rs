//! Finding the servers that run with a config, and operating them.
//!
//! Every server has a private socket in the [socket folder](SocketFolder) of its config. There, its
//! owner can use all routes of the HTTP API without a token ([`OwnerSocket`]). [`running_servers`]
//! finds these sockets.

#[cfg(all(unix, feature = "http"))]
pub(crate) mod backend;
#[cfg(all(unix, feature = "http"))]
pub(crate) mod operations;
mod place;
mod running;

pub use crate::servers::running::{Announcement, RunningServer, running_servers};
pub use place::{NoSocketFolder, SocketFolder};
pub use toolcrib_http::{OwnerClient, OwnerError, OwnerSocket, path_segment};
