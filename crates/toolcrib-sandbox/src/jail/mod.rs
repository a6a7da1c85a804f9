//! The jail: a small helper process that confines itself and then becomes the program.
//!
//! Not something between `fork` and `exec`: that would force the server to be forked, which takes
//! long for a large one, and run code where nothing may be allocated. So the server starts a
//! *helper* with `posix_spawn`. It forks once (twice for a PID namespace), which costs next to
//! nothing in a small process: one of the two becomes the program, the other stays outside of the
//! jail, looks after the tree, and ends it when the server says so or is gone.
//!
//! The helper is, in this order,
//!
//! 1. what [`set_helper`] was given,
//! 2. the file `toolcrib-jail` beside the running program, which is installed with `toolcrib`,
//! 3. the running program itself, if its `main` called [`reexec_hook`] first.
//!
//! It is [opened](open_helper) once, and started by its descriptor: replacing its file later changes
//! nothing for a process that runs.
//!
//! Before the jail is closed, places are covered that are [withheld](crate::Confinement::hide) from the
//! program although its grants contain them, and then its working directory and its grants are
//! opened: without following a symbolic link that programs of the workspace could replace. A program
//! itself is loaded by its name, as the kernel finds it; what it leads to must be granted. The `#!` line of
//! a file that programs may write grants nothing.
//!
//! Where there is none of them, only [trusted](crate::Profile::Trusted) programs are started.

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
/// In a process that was started as a helper it does the helper's work and does not return. A small
/// helper starts faster than a large program: where `toolcrib-jail` is installed beside the program
/// it is preferred.
pub fn reexec_hook() {
    if std::env::args_os().next().is_some_and(|name| name == plan::NAME) {
        let code = help(std::env::args_os());
        #[expect(clippy::disallowed_methods, reason = "there is no main to return to")]
        std::process::exit(code);
    }
    executable::HOOKED.store(true, Ordering::Release);
}

/// What `toolcrib-jail` does, and nothing else.
pub fn main() -> ExitCode {
    ExitCode::from(u8::try_from(help(std::env::args_os())).unwrap_or(1))
}

/// Sets the file of the helper, before the first program is started. Of several calls the first
/// counts; says whether this was it. Where there is no such file, there is no helper.
pub fn set_helper(file: impl Into<PathBuf>) -> bool {
    executable::SET.set(file.into()).is_ok()
}

/// Finds and opens the helper, if that has not been done yet; says whether there is one.
///
/// The first confined program would do that otherwise. A server calls it before it serves anything:
/// the helper runs unconfined, and what stands at its path later, when tools have run, is not started
/// any more.
pub fn open_helper() -> bool {
    helper().is_some()
}

/// Whether there is a helper, so that programs can be confined at all.
pub fn has_helper() -> bool {
    helper().is_some()
}

/// The places that a plan withholds.
fn withheld_by(plan: &plan::Plan) -> withheld::Withheld<'_> {
    withheld::Withheld { hidden: &plan.hidden, read_only: &plan.read_only }
}

/// The helper's work. Gives an exit code, which nobody looks at unless it was started by hand.
fn help(arguments: impl Iterator<Item = OsString>) -> i32 {
    let arguments: Vec<_> = arguments.collect();
    if arguments.get(1..).is_some_and(|words| words == [plan::VERSION, plan::PROBE]) {
        let Some([_control, report, _file]) = sys::inherited() else { return by_hand() };
        let text = match mounts::probe() {
            Ok(()) => report::BuiltJail::default().to_text(),
            Err(reason) => report::impossible(&reason),
        };
        // The server may be gone.
        let _ = std::fs::File::from(report).write_all(text.as_bytes());
        return 0;
    }
    let Some((plan, words)) = plan::Plan::from_arguments(arguments.into_iter()) else {
        return by_hand();
    };
    let Some([control, report, file]) = sys::inherited() else { return by_hand() };
    // It was needed to start this process.
    drop(file);
    // It would be the number of that descriptor. A name is for people who look at processes.
    let _ = rustix::thread::set_name(c"toolcrib-jail");
    supervisor::supervise(&plan, &words, &control, report.into());
    0
}

fn by_hand() -> i32 {
    let text: &[u8] = b"toolcrib-jail is started by toolcrib of the same version, not by hand\n";
    // What cannot be said is still told by the exit code.
    let _ = rustix::io::write(rustix::stdio::stderr(), text);
    2
}
