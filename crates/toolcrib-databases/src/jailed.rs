//! Runs a query in a process of its own, in a jail, within its time.

use std::io::{self, Read as _};
use std::path::PathBuf;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::time::sleep;
use toolcrib_sandbox::jail::has_helper;
use toolcrib_sandbox::{
    Capture, Child, ChildExit, ChildStdin, ChildStdout, Command, Confinement, ControlPlane, Limits,
    NO_PROGRAMS, OpenFile, Profile, STARTS_PROGRAMS, SpawnError, spawn,
};
use toolcrib_tool::{CallContext, ErrorKind, ToolError};

use crate::answer::described;
use crate::protocol::{Answer, CHUNK, Failure, FailureKind, QueryResult, Request};
use crate::worker::{ARGUMENT, is_hooked};

/// How much longer than its own limit a process may take before it is ended.
const GRACE: Duration = Duration::from_secs(2);

/// The longest answer, in bytes.
const LONGEST_ANSWER: u64 = 16 << 20;

/// Address space of a process beyond the memory of its query: the program, its libraries and what is read.
const PROGRAM_MEMORY: u64 = 768 << 20;

/// Checks that processes for queries can be started and confined; fails with the reason.
pub(crate) fn available() -> Result<(), String> {
    if !STARTS_PROGRAMS {
        return Err(NO_PROGRAMS.to_owned());
    }
    if !is_hooked() {
        return Err("this program does not call `toolcrib_databases::worker_hook`".to_owned());
    }
    if !has_helper() {
        return Err("needs the helper `toolcrib-jail` beside the program that offers it".to_owned());
    }
    Ok(())
}

/// A query and what its process gets.
pub(crate) struct JailedQuery {
    pub(crate) request: Request,
    /// The files, in the order of the request.
    pub(crate) files: Vec<OpenFile>,
    /// Files that it may open to read.
    pub(crate) readable: Vec<PathBuf>,
    /// The most bytes of each file that the process writes.
    pub(crate) disk: u64,
}

impl JailedQuery {
    /// Starts the process, and returns its result. However this ends, the process has ended.
    pub(crate) async fn run(
        self,
        plane: Option<&ControlPlane>,
        cx: &CallContext,
    ) -> Result<QueryResult, ToolError> {
        let limit = self.request.limits.time;
        let command = self.command(plane).map_err(|error| {
            ToolError::unavailable("the running program cannot be found").with_source(error)
        })?;
        let Child { process, input, output, .. } = spawn(&command).await.map_err(not_started)?;
        let Self { request, files, .. } = self;
        let exchange = async {
            // If the process ends early, its answer says why.
            let (_, answer) = tokio::join!(feed(input, request, files), receive(output));
            answer
        };
        let answer = tokio::select! {
            answer = exchange => Some(answer),
            () = sleep(limit.saturating_add(GRACE)) => None,
            () = cx.cancelled() => None,
        };
        let patience = if answer.is_some() { Duration::from_millis(500) } else { Duration::ZERO };
        let ended = process.stop(patience).await;
        let Some(answer) = answer else {
            let is_late =
                cx.deadline().is_some_and(|deadline| std::time::Instant::now() >= deadline);
            return Err(if cx.is_cancelled() && !is_late {
                ToolError::new(ErrorKind::Cancelled, "the query was ended with the call")
            } else {
                timed_out(limit)
            });
        };
        match answer.as_deref().map(serde_json::from_slice) {
            Ok(Ok(Answer::Result(rows))) => Ok(rows),
            Ok(Ok(Answer::Failed(failure))) => Err(explained(failure, limit)),
            Ok(Err(_)) | Err(_) => Err(without_answer(&ended)),
        }
    }

    fn command(&self, plane: Option<&ControlPlane>) -> io::Result<Command> {
        let mut limits = Limits::of(Profile::Pure);
        limits.memory = Some(self.request.limits.memory.saturating_add(PROGRAM_MEMORY));
        limits.file_size = Some(self.disk);
        limits.cpu = self.request.limits.time.checked_add(GRACE);
        let mut confinement = Confinement::new(Profile::Pure).limits(limits).writable_scratch();
        for file in &self.readable {
            confinement = confinement.read(file);
        }
        if let Some(plane) = plane {
            confinement = confinement.control_plane(plane);
        }
        Ok(Command::new(program()?)
            .arg(ARGUMENT)
            .env("PATH", "/usr/bin:/bin")
            .env("LANG", "C.UTF-8")
            .env("TZ", "UTC")
            .cwd_in_scratch()
            .capture_stderr(Capture { head: 4 << 10, tail: 4 << 10 })
            .grace(Duration::ZERO)
            .confine(confinement))
    }
}

/// The running program. If its file was replaced, the new one: it checks that it has the same version.
fn program() -> io::Result<PathBuf> {
    let path = std::env::current_exe()?;
    match path.to_str().and_then(|path| path.strip_suffix(" (deleted)")) {
        Some(replaced) if !path.exists() => Ok(replaced.into()),
        _ => Ok(path),
    }
}

/// Writes the request and the files to the process.
async fn feed(mut input: ChildStdin, request: Request, files: Vec<OpenFile>) -> io::Result<()> {
    let mut line = serde_json::to_vec(&request)?;
    line.push(b'\n');
    input.write_all(&line).await?;
    let (sender, mut chunks) = mpsc::channel(2);
    // It ends when the file ends, or when nobody takes the next chunk.
    let reading = tokio::task::spawn_blocking(move || read_files(files, &sender));
    while let Some(chunk) = chunks.recv().await {
        input.write_all(&chunk).await?;
    }
    reading.await.map_err(io::Error::other)?
}

/// Reads the files as chunks of the protocol. A file that grows meanwhile is read as long as it was.
fn read_files(files: Vec<OpenFile>, sender: &mpsc::Sender<Vec<u8>>) -> io::Result<()> {
    for file in files {
        let mut rest = file.size();
        let mut file = file;
        loop {
            let mut chunk = vec![0; 4];
            let want = rest.min(CHUNK as u64);
            let read = file.by_ref().take(want).read_to_end(&mut chunk)? as u64;
            let length = u32::try_from(read).map_err(io::Error::other)?;
            chunk[..4].copy_from_slice(&length.to_le_bytes());
            if sender.blocking_send(chunk).is_err() {
                return Ok(());
            }
            if read == 0 {
                break;
            }
            rest -= read;
        }
    }
    Ok(())
}

async fn receive(output: ChildStdout) -> io::Result<Vec<u8>> {
    let mut answer = Vec::new();
    let mut bounded = output.take(LONGEST_ANSWER);
    bounded.read_to_end(&mut answer).await?;
    Ok(answer)
}

/// Translates a failed start into a tool error.
fn not_started(error: SpawnError) -> ToolError {
    let retryable = error.is_shortage();
    ToolError::unavailable(error.to_string()).with_retryable(retryable).with_source(error)
}

fn timed_out(limit: Duration) -> ToolError {
    let why =
        format!("the query took longer than its limit of {} s and was ended", limit.as_secs_f64());
    ToolError::new(ErrorKind::Timeout, why).with_hint(
        "Read fewer or smaller files, select fewer rows, or join on columns with equality.",
    )
}

/// A process that ended without an answer, most likely at a limit.
fn without_answer(ended: &ChildExit) -> ToolError {
    let said = ended.stderr.text();
    let last = said.trim_end().lines().last().unwrap_or_default();
    let how = ended.status.signal_name().unwrap_or("no signal");
    match ended.status.signal() {
        Some(_) => ToolError::execution(format!(
            "the query ran out of memory, disk space or processor time ({how})"
        ))
        .with_hint("Select fewer columns and rows, or aggregate before you join."),
        None => ToolError::internal(format!("the query's process gave no answer: {last}")),
    }
}

/// A failure that the process reported, with what helps to correct the query.
fn explained(failure: Failure, limit: Duration) -> ToolError {
    let Failure { kind, message, tables } = failure;
    let tables = || {
        if tables.is_empty() {
            return "`describe_database` shows tables, columns and types.".to_owned();
        }
        format!("The tables are:\n{}", described(&tables))
    };
    match kind {
        FailureKind::Refused => ToolError::denied(format!("Only SELECT queries allowed: {message}"))
            .with_hint("Write one SELECT statement."),
        FailureKind::Sql => ToolError::execution(format!("the query is wrong: {message}"))
            .with_hint(tables())
            .with_hint("The dialect is SQLite's. Names with other characters are in double quotes, texts in single."),
        FailureKind::File => ToolError::execution(message)
            .with_hint("Look at the file with a file tool. Files are read as their names say: csv, tsv, json, jsonl."),
        FailureKind::Database => ToolError::unavailable(message)
            .with_hint("Tell the user: `databases` of the server's settings names it."),
        FailureKind::Time => timed_out(limit).with_note("reason", message),
        FailureKind::Size => ToolError::execution(format!("the query needs too much memory or disk space: {message}"))
            .with_hint("Select fewer columns and rows, or aggregate before you join."),
        FailureKind::Version => ToolError::unavailable("the server's program was replaced while it runs")
            .with_hint("Tell the user that the server has to be restarted."),
    }
}
