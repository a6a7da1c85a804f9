//! Manifests that change while they are in use.
//!
//! A file is the unit: it is read and checked whole, and what it declares replaces what it declared
//! before, in one step with everything else that changed. A file that cannot be read or has an error
//! keeps its last good tools and is *stale*.
//!
//! Three parts can be tested separately: `observe` looks at files, `decide` determines what a look
//! means (no I/O, no clock), and [`Watch`] determines when to look.

mod decide;
mod lock_files;
mod manifests;
mod observation;
mod report;
mod roots;
mod state;
mod watch;

pub(crate) use crate::live::observation::{FileVersion, Seen, observe};

pub use self::decide::UnitChange;
pub use self::manifests::{LiveManifests, Subscriber};
pub use self::report::{FileEvent, FileState, FileStatus, LookReport};
pub use self::watch::Watch;
pub use crate::live::state::ManifestUnit;
