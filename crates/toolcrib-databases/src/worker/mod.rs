//! The process of a query: reads the request and the files from standard input, and writes one answer.

mod chunks;
mod engine;
mod functions;
mod load;
mod query;
mod watch;

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::protocol::{Answer, Failure, FailureKind, QueryResult, Request, VERSION};
use chunks::ChunkReader;
use watch::Watch;

/// The only argument of a process that runs a query.
pub(crate) const ARGUMENT: &str = "query-worker";

static HOOKED: AtomicBool = AtomicBool::new(false);

/// Lets this program run queries in processes of its own. Call it first in `main`, before any thread is started:
///
/// ```no_run
/// toolcrib_sandbox::jail::reexec_hook();
/// toolcrib_databases::worker_hook();
/// // … the program itself.
/// ```
///
/// In a process that was started to run a query, it does that and does not return.
pub fn worker_hook() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|word| word == ARGUMENT) && arguments.next().is_none() {
        let code = work();
        #[expect(clippy::disallowed_methods, reason = "there is no main to return to")]
        std::process::exit(code);
    }
    HOOKED.store(true, Ordering::Release);
}

/// Whether the running program can be started to run queries.
pub(crate) fn is_hooked() -> bool {
    HOOKED.load(Ordering::Acquire)
}

fn work() -> i32 {
    let answer = match answer() {
        Ok(rows) => Answer::Result(rows),
        Err(failure) => Answer::Failed(failure),
    };
    let Ok(text) = serde_json::to_vec(&answer) else { return 1 };
    let mut output = io::stdout().lock();
    // Nobody reads it if the server has ended.
    i32::from(output.write_all(&text).and_then(|()| output.flush()).is_err())
}

fn answer() -> Result<QueryResult, Failure> {
    let mut input = BufReader::with_capacity(256 << 10, io::stdin().lock());
    let mut line = Vec::new();
    let read = input.read_until(b'\n', &mut line);
    let unreadable = || Failure::new(FailureKind::Version, "the request cannot be read");
    read.map_err(|_| unreadable())?;
    let request: Request = serde_json::from_slice(&line).map_err(|_| unreadable())?;
    if request.version != VERSION {
        return Err(unreadable());
    }
    let watch = Watch::new(request.limits.time);
    let mut connection = match &request.database {
        Some(path) => engine::open_database(path, &request.limits, &watch)?,
        None => engine::open(&request.limits, &watch)?,
    };
    let mut tables = Vec::new();
    for file in &request.files {
        let chunks = ChunkReader::new(&mut input);
        tables.push(load::load(&connection, file, chunks, &watch)?);
    }
    if request.database.is_none() {
        engine::tell_sizes(&connection, &tables)?;
    }
    engine::close_to_writes(&mut connection, &watch)?;
    let run = match &request.sql {
        Some(sql) => query::run(&connection, sql, &request.limits, &watch),
        None => Ok(QueryResult { counted: true, ..QueryResult::default() }),
    };
    match run {
        Ok(rows) => Ok(QueryResult { tables, ..rows }),
        Err(failure) => Err(Failure { tables, ..failure }),
    }
}
