//! The private socket of a server: its owner has every right there without a token, and nobody else
//! is admitted.

use std::io;
use std::path::Path;

use tokio::net::{UnixListener, UnixStream};

use crate::HttpError;
use crate::serving::unix_socket;
use crate::serving::unix_socket::SocketFile;

/// The user id of root.
const ROOT: u32 = 0;

/// A Unix socket at which the owner of a server operates it.
///
/// It serves the same routes as the public listener to processes of this user and of root, without
/// a token and with every right. The kernel reports the peer's user (`SO_PEERCRED`); connections of
/// others are closed before a byte is read. The socket has mode 0600 and is removed when the server
/// ends.
#[derive(Debug)]
pub struct OwnerSocket {
    listener: UnixListener,
    file: SocketFile,
}

impl OwnerSocket {
    /// Creates the socket at `path` and listens. A stale socket of an earlier server is replaced.
    ///
    /// Fails if others can write to the directory, if another server answers at the path
    /// ([`HttpError::is_taken`]), or if the path is longer than 107 bytes. Must be called on a
    /// runtime with I/O and time enabled.
    pub async fn bind(path: &Path) -> Result<Self, HttpError> {
        let (listener, file) = unix_socket::bind(path).await?;
        Ok(Self { listener, file })
    }

    /// Removes stale sockets from a directory: those among `names` without a listener, and links to
    /// them. Sockets of servers that start at the same time are kept.
    pub async fn sweep(directory: &Path, names: impl Fn(&Path) -> bool) -> std::io::Result<()> {
        unix_socket::sweep(directory, names).await
    }

    /// The path of the socket.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// The next connection of the owner.
    pub(crate) async fn accept(&self) -> io::Result<UnixStream> {
        loop {
            let (stream, _) = self.listener.accept().await?;
            match stream.peer_cred() {
                Ok(peer) if may_operate(peer.uid()) => return Ok(stream),
                Ok(peer) => tracing::warn!(
                    user = peer.uid(),
                    "closed a connection of another user to the owner's socket"
                ),
                Err(error) => tracing::warn!(
                    %error,
                    "closed a connection to the owner's socket whose user is unknown"
                ),
            }
        }
    }

    /// Stops listening. The file is removed first: a client that still finds it finds a server.
    pub(crate) fn close(self) {
        drop(self.file);
        drop(self.listener);
    }
}

/// Whether a process of this user may operate the server, and may be the server of this process.
pub(crate) fn may_operate(user: u32) -> bool {
    user == rustix::process::geteuid().as_raw() || user == ROOT
}

#[cfg(test)]
mod tests {
    use super::may_operate;

    #[test]
    fn only_the_servers_user_and_root_may_operate_it() {
        let own = rustix::process::geteuid().as_raw();
        assert!(may_operate(own) && may_operate(0));
        assert!(!may_operate(own + 1) && !may_operate(65_534));
    }
}
