//! A server on a socket in the file system: its permissions, what it replaces, and that it is
//! removed.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::time::timeout;
use toolcrib_http::{HttpError, HttpServer, Listen, ServerConfig};

use crate::fixture::{TOKEN, config, served};

/// A directory of this test's alone, and a path in it.
fn place() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), Permissions::from_mode(0o700)).unwrap();
    let path = directory.path().join("crib.sock");
    (directory, path)
}

async fn bind(path: &Path) -> Result<HttpServer, HttpError> {
    let (crib, mcp) = served(Arc::default());
    HttpServer::bind(at(path), crib, mcp).await
}

fn at(path: &Path) -> ServerConfig {
    ServerConfig { listen: Listen::Unix(path.to_owned()), ..config() }
}

/// The status of an answer, over the socket.
async fn ask(path: &Path, token: &str, host: &str) -> u16 {
    let mut stream = UnixStream::connect(path).await.unwrap();
    let request = format!(
        "GET /v1/tools HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n\
         connection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let read = timeout(Duration::from_secs(20), stream.read_to_string(&mut answer)).await;
    read.expect("an answer in time").unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn it_is_its_owners_alone_answers_as_any_and_is_gone_at_the_end() {
    let (_directory, path) = place();
    let server = bind(&path).await.unwrap();
    assert_eq!((server.socket(), server.local_addr()), (Some(path.as_path()), None));
    assert_eq!(server.url(), "http://localhost");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(server.serve(async move { drop(stopped.await) }));
    assert_eq!(ask(&path, TOKEN, "localhost").await, 200);
    // The checks of all requests apply here too.
    assert_eq!(ask(&path, "not-the-token-of-anybody", "localhost").await, 401);
    assert_eq!(ask(&path, TOKEN, "evil.example").await, 403);
    stop.send(()).unwrap();
    timeout(Duration::from_secs(20), serving).await.expect("an end in time").unwrap().unwrap();
    assert!(!path.exists());
}

#[tokio::test]
async fn without_a_token_it_may_be_served_since_others_cannot_reach_it() {
    let (_directory, path) = place();
    let open = ServerConfig { token: None, no_auth: true, ..at(&path) };
    let (crib, mcp) = served(Arc::default());
    let server = HttpServer::bind(open, crib, mcp).await.unwrap();
    assert!(server.token().is_none());
}

#[tokio::test]
async fn what_a_dead_server_left_is_replaced_and_what_a_living_one_has_is_not() {
    let (_directory, path) = place();
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists(), "a listener that is dropped leaves its file");
    let first = bind(&path).await.unwrap();
    let refused = bind(&path).await.unwrap_err();
    assert!(refused.is_taken(), "{refused}");
    assert!(refused.to_string().contains("stop it, or choose another path"), "{refused}");
    assert!(at(&path).listen.try_out().is_err_and(|error| error.is_taken()));
    // A server that did not get it does not remove it.
    assert!(path.exists());
    drop(first);
    assert!(!path.exists());
    at(&path).listen.try_out().unwrap();
}

#[tokio::test]
async fn a_server_removes_its_own_socket_only() {
    let (_directory, path) = place();
    let server = bind(&path).await.unwrap();
    fs::remove_file(&path).unwrap();
    let other = UnixListener::bind(&path).unwrap();
    drop(server);
    assert!(path.exists());
    drop(other);
}

#[tokio::test]
async fn of_servers_that_start_at_once_one_has_the_socket() {
    let (_directory, path) = place();
    drop(UnixListener::bind(&path).unwrap());
    let starts: Vec<_> = (0..8)
        .map(|_| {
            let path = path.clone();
            tokio::spawn(async move { bind(&path).await })
        })
        .collect();
    let mut servers = Vec::new();
    for start in starts {
        match start.await.unwrap() {
            Ok(server) => servers.push(server),
            Err(error) => assert!(error.is_taken(), "{error}"),
        }
    }
    assert_eq!(servers.len(), 1);
}

#[tokio::test]
async fn a_place_that_others_can_change_or_that_is_no_place_is_refused() {
    let (directory, path) = place();
    let refused = |path: PathBuf| async move { bind(&path).await.unwrap_err().to_string() };
    let gone = refused(directory.path().join("gone/crib.sock")).await;
    assert!(gone.contains("gone: No such file"), "{gone}");
    let long = refused(directory.path().join("x".repeat(120))).await;
    assert!(long.contains("107 bytes"), "{long}");
    fs::write(&path, "somebody's").unwrap();
    let file = refused(path.clone()).await;
    assert!(file.contains("not a socket"), "{file}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "somebody's");
    fs::remove_file(&path).unwrap();
    for mode in [0o770, 0o1777] {
        fs::set_permissions(directory.path(), Permissions::from_mode(mode)).unwrap();
        let open = refused(path.clone()).await;
        assert!(open.contains("XDG_RUNTIME_DIR"), "{open}");
    }
}
