//! Manifests that change while they are in use.
//!
//! A file is the unit: it is read and checked whole, and what it declares replaces what it declared
//! before, all at once with everything else that changed. What cannot be read or has an error keeps
//! its last good tools and is *stale*.
//!
//! Three parts, so that each can be tested by itself: `observe` looks at files, `decide` says
//! what a look means (no I/O, no clock), and [`Watch`] says when to look.

mod decide;
mod lock_files;
mod manifests;
mod observation;
mod report;
mod roots;
mod state;
mod watch;

pub(crate) use crate::live::observation::Seen;
pub(crate) use crate::live::observation::{Digest, Stamp, observe};

pub use self::decide::UnitChange;
pub use self::manifests::{LiveManifests, Subscriber};
pub use self::report::{FileEvent, FileState, FileStatus, LookReport};
pub use self::watch::Watch;
pub use crate::live::state::ManifestUnit;
