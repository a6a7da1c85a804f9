//! The variables of the server's environment, also those that are not in it any more.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;

/// The server's environment, and beside it what was taken out.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Variables {
    taken: BTreeMap<OsString, OsString>,
}

impl Variables {
    /// Adds what was taken out.
    pub(super) fn extend(&mut self, taken: impl IntoIterator<Item = (OsString, OsString)>) {
        self.taken.extend(taken);
    }

    /// What a variable holds.
    pub(super) fn get(&self, name: &str) -> Option<OsString> {
        self.taken.get(std::ffi::OsStr::new(name)).cloned().or_else(|| std::env::var_os(name))
    }
}

/// Names only.
impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.taken.keys()).finish()
    }
}
