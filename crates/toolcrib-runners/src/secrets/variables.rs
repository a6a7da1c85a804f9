//! The variables of the server's environment, including those removed from it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;

/// The server's environment, and the variables removed from it.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct ServerVariables {
    taken: BTreeMap<OsString, OsString>,
}

impl ServerVariables {
    /// Adds removed variables.
    pub(super) fn extend(&mut self, taken: impl IntoIterator<Item = (OsString, OsString)>) {
        self.taken.extend(taken);
    }

    /// The value of a variable.
    pub(super) fn get(&self, name: &str) -> Option<OsString> {
        self.taken.get(std::ffi::OsStr::new(name)).cloned().or_else(|| std::env::var_os(name))
    }
}

/// Shows names only.
impl fmt::Debug for ServerVariables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.taken.keys()).finish()
    }
}
