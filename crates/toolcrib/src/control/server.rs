//! The server's side: a socket that answers one request after another.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

use super::answer::{answered, failed};
use super::{ControlPlace, ControlRequest, LINE_MAX_BYTES};
use crate::Toolcrib;
use crate::stores::private_dir;

/// Servers of one process number, in containers that share a directory.
const SAME_NUMBER: u32 = 16;
/// Connections at the same time; more wait.
const CONNECTIONS: usize = 8;

/// The socket of this process. Dropping it removes it.
#[derive(Debug)]
pub struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl ControlSocket {
    /// Opens the socket, `<pid>.sock` in a directory that others cannot enter, made if it is not there.
    /// Another server of this number, in a container that shares the directory, keeps its own; this one's
    /// is `<pid>.1.sock` then.
    ///
    /// Fails if others can, if it cannot be made, and if its path is longer than a socket's may be
    /// (about 100 bytes). Must be called on a runtime with I/O.
    pub fn open(place: &ControlPlace) -> io::Result<Self> {
        for folder in &place.folders {
            private_dir(folder)?;
        }
        let number = std::process::id();
        let names = (0..SAME_NUMBER).map(|at| match at {
            0 => format!("{number}.sock"),
            at => format!("{number}.{at}.sock"),
        });
        let mut paths = names.map(|name| place.path().join(name));
        let path = paths.find(|path| !is_answered(path)).ok_or_else(|| {
            io::Error::other(format!("{SAME_NUMBER} servers have the process number {number}"))
        })?;
        // Of a process of this number that has not cleaned up.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&path).map_err(|error| {
            io::Error::new(error.kind(), format!("the socket {}: {error}", path.display()))
        })?;
        Ok(Self { listener, path })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Answers requests about a crib until it is dropped.
    pub async fn serve(self, crib: Toolcrib) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if connections.len() < CONNECTIONS => {
                    match accepted {
                        Ok((stream, _)) => drop(connections.spawn(converse(stream, crib.clone()))),
                        // Out of descriptors, for example: somebody may close some.
                        Err(error) => {
                            tracing::warn!("the control socket: {error}");
                            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
                        }
                    }
                }
                Some(_) = connections.join_next() => {}
            }
        }
    }
}

/// Whether a server listens there.
fn is_answered(path: &Path) -> bool {
    std::os::unix::net::UnixStream::connect(path).is_ok()
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Answers the requests of one connection. Whoever asks nothing readable is told so, and left.
async fn converse(mut stream: UnixStream, crib: Toolcrib) {
    let (read, mut write) = stream.split();
    let mut read = BufReader::new(read);
    loop {
        let mut line = Vec::new();
        let length = (&mut read).take(LINE_MAX_BYTES).read_until(b'\n', &mut line).await;
        if !matches!(length, Ok(1..)) {
            return;
        }
        let (answer, is_last) = match serde_json::from_slice::<ControlRequest>(&line) {
            Ok(request) => (answer(crib.clone(), request).await, false),
            Err(error) => (failed(&format!("this is no request: {error}")), true),
        };
        let mut line = answer.to_string();
        line.push('\n');
        if write.write_all(line.as_bytes()).await.is_err() || is_last {
            return;
        }
    }
}

async fn answer(crib: Toolcrib, request: ControlRequest) -> Value {
    // Reads files, perhaps thousands.
    let work = tokio::task::spawn_blocking(move || answered(&crib, &request));
    work.await.unwrap_or_else(|error| failed(&format!("it could not be done: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ConfigLayers;
    use crate::control::{ControlPlace, running_servers};

    #[tokio::test]
    async fn a_server_of_the_same_process_number_keeps_its_socket() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        let state = state.to_str().unwrap().into();
        let loaded = ConfigLayers::new().value("test", &["state", "dir"], state).load().unwrap();
        let place = ControlPlace::of(&loaded).unwrap();
        let number = std::process::id();
        let first = ControlSocket::open(&place).unwrap();
        let second = ControlSocket::open(&place).unwrap();
        let found =
            || running_servers(&place).unwrap().iter().map(|one| one.pid).collect::<Vec<_>>();
        assert_eq!(found(), [number, number]);
        drop(first);
        assert_eq!(found(), [number]);
        // One that was left behind is nobody's.
        drop(std::os::unix::net::UnixListener::bind(place.path().join("1.sock")).unwrap());
        assert_eq!(found(), [number]);
        let third = ControlSocket::open(&place).unwrap();
        assert_eq!(found(), [number, number]);
        drop((second, third));
        assert!(found().is_empty());
    }
}
