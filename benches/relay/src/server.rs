//! The servers, each a process of its own.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::Failure;
use crate::relay::WORD;

/// A server, which ends when it is dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
    /// The folder of ours.
    _folder: Option<TempDir>,
}

impl Server {
    /// The relay: this program, started again.
    pub(crate) fn relay(model: SocketAddr) -> Result<Self, Failure> {
        let mut command = command(std::env::current_exe()?);
        command.args([WORD, &model.to_string()]);
        Self::start(command, None, |line| Ok(line.trim().parse()?))
    }

    /// `toolcrib serve` with its settings as they are, and a journal on the disk.
    pub(crate) fn ours(program: &OsStr, model: SocketAddr) -> Result<Self, Failure> {
        // Not below /tmp, which may be in memory.
        let folder = TempDir::new_in(std::env::current_exe()?.parent().ok_or("no folder")?)?;
        let config = json!({
            "providers": {"script": {"kind": "responses", "base_url": format!("http://{model}/v1"), "models": {"scripted": {}}}},
            "agents": {"default": {"model": "script/scripted"}},
            "workspace": {"root": "workspace"},
            "state": {"dir": "state"},
        });
        fs::create_dir(folder.path().join("workspace"))?;
        fs::create_dir(folder.path().join("tools.d"))?;
        fs::write(folder.path().join("config.yml"), config.to_string())?;
        let mut command = command(program);
        command.args(["serve", "--listen", "127.0.0.1:0", "--no-auth", "--json"]);
        command.current_dir(folder.path()).env("HOME", folder.path());
        command
            .env("XDG_STATE_HOME", folder.path().join("own"))
            .env("XDG_RUNTIME_DIR", folder.path());
        command.env_remove("TOOLCRIB_TOKEN");
        command.stderr(File::create(folder.path().join("said"))?);
        Self::start(command, Some(folder), |line| {
            let said: Value = serde_json::from_str(line)?;
            let url = said["api"].as_str().ok_or("the server has no address")?;
            Ok(url.rsplit(':').next().ok_or("the server has no port")?.parse()?)
        })
    }

    fn start(
        mut command: Command,
        folder: Option<TempDir>,
        port: impl Fn(&str) -> Result<u16, Failure>,
    ) -> Result<Self, Failure> {
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let mut server = Self { child, port: 0, _folder: folder };
        let output = server.child.stdout.take().ok_or("no output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        server.port = port(&line)?;
        Ok(server)
    }

    /// The time its threads have had a processor.
    pub(crate) fn processors(&self) -> Result<Duration, Failure> {
        let mut nanoseconds = 0;
        for thread in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            // One that has ended meanwhile is missed: the servers keep those that do the work.
            let Ok(times) = fs::read_to_string(thread?.path().join("schedstat")) else { continue };
            let first = times.split_whitespace().next().ok_or("an empty schedstat")?;
            nanoseconds += first.parse::<u64>()?;
        }
        Ok(Duration::from_nanos(nanoseconds))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only if it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[expect(clippy::disallowed_methods, reason = "servers of the bench's own, which it ends itself")]
fn command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}
