//! Plain JSON requests over standard input and output, for behavior that no client shows.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use crate::process::CLIENT_LIMIT;

/// A client after its handshake; dropping it ends the server.
pub(crate) struct Lines {
    child: Child,
    input: ChildStdin,
    said: Receiver<Value>,
    last_id: u64,
}

impl Lines {
    pub(crate) fn open(program: &str, arguments: &[&str]) -> Self {
        #[expect(clippy::disallowed_methods, reason = "the test starts the binary itself")]
        let mut command = Command::new(Path::new(program));
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (say, said) = channel();
        // It ends with the server.
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let Ok(message) = serde_json::from_str(&line) else { panic!("{line}") };
                if say.send(message).is_err() {
                    break;
                }
            }
        });
        let mut lines = Self { child, input, said, last_id: 0 };
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "0"},
        });
        lines.ask("initialize", &hello);
        lines.tell(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        lines
    }

    /// The answer to a request.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        self.tell(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let message = self.said.recv_timeout(CLIENT_LIMIT).expect("an answer in time");
            if message["id"] == id {
                return message;
            }
        }
    }

    fn tell(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        // Both calls fail only if the process has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
