//! Finding the servers that run with a config, and operating them.
//!
//! Every server has a private socket in the [place](ControlPlace) of its config, at which its owner
//! has all the routes of the HTTP API without a token
//! ([`OwnerSocket`]); [`running_servers`] finds them.

#[cfg(all(unix, feature = "http"))]
pub(crate) mod backend;
#[cfg(all(unix, feature = "http"))]
pub(crate) mod operations;
mod place;
mod running;

pub use crate::servers::running::{Announcement, RunningServer, running_servers};
pub use place::{ControlPlace, NoControlPlace};
pub use toolcrib_http::{OwnerClient, OwnerError, OwnerSocket, path_segment};
