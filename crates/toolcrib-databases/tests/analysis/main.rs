//! `data_analysis` as it is called: real files, real jails.
//!
//! Uses its own test harness, because its `main` has to let the process act as the helper of jails and as the process
//! of queries.
#![expect(clippy::expect_used, reason = "a test that cannot be set up fails")]

mod files;
mod harness;
mod hostile;
mod limits;

use libtest_mimic::{Arguments, Trial};

fn main() {
    toolcrib_sandbox::jail::reexec_hook();
    toolcrib_databases::worker_hook();
    let mut arguments = Arguments::from_args();
    // The tests mostly wait for processes, and each one starts enough of them.
    arguments.test_threads = arguments.test_threads.or(Some(2));
    let trials: Vec<Trial> =
        [files::trials(), hostile::trials(), limits::trials()].into_iter().flatten().collect();
    libtest_mimic::run(&arguments, trials).exit();
}
