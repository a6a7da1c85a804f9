//! A folder with manifests, in which the binary is run.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

/// A folder with a `tools.d`.
pub(crate) struct Crib {
    dir: TempDir,
    home: TempDir,
    data: TempDir,
}

/// The output of a run, and how it ended.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Crib {
    /// Creates a crib with these manifests: file name → text.
    pub(crate) fn new(manifests: &[(&str, &str)]) -> Self {
        let folder = || tempfile::tempdir().expect("a temporary folder");
        let crib = Self { dir: folder(), home: folder(), data: folder() };
        fs::create_dir(crib.path().join("tools.d")).expect("tools.d");
        for (name, text) in manifests {
            crib.write(name, text);
        }
        crib
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path().join("tools.d").join(name), text).expect("a manifest");
    }

    pub(crate) fn config(&self, text: &str) {
        fs::write(self.path().join("config.yml"), text).expect("a config");
    }

    /// `XDG_RUNTIME_DIR` of its runs; it does not exist unless a test creates it.
    pub(crate) fn runtime_dir(&self) -> PathBuf {
        self.path().join("run")
    }

    /// `HOME` of its runs, so that no run sees or changes the developer's.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// A folder outside the workspace, for files that are not part of the crib.
    pub(crate) fn data(&self) -> &Path {
        self.data.path()
    }

    /// `XDG_STATE_HOME` of its runs.
    pub(crate) fn state_home(&self) -> PathBuf {
        self.home().join("state")
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::cargo_bin("toolcrib").expect("built");
        command.current_dir(self.path()).args(arguments);
        command.env_remove("TOOLCRIB_TOKEN").env("XDG_RUNTIME_DIR", self.runtime_dir());
        command.env("HOME", self.home()).env("XDG_STATE_HOME", self.state_home());
        command.env_remove("STATE_DIRECTORY");
        // The difficult case: programs work in the folder with config, manifests and lock. A config
        // that names a workspace overrides it.
        let config = fs::read_to_string(self.path().join("config.yml")).unwrap_or_default();
        if !config.contains("workspace:") {
            command.env("TOOLCRIB__WORKSPACE__ROOT", ".");
        }
        command.timeout(Duration::from_secs(60));
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        run(&mut self.command(arguments))
    }

    /// Runs the binary on a terminal of its own, with typed input.
    #[cfg(target_os = "linux")]
    pub(crate) fn on_a_terminal(&self, arguments: &str, types: &'static str) -> Run {
        let line = format!("{} {arguments}", env!("CARGO_BIN_EXE_toolcrib"));
        let mut command = Command::new("script");
        command
            .current_dir(self.path())
            .args(["--quiet", "--return", "--command", &line, "/dev/null"])
            // If `CI` is set, `TERM=dumb` alone does not disable colors.
            .env("TERM", "dumb")
            .env("HOME", self.home())
            .env("XDG_STATE_HOME", self.state_home())
            .env("TOOLCRIB__WORKSPACE__ROOT", ".")
            .env("NO_COLOR", "1")
            .write_stdin(types)
            .timeout(Duration::from_secs(60));
        run(&mut command)
    }

    /// Runs the binary on a terminal of its own. Each text is typed when what it answers has been shown, in this order.
    #[cfg(target_os = "linux")]
    pub(crate) fn dialogue(&self, arguments: &str, answers: &[(&str, &str)]) -> Run {
        let line = format!("{} {arguments}", env!("CARGO_BIN_EXE_toolcrib"));
        let mut script = crate::harness::server::command("script")
            .args(["--quiet", "--return", "--command", &line, "/dev/null"])
            .current_dir(self.path())
            .envs([("TERM", "dumb"), ("NO_COLOR", "1"), ("TOOLCRIB__WORKSPACE__ROOT", ".")])
            .env("HOME", self.home())
            .env("XDG_STATE_HOME", self.state_home())
            .env("XDG_RUNTIME_DIR", self.runtime_dir())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("script is there");
        let mut shows = script.stdout.take().expect("it is piped");
        let (sender, parts) = mpsc::channel();
        std::thread::spawn(move || {
            let mut part = [0; 4096];
            while let Ok(length @ 1..) = shows.read(&mut part) {
                if sender.send(String::from_utf8_lossy(&part[..length]).into_owned()).is_err() {
                    break;
                }
            }
        });
        let (mut stdout, mut seen) = (String::new(), 0);
        let mut types = script.stdin.take().expect("it is piped");
        for (question, answer) in answers {
            while !stdout[seen..].contains(question) {
                let part = parts.recv_timeout(Duration::from_secs(30));
                stdout.push_str(&part.unwrap_or_else(|_| panic!("{question:?}: {stdout}")));
            }
            seen = stdout.len();
            types.write_all(answer.as_bytes()).expect("it reads");
        }
        while let Ok(part) = parts.recv_timeout(Duration::from_secs(60)) {
            stdout.push_str(&part);
        }
        let code = script.wait().expect("it ends").code();
        Run { code, stdout, stderr: String::new() }
    }

    /// Calls a tool with these arguments, as JSON, on standard input; the result is printed as
    /// JSON.
    pub(crate) fn call(&self, tool: &str, arguments: impl Into<Vec<u8>>, options: &[&str]) -> Run {
        let whole = [&["call", tool, "--json", "--input", "-"][..], options].concat();
        run(self.command(&whole).write_stdin(arguments))
    }
}

pub(crate) fn run(command: &mut Command) -> Run {
    let output = command.output().expect("the binary runs");
    Run {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Runs a command until its output contains the text.
#[track_caller]
pub(crate) fn until(crib: &Crib, arguments: &[&str], holds: impl Fn(&Run) -> bool) -> Run {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let run = crib.run(arguments);
        if holds(&run) {
            return run;
        }
        assert!(Instant::now() < deadline, "{run:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
