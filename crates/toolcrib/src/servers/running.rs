//! The running servers of a config: each creates its socket in the config's socket folder, and is
//! found there.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use toolcrib_http::{HttpError, OwnerClient, OwnerSocket};

use super::SocketFolder;
use super::place::is_private;
use crate::stores::private_dir;

/// The maximum number of servers with the same process number, in containers that share a
/// directory.
const SAME_NUMBER: u32 = 16;

/// A server that runs with a config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningServer {
    /// Its process number.
    pub pid: u32,
    /// The path of its socket.
    pub socket: PathBuf,
    /// A client with all rights.
    pub client: OwnerClient,
}

impl SocketFolder {
    /// Creates the private socket of this process: `<pid>.sock` in a directory that others cannot enter, which is
    /// created if necessary. If a server with the same number exists, in a container that shares the directory, the
    /// name is `<pid>.1.sock`, and so on.
    ///
    /// Fails if others can enter the directory, if it cannot be created, or if the socket's path is longer than 107
    /// bytes. Must be called on a runtime with I/O and time enabled.
    pub async fn open_socket(&self) -> Result<OwnerSocket, HttpError> {
        let unusable = |error: io::Error| HttpError::Socket {
            path: self.path().to_owned(),
            problem: error.to_string(),
        };
        self.folders.iter().try_for_each(|folder| private_dir(folder)).map_err(unusable)?;
        // Left by a killed server: no command has looked for servers since.
        let is_ours = |name: &Path| process_of(name).is_some();
        if let Err(error) = OwnerSocket::sweep(self.path(), is_ours).await {
            tracing::debug!(%error, "the sockets of servers that are gone stay");
        }
        let number = std::process::id();
        let mut opened = OwnerSocket::bind(&self.path().join(format!("{number}.sock"))).await;
        for at in 1..SAME_NUMBER {
            if !matches!(&opened, Err(error) if error.is_taken()) {
                break;
            }
            opened = OwnerSocket::bind(&self.path().join(format!("{number}.{at}.sock"))).await;
        }
        opened
    }

    /// Creates links to this server's socket where commands with the same config but another state folder look for it.
    /// They are removed when the returned value is dropped, with folders that are empty then. Unusable folders are
    /// skipped.
    pub fn announce(&self, socket: &OwnerSocket) -> Announcement {
        let mut links = Vec::new();
        let Ok(socket) = fs::canonicalize(socket.path()) else { return Announcement(links) };
        let Some(name) = socket.file_name() else { return Announcement(links) };
        for folders in &self.links {
            let made = folders.iter().try_for_each(|folder| private_dir(folder));
            let Some(link) = folders.last().map(|folder| folder.join(name)) else { continue };
            let _ = fs::remove_file(&link);
            match made.and_then(|()| symlink(&socket, &link)) {
                Ok(()) => links.push(AnnouncedLink { link, folders: folders.clone() }),
                Err(error) => tracing::debug!(
                    link = %link.display(), %error,
                    "no link to the owner's socket: commands with another state folder do not find this \
                     server here"
                ),
            }
        }
        Announcement(links)
    }
}

/// Links to a server's socket, removed on drop.
#[derive(Debug, Default)]
#[must_use = "the links are removed when this is dropped"]
pub struct Announcement(Vec<AnnouncedLink>);

#[derive(Debug)]
struct AnnouncedLink {
    link: PathBuf,
    /// The folders that were made for it, outermost first.
    folders: Vec<PathBuf>,
}

impl Drop for Announcement {
    fn drop(&mut self) {
        for AnnouncedLink { link, folders } in &self.0 {
            let _ = fs::remove_file(link);
            // A folder with anything in it stays.
            for folder in folders.iter().rev() {
                let _ = fs::remove_dir(folder);
            }
        }
    }
}

/// The servers of a socket folder, by process number, including those with another state folder, which leave links.
/// Sockets and links of ended servers are removed. If no directory exists, no server runs.
pub fn running_servers(place: &SocketFolder) -> io::Result<Vec<RunningServer>> {
    let mut servers = servers_in(place.path())?;
    for folder in place.searched().skip(1).filter(|folder| is_private(folder)) {
        // Nobody configured this folder, so errors are ignored.
        for server in servers_in(folder).unwrap_or_default() {
            if !servers.iter().any(|known| known.socket == server.socket) {
                servers.push(server);
            }
        }
    }
    servers.sort_by_key(|server| server.pid);
    Ok(servers)
}

fn servers_in(folder: &Path) -> io::Result<Vec<RunningServer>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    // The server may run as the user who owns this folder.
    let owner = fs::metadata(folder)?.uid();
    let mut servers = Vec::new();
    for entry in entries {
        let found = entry?.path();
        let Some(pid) = process_of(&found) else { continue };
        let socket = fs::canonicalize(&found);
        let gone = match &socket {
            // Nobody listens: the name belongs to a process that has ended.
            Ok(socket) => UnixStream::connect(socket)
                .is_err_and(|error| matches!(error.kind(), io::ErrorKind::ConnectionRefused)),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        if gone {
            let _ = fs::remove_file(&found);
        } else if let Ok(socket) = socket {
            let client = OwnerClient::new(socket.clone()).owner(owner);
            servers.push(RunningServer { pid, socket, client });
        }
    }
    Ok(servers)
}

/// The process number in the name of a socket.
fn process_of(socket: &Path) -> Option<u32> {
    socket.file_name()?.to_str()?.strip_suffix(".sock")?.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::ConfigLayers;

    #[tokio::test]
    async fn a_server_of_the_same_process_number_keeps_its_socket() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        let state = state.to_str().unwrap().into();
        let loaded = ConfigLayers::new().value("test", &["state", "dir"], state).load().unwrap();
        let place = SocketFolder::of(&loaded).unwrap();
        let number = std::process::id();
        let first = place.open_socket().await.unwrap();
        let second = place.open_socket().await.unwrap();
        let found =
            || running_servers(&place).unwrap().iter().map(|one| one.pid).collect::<Vec<_>>();
        assert_eq!(found(), [number, number]);
        drop(first);
        assert_eq!(found(), [number]);
        // A socket that an ended process left behind.
        drop(std::os::unix::net::UnixListener::bind(place.path().join("1.sock")).unwrap());
        assert_eq!(found(), [number]);
        let third = place.open_socket().await.unwrap();
        assert_eq!(found(), [number, number]);
        drop((second, third));
        assert!(found().is_empty());
    }
}
