//! Protecting this process from others of the same user.
//!
//! Programs that tools run usually have the server's user, and a user may inspect all of its
//! processes. Confined programs cannot do that; this protects the server from the others, and from
//! any other program of its user.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;

use system::{close, forget};

/// Closes this process to others of its user: nobody can read its memory, environment and
/// descriptors (`/proc/PID/mem`, `environ`, `fd`) or attach a debugger, and no core file is
/// written. Root still can. Programs that this process starts are not affected.
///
/// Servers that hold secrets call this at their start.
///
/// # Errors
///
/// No error is known on Linux; [`io::ErrorKind::Unsupported`] on systems that decide this
/// themselves.
pub fn close_to_others() -> io::Result<()> {
    close()
}

/// Removes variables from the environment of this process and returns their values. They are
/// removed permanently, including from the kernel's view of it (`/proc/PID/environ`). Names that
/// are not set are left out.
///
/// # Errors
///
/// Fails if this process has more than one thread, because another thread could be reading the
/// environment (call it first in `main`), or if the system does not report the number of threads.
/// Nothing has changed then.
pub fn take_variables<N: Into<OsString>>(
    names: impl IntoIterator<Item = N>,
) -> io::Result<BTreeMap<OsString, OsString>> {
    let mut taken = BTreeMap::new();
    for name in names.into_iter().map(Into::into) {
        if let Some(value) = std::env::var_os(&name) {
            forget(&name)?;
            taken.insert(name, value);
        }
    }
    Ok(taken)
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod system {
    use std::ffi::OsStr;
    use std::io;

    use rustix::process::{DumpableBehavior, set_dumpable_behavior};

    use crate::process::{procfs, sys};

    pub(super) fn close() -> io::Result<()> {
        Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
    }

    pub(super) fn forget(name: &OsStr) -> io::Result<()> {
        sys::forget_variable(name, procfs::own_environment().as_ref())
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod system {
    use std::ffi::OsStr;
    use std::io;

    pub(super) fn close() -> io::Result<()> {
        let why = "this system has no way for a process to close itself to others of its user";
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    }

    pub(super) fn forget(_: &OsStr) -> io::Result<()> {
        let why = "this system does not say whether somebody else is reading the environment";
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_process_of_several_threads_keeps_its_environment() {
        let (done, wait) = mpsc::channel::<()>();
        let other = std::thread::spawn(move || wait.recv());
        let path = std::env::var_os("PATH");
        assert!(path.is_some() && take_variables(["PATH"]).is_err());
        assert_eq!(std::env::var_os("PATH"), path);
        assert_eq!(take_variables(["TOOLCRIB_NO_SUCH_VARIABLE"]).unwrap().len(), 0);
        drop(done);
        assert!(other.join().unwrap().is_err());
    }
}
