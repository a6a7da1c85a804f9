//! `db_query` and `describe_database` with real databases: files of SQLite, and a PostgreSQL server.
//!
//! Uses its own test harness, because its `main` has to let the process act as the helper of jails and as the process
//! of queries.
#![expect(clippy::expect_used, reason = "a test that cannot be set up fails")]
#![expect(clippy::print_stderr, reason = "a server that is not installed is told")]

mod harness;
mod postgres;
mod server;
mod sqlite;

use libtest_mimic::Arguments;

fn main() {
    toolcrib_sandbox::jail::reexec_hook();
    toolcrib_databases::worker_hook();
    let mut arguments = Arguments::from_args();
    arguments.test_threads = arguments.test_threads.or(Some(2));
    let trials = sqlite::trials().into_iter().chain(postgres::trials()).collect();
    libtest_mimic::run(&arguments, trials).exit();
}
