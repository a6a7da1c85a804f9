//! Manifests that change while they are in use.
//!
//! A file is the unit: it is read and checked whole, and what it declares replaces what it declared
//! before, in one step with everything else that changed. A file that cannot be read or has an
//! error is *stale*: it keeps the tools of its last valid version.
//!
//! Three parts can be tested separately: `observation` reads files, `decide` determines what has
//! changed (no I/O, no clock), and [`ManifestWatcher`] determines when to scan.

mod auxiliary_files;
mod decide;
mod manifests;
mod observation;
mod report;
mod roots;
mod state;
mod watch;

pub(crate) use crate::live::observation::{FileVersion, Observation, observe};

pub use self::decide::UnitChange;
pub use self::manifests::{LiveManifests, Subscriber};
pub use self::report::{FileEvent, FileState, FileStatus, ScanReport};
pub use self::watch::ManifestWatcher;
pub use crate::live::state::ManifestUnit;
