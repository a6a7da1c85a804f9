//! A PostgreSQL server of the test's own, on a socket in a temporary folder.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

/// A running server; dropping it ends it.
pub(crate) struct Server {
    folder: TempDir,
    process: Child,
}

/// The folder of the server's programs, if it is installed.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    versions.map(|version| version.path().join("bin")).find(|bin| bin.join("initdb").is_file())
}

/// The program as a user other than root, as which it refuses to run.
fn command(program: &Path) -> Command {
    #[expect(clippy::disallowed_methods, reason = "a server beside the test, not a tool's program")]
    let new = |program: &Path| Command::new(program);
    let mut command = if rustix::process::geteuid().is_root() {
        let mut command = new(Path::new("setpriv"));
        command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups"]).arg(program);
        command
    } else {
        new(program)
    };
    command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

impl Server {
    /// Starts a server, or says why there is none.
    pub(crate) fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            eprintln!("skipped: PostgreSQL is not installed");
            return None;
        };
        let folder = tempfile::Builder::new().prefix("tc-pg").tempdir_in("/tmp").expect("a folder");
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(folder.path(), open).expect("it is ours");
        let data = folder.path().join("data");
        let made = command(&programs.join("initdb"))
            .args([
                "-U",
                "owner",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--no-sync",
                "--no-instructions",
                "-D",
            ])
            .arg(&data)
            .status();
        assert!(made.is_ok_and(|made| made.success()), "a cluster can be made");
        let process = command(&programs.join("postgres"))
            .arg("-D")
            .arg(&data)
            .arg("-k")
            .arg(folder.path())
            .args(["-h", "", "-F", "-c", "shared_buffers=16MB", "-c", "max_connections=20"])
            .spawn()
            .expect("the server starts");
        Some(Self { folder, process })
    }

    /// The URL of a database for a role.
    pub(crate) fn url(&self, role: &str, database: &str) -> String {
        let folder = self.folder.path().display().to_string().replace('/', "%2F");
        format!("postgres://{role}@{folder}/{database}")
    }

    /// Runs statements as the owner, once the server answers.
    pub(crate) async fn run(&self, database: &str, statements: &str) {
        for _ in 0..300 {
            if let Ok((client, connection)) =
                tokio_postgres::connect(&self.url("owner", database), tokio_postgres::NoTls).await
            {
                let driver = tokio::spawn(connection);
                client.batch_execute(statements).await.expect("the statements are right");
                drop(client);
                let _ = driver.await;
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("the server does not answer");
    }

    /// The only value of a query, as the owner.
    pub(crate) async fn value(&self, database: &str, sql: &str) -> String {
        let url = self.url("owner", database);
        let connecting = tokio_postgres::connect(&url, tokio_postgres::NoTls);
        let (client, connection) = connecting.await.expect("it answers");
        let driver = tokio::spawn(connection);
        let value: String = client.query_one(sql, &[]).await.expect("a row").get(0);
        drop(client);
        let _ = driver.await;
        value
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let pid = i32::try_from(self.process.id()).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
        }
        for _ in 0..100 {
            if matches!(self.process.try_wait(), Ok(Some(_)) | Err(_)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
