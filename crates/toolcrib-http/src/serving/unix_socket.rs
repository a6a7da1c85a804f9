//! Unix sockets that only their owner can use, held by one server at a time and removed with it.

use std::fs::{self, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::{UnixListener, UnixSocket};
use tokio::time::{Instant, sleep};

use crate::{HttpError, Listen};

/// The longest socket path in bytes that all supported systems accept.
const PATH_MAX: usize = 107;
/// The maximum number of connections that wait to be accepted.
const BACKLOG: u32 = 1024;
/// How long to wait while another server creates its socket in the same directory.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// The file of a socket. Dropping it removes the file, unless another server has replaced it.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// Device and inode.
    identity: (u64, u64),
}

impl SocketFile {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|now| now == self.identity) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Listens at `path`. A stale socket of an earlier server is replaced.
pub(crate) async fn bind(path: &Path) -> Result<(UnixListener, SocketFile), HttpError> {
    let directory = directory(path)?;
    let system = |source| HttpError::Bind { listen: Listen::Unix(path.to_owned()), error: source };
    // Held so that servers that start at the same time do not mistake each other's socket for a
    // stale one.
    let _turn = lock_directory(directory).await.map_err(system)?;
    remove_stale(path)?;
    let socket = UnixSocket::new_stream().map_err(system)?;
    socket.bind(path).map_err(system)?;
    let file = SocketFile { path: path.to_owned(), identity: identity(path).map_err(system)? };
    // Nobody can connect before `listen`, and by then the mode is set.
    fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(system)?;
    Ok((socket.listen(BACKLOG).map_err(system)?, file))
}

/// Removes the stale sockets of a directory, and links to sockets: those among `names` without a
/// listener. Sockets that are being created are not touched.
pub(crate) async fn sweep(directory: &Path, names: impl Fn(&Path) -> bool) -> io::Result<()> {
    let _turn = lock_directory(directory).await?;
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if !names(&path) {
            continue;
        }
        let is_left = match fs::metadata(&path) {
            Ok(found) => {
                found.file_type().is_socket()
                    && std::os::unix::net::UnixStream::connect(&path)
                        .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
            }
            // A dangling link.
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        if is_left {
            let _ = fs::remove_file(&path);
        }
    }
    Ok(())
}

/// The directory of a socket, if nobody else can replace the socket in it.
fn directory(path: &Path) -> Result<&Path, HttpError> {
    let problem = |problem: String| HttpError::Socket { path: path.to_owned(), problem };
    if path.as_os_str().len() > PATH_MAX {
        return Err(problem(format!(
            "the path of a socket may have at most {PATH_MAX} bytes: choose a shorter one"
        )));
    }
    let Some(directory) = path.parent().filter(|_| path.file_name().is_some()) else {
        return Err(problem("it names no file".to_owned()));
    };
    let said =
        |error: io::Error| problem(format!("the directory {}: {error}", directory.display()));
    let found = fs::metadata(directory).map_err(said)?;
    if !found.is_dir() {
        return Err(problem(format!("{} is not a directory", directory.display())));
    }
    let own = rustix::process::geteuid().as_raw();
    match weakness(found.permissions().mode(), found.uid(), own) {
        Some(weakness) => Err(problem(format!(
            "the directory {} {weakness}, so others could place their own socket there: use a \
             directory of your own, such as $XDG_RUNTIME_DIR, or one made with `mkdir -m 700`",
            directory.display(),
        ))),
        None => Ok(directory),
    }
}

/// Why somebody other than the user `own` and root could change a directory with this mode and
/// owner.
fn weakness(mode: u32, owner: u32, own: u32) -> Option<String> {
    if owner != own && owner != 0 {
        return Some(format!("belongs to the user {owner}"));
    }
    // The sticky bit does not help: others could create the socket first.
    (mode & 0o022 != 0).then(|| format!("has mode {:03o}", mode & 0o7777))
}

/// A lock held while a socket is created; other servers that create one in the same directory wait.
async fn lock_directory(directory: &Path) -> io::Result<File> {
    let directory = File::open(directory)?;
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        match directory.try_lock() {
            Ok(()) => return Ok(directory),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if Instant::now() > deadline => {
                let message = "another process holds a lock on its directory";
                return Err(io::Error::new(io::ErrorKind::WouldBlock, message));
            }
            Err(TryLockError::WouldBlock) => sleep(Duration::from_millis(20)).await,
        }
    }
}

/// What exists at the path of a new socket.
enum PathState {
    Free,
    /// The stale socket of an earlier server.
    StaleSocket,
}

/// Checks that a socket could be created now.
pub(crate) fn try_out(path: &Path) -> Result<(), HttpError> {
    directory(path)?;
    inspect(path).map(|_| ())
}

/// Removes a stale socket. Anything else stays.
fn remove_stale(path: &Path) -> Result<(), HttpError> {
    match inspect(path)? {
        PathState::Free => Ok(()),
        PathState::StaleSocket => fs::remove_file(path).map_err(|error| HttpError::Socket {
            path: path.to_owned(),
            problem: format!("the stale socket of an earlier server cannot be removed: {error}"),
        }),
    }
}

fn inspect(path: &Path) -> Result<PathState, HttpError> {
    let problem = |problem: String| HttpError::Socket { path: path.to_owned(), problem };
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(PathState::Free),
        found => found.map_err(|error| problem(error.to_string()))?,
    };
    if !found.file_type().is_socket() {
        let said = "the path exists but is not a socket: choose another path";
        return Err(problem(said.to_owned()));
    }
    match std::os::unix::net::UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            Ok(PathState::StaleSocket)
        }
        Ok(_) => {
            let source = io::Error::new(io::ErrorKind::AddrInUse, "a server answers there");
            Err(HttpError::Bind { listen: Listen::Unix(path.to_owned()), error: source })
        }
        Err(error) => Err(problem(format!(
            "the path is a socket, but it is unknown whether a server listens there: {error}"
        ))),
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|found| (found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_directory_must_belong_to_the_user_or_root_and_be_writable_by_nobody_else() {
        for (mode, owner) in [(0o700, 7), (0o755, 7), (0o755, 0), (0o2750, 7)] {
            assert_eq!(weakness(0o40_000 | mode, owner, 7), None);
        }
        for (mode, owner, why) in [
            (0o700, 8, "belongs to the user 8"),
            (0o755, 8, "belongs to the user 8"),
            (0o770, 7, "mode 770"),
            (0o702, 0, "mode 702"),
            (0o1777, 0, "mode 1777"),
        ] {
            let weakness = weakness(0o40_000 | mode, owner, 7).unwrap();
            assert!(weakness.contains(why), "{weakness}");
        }
        // Root trusts no directory of another user.
        assert!(weakness(0o40_700, 7, 0).is_some());
    }
}
