//! Manifests that change while they are in use.
//!
//! A file is the unit: it is read and checked whole, and what it declares replaces what it declared
//! before, all at once with everything else that changed. What cannot be read or has an error keeps
//! its last good tools and is *stale*.
//!
//! Three parts, so that each can be tested by itself: `observe` looks at files, `decide` says
//! what a look means (no I/O, no clock), and [`Watch`] says when to look.

mod decide;
mod files;
mod manifests;
mod observe;
mod places;
mod report;
mod surroundings;
mod watch;

pub(crate) use self::observe::Seen;
pub(crate) use self::observe::{Digest, Stamp, observe};

pub use self::decide::UnitChange;
pub use self::files::ManifestUnit;
pub use self::manifests::{LiveManifests, Subscriber};
pub use self::report::{FileEvent, FileState, FileStatus, LookReport};
pub use self::watch::Watch;
