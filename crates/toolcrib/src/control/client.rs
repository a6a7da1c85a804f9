//! The other side: which servers run, and asking them.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::{ControlPlace, ControlRequest};

/// How long an answer may take: a reload of thousands of files included.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server that runs with a config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningServer {
    /// Its process.
    pub pid: u32,
    socket: PathBuf,
}

/// The servers of a place, by process number. The socket of one that is gone without cleaning up is
/// removed. Where there is no such directory, none runs.
pub fn running_servers(place: &ControlPlace) -> io::Result<Vec<RunningServer>> {
    let entries = match fs::read_dir(place.path()) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut servers = Vec::new();
    for entry in entries {
        let socket = entry?.path();
        let name = socket.file_name().and_then(|name| name.to_str());
        let number = name.and_then(|name| name.strip_suffix(".sock")?.split('.').next());
        let pid = number.and_then(|number| number.parse().ok());
        let Some(pid) = pid else { continue };
        match UnixStream::connect(&socket) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                // Nobody listens, and nobody ever will: the name is of a process that is gone.
                let _ = fs::remove_file(&socket);
            }
            _ => servers.push(RunningServer { pid, socket }),
        }
    }
    servers.sort_by_key(|server| server.pid);
    Ok(servers)
}

impl RunningServer {
    /// Asks, and waits for the answer: at most 30 seconds. What the server refuses is an error with
    /// its words.
    pub fn ask(&self, request: &ControlRequest) -> io::Result<Value> {
        let mut stream = UnixStream::connect(&self.socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut line = serde_json::to_string(request)?;
        line.push('\n');
        stream.write_all(line.as_bytes())?;
        let mut answer = String::new();
        if BufReader::new(&stream).read_line(&mut answer)? == 0 {
            let message = "the server closed the connection without an answer";
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, message));
        }
        let answer: Value = serde_json::from_str(&answer)?;
        match answer.get("error").and_then(Value::as_str) {
            Some(error) => Err(io::Error::other(error.to_owned())),
            None => Ok(answer),
        }
    }
}
