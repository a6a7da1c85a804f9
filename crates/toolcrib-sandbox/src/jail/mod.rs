//! The jail: a small helper process that confines itself and then becomes the program.
//!
//! Code between `fork` and `exec` is not an option: it would force the server to be forked, which
//! takes long for a large process, and nothing may be allocated there. So the server starts a
//! *helper* with `posix_spawn`. The helper forks once (twice for a PID namespace), which is cheap
//! in a small process: one of the two processes becomes the program; the other stays outside of the
//! jail, supervises the tree, and ends it when the server asks for that or disappears.
//!
//! The helper is the first of these that exists:
//!
//! 1. what [`set_helper`] was given,
//! 2. the file `toolcrib-jail` beside the running program, which is installed with `toolcrib`,
//! 3. the running program itself, if its `main` called [`reexec_hook`] first.
//!
//! It is [opened](open_helper) once and started by its descriptor, so replacing its file later does
//! not affect a running process.
//!
//! Before the jail is closed, the [withheld](crate::Confinement::hide) places below the program's grants are covered.
//! Then its working directory and its grants are opened, without following a symbolic link that programs of the
//! workspace could replace. The program itself is loaded by its path, as the kernel resolves it; its target must be
//! granted. The `#!` line of a file that programs may write adds no grants.
//!
//! Without a helper, only [trusted](crate::Profile::Trusted) programs are started.

use crate::jail::files::mounts;
use crate::jail::files::withheld;
use crate::jail::helper::executable;
use crate::jail::helper::plan;
use crate::jail::helper::report;
use crate::jail::helper::supervisor;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

mod files;
mod filter;
pub(crate) mod helper;
mod probe;
mod shortfalls;
#[cfg(test)]
mod tests;

pub(crate) use crate::jail::files::grants::{ProgramFile, grants};
pub(crate) use crate::jail::helper::executable::{Helper, helper};
pub(crate) use crate::jail::helper::target::FLOOR;
pub(crate) use probe::check;
pub use shortfalls::{probe, shortfalls};

use crate::process::sys;

/// Lets this program be its own helper. Call it first in `main`, before any thread is started:
///
/// ```no_run
/// toolcrib_sandbox::jail::reexec_hook();
/// // … the program itself.
/// ```
///
/// In a process that was started as a helper, it does the helper's work and does not return. A
/// small helper starts faster than a large program, so `toolcrib-jail` is preferred if it is
/// installed beside the program.
pub fn reexec_hook() {
    if std::env::args_os().next().is_some_and(|name| name == plan::NAME) {
        let code = help(std::env::args_os());
        #[expect(clippy::disallowed_methods, reason = "there is no main to return to")]
        std::process::exit(code);
    }
    executable::HOOKED.store(true, Ordering::Release);
}

/// The `main` of `toolcrib-jail`.
pub fn main() -> ExitCode {
    ExitCode::from(u8::try_from(help(std::env::args_os())).unwrap_or(1))
}

/// Sets the file of the helper before the first program is started. Only the first call has an
/// effect; returns whether this was it. If the file does not exist, there is no helper.
pub fn set_helper(file: impl Into<PathBuf>) -> bool {
    executable::SET.set(file.into()).is_ok()
}

/// Finds and opens the helper if that has not been done yet. Returns whether there is one.
///
/// Otherwise the start of the first confined program would do so. A server calls this before it serves requests: the
/// helper runs unconfined, so a file that tools put at its path later must not be started.
pub fn open_helper() -> bool {
    helper().is_some()
}

/// Whether there is a helper, so that programs can be confined.
pub fn has_helper() -> bool {
    helper().is_some()
}

/// The places that a plan withholds.
fn withheld_by(plan: &plan::Plan) -> withheld::WithheldPlaces<'_> {
    let plan::Plan { hidden, read_only, own, .. } = plan;
    withheld::WithheldPlaces { hidden, read_only, own }
}

/// Does the helper's work. Returns an exit code, which matters only if it was started by hand.
fn help(arguments: impl Iterator<Item = OsString>) -> i32 {
    let arguments: Vec<_> = arguments.collect();
    if arguments.get(1..).is_some_and(|words| words == [plan::VERSION, plan::PROBE]) {
        let Some([_control, report, _file]) = sys::inherited() else { return by_hand() };
        let text = match mounts::probe() {
            Ok(()) => report::BuiltJail::default().to_text(),
            Err(reason) => report::impossible(&reason),
        };
        // The server may have ended.
        let _ = std::fs::File::from(report).write_all(text.as_bytes());
        return 0;
    }
    let Some((plan, words)) = plan::Plan::from_arguments(arguments.into_iter()) else {
        return by_hand();
    };
    let Some([control, report, file]) = sys::inherited() else { return by_hand() };
    // The descriptor was needed to start this process.
    drop(file);
    // Otherwise the name would be the number of that descriptor. The name helps people who look at
    // a list of processes.
    let _ = rustix::thread::set_name(c"toolcrib-jail");
    supervisor::supervise(&plan, &words, &control, report.into());
    0
}

fn by_hand() -> i32 {
    let text: &[u8] = b"toolcrib-jail is started by toolcrib of the same version, not by hand\n";
    // If the message cannot be written, the exit code still reports the failure.
    let _ = rustix::io::write(rustix::stdio::stderr(), text);
    2
}
