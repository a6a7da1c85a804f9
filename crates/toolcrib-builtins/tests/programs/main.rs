//! The tools that run programs: `bash` and `execute_python`, in their jails.
//!
//! Uses its own test harness, because its `main` has to let the process act as the helper of jails.
#![expect(clippy::expect_used, reason = "a test that cannot be set up fails")]
#![expect(clippy::print_stderr, reason = "the table of what was stopped by what")]

mod bash;
mod benign;
mod bombs;
mod corpus;
mod escapes;
mod harness;
mod python;

use libtest_mimic::{Arguments, Trial};
// The tools register themselves; nothing else of the crate may be named here.
use toolcrib_builtins as _;

fn main() {
    toolcrib_sandbox::jail::reexec_hook();
    let mut arguments = Arguments::from_args();
    // The tests mostly wait for programs, and each one starts enough of them.
    arguments.test_threads = arguments.test_threads.or(Some(2));
    let trials: Vec<Trial> =
        [bash::trials(), benign::trials(), bombs::trials(), escapes::trials(), python::trials()]
            .into_iter()
            .flatten()
            .collect();
    libtest_mimic::run(&arguments, trials).exit();
}
