//! A server of the built program, and MCP messages to it.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::crib::Crib;

/// A program that a test starts itself.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    #[expect(clippy::disallowed_methods, reason = "the test starts the binary itself")]
    Command::new(program)
}

/// A server, which is killed on drop.
pub(crate) struct Server {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<Output>,
}

/// The reader of the server's answers.
enum Output {
    Own(ChildStdout),
    Other(std::io::PipeReader),
}

impl Read for Output {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Own(output) => output.read(buffer),
            Self::Other(output) => output.read(buffer),
        }
    }
}

/// The MCP message of a tool call.
pub(crate) fn request(id: u64, name: &str, arguments: &Value) -> Value {
    let params = json!({"name": name, "arguments": arguments});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

impl Server {
    pub(crate) fn start(crib: &Crib, arguments: &[&str]) -> Self {
        let mut command = command(env!("CARGO_BIN_EXE_toolcrib"));
        command.args(arguments).env_remove("TOOLCRIB_TOKEN");
        Self::spawn(crib, command)
    }

    /// A server that is started by another command.
    pub(crate) fn spawn(crib: &Crib, command: Command) -> Self {
        Self::spawn_with_log(crib, command, Stdio::null())
    }

    pub(crate) fn spawn_with_log(crib: &Crib, mut command: Command, log: Stdio) -> Self {
        command.current_dir(crib.path()).env("TOOLCRIB__WORKSPACE__ROOT", ".");
        command.env("XDG_RUNTIME_DIR", crib.runtime_dir());
        command.env("HOME", crib.home()).env("XDG_STATE_HOME", crib.state_home());
        command.env_remove("STATE_DIRECTORY");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().expect("built");
        let input = child.stdin.take();
        let output = BufReader::new(Output::Own(child.stdout.take().expect("it is piped")));
        Self { child, input, output }
    }

    /// MCP on standard input and output, after the handshake.
    pub(crate) fn mcp(crib: &Crib) -> Self {
        Self::start(crib, &["mcp"]).greeted()
    }

    /// Performs the handshake of MCP.
    pub(crate) fn greeted(mut self) -> Self {
        let server = &mut self;
        server.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        }}));
        assert_eq!(server.receive()["id"], 1);
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        self
    }

    /// Calls a tool and waits for the answer.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.send(&request(3, tool, arguments));
        loop {
            let message = self.receive();
            if message["id"] == 3 {
                return message;
            }
        }
    }

    /// Closes its standard input.
    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    /// Closes the pipe of its answers.
    pub(crate) fn close_output(&mut self) {
        // The closed pipe is replaced by another one.
        let (output, _) = std::io::pipe().expect("a pipe");
        drop(std::mem::replace(&mut self.output, BufReader::new(Output::Other(output))));
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.send_line(message.to_string().as_bytes());
    }

    /// Sends a line that need not be a message.
    pub(crate) fn send_line(&mut self, line: &[u8]) {
        let input = self.input.as_mut().expect("it is open");
        input.write_all(line).and_then(|()| input.write_all(b"\n")).expect("it reads");
    }

    /// Sends a text without an end, and nothing more.
    pub(crate) fn send_last(&mut self, bytes: &[u8]) {
        self.input.take().expect("it is open").write_all(bytes).expect("it reads");
    }

    /// The text of a message.
    pub(crate) fn receive_line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it writes");
        line
    }

    pub(crate) fn receive(&mut self) -> Value {
        let line = self.receive_line();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert_cmd::Command::new("kill").args(["-s", name, &id]).assert().success();
    }

    /// Waits for the end; returns the exit code.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            if let Some(status) = self.child.try_wait().expect("it is ours") {
                return status.code();
            }
            assert!(Instant::now() < deadline, "the server has not ended");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both calls fail only if the process has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
