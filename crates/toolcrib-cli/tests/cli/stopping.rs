//! A server that is asked to stop: calls that run are answered, and it is gone in bounded time.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::crib::Crib;

const SLEEP: &str = r#"
toolcrib: 1
tools:
  - name: nap
    description: Sleep. Read-only.
    annotations: {read_only: true}
    input: {properties: {seconds: {type: integer}, mark: {type: string}}, required: [seconds, mark]}
    run:
      argv: [bash, -c, 'touch "$MARK"; sleep "$SECONDS_"; echo rested']
      env: {MARK: "${args.mark}", SECONDS_: "${args.seconds}"}
"#;

/// A program that a test starts itself.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    #[expect(clippy::disallowed_methods, reason = "the test starts the binary itself")]
    Command::new(program)
}

/// A server. Killed when dropped.
pub(crate) struct Server {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<Output>,
}

/// What a server's answers are read from.
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

fn call(id: u64, name: &str, arguments: &Value) -> Value {
    let params = json!({"name": name, "arguments": arguments});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

impl Server {
    pub(crate) fn start(crib: &Crib, arguments: &[&str]) -> Self {
        let mut command = command(env!("CARGO_BIN_EXE_toolcrib"));
        command.args(arguments).env_remove("TOOLCRIB_TOKEN");
        Self::spawn(crib, command)
    }

    /// A server that is started by a command of its own.
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

    /// After the handshake of MCP.
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
        self.send(&call(3, tool, arguments));
        loop {
            let message = self.receive();
            if message["id"] == 3 {
                return message;
            }
        }
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

    /// Sends what has no end, and nothing more.
    pub(crate) fn send_last(&mut self, bytes: &[u8]) {
        self.input.take().expect("it is open").write_all(bytes).expect("it reads");
    }

    /// A message as it is written.
    pub(crate) fn receive_line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it writes");
        line
    }

    pub(crate) fn receive(&mut self) -> Value {
        let line = self.receive_line();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// Begins a nap and waits until it has begun.
    fn nap(&mut self, crib: &Crib, seconds: u32) {
        let mark = crib.path().join("began");
        self.send(&call(2, "nap", &json!({"seconds": seconds, "mark": mark})));
        wait_for(&mark);
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert_cmd::Command::new("kill").args(["-s", name, &id]).assert().success();
    }

    /// Waits for the end; the exit code.
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
        // Both fail only for a process that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wait_for(mark: &Path) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !mark.exists() {
        assert!(Instant::now() < deadline, "the call has not begun");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Sends a call over HTTP; the answer is read from the stream.
fn post(address: &str, message: &Value) -> TcpStream {
    let body = message.to_string();
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a limit");
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
         accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n\
         mcp-protocol-version: 2025-11-25\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .expect("it reads");
    stream
}

fn answer(mut stream: TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("it answers");
    text
}

#[test]
fn a_server_whose_answers_nobody_reads_any_more_ends() {
    let crib = Crib::new(&[("sleep.yaml", SLEEP)]);
    let mut server = Server::mcp(&crib);
    server.nap(&crib, 600);
    // Another pipe takes the place of the one that is closed.
    let (output, _) = std::io::pipe().expect("a pipe");
    drop(std::mem::replace(&mut server.output, BufReader::new(Output::Other(output))));
    server.send(&json!({"jsonrpc": "2.0", "id": 7, "method": "ping"}));
    let closed = Instant::now();
    assert_eq!(server.ended(), Some(0));
    assert!(closed.elapsed() < Duration::from_secs(8), "{:?}", closed.elapsed());
}

#[test]
fn a_log_that_nobody_reads_holds_up_no_answer() {
    let crib = Crib::new(&[("sleep.yaml", SLEEP)]);
    let mut command = command(env!("CARGO_BIN_EXE_toolcrib"));
    command.arg("mcp").env_remove("TOOLCRIB_TOKEN");
    let mut server = Server::spawn_with_log(&crib, command, Stdio::piped()).greeted();
    // Each is refused with a line of the log: together several times what a pipe holds.
    for _ in 0..1_500 {
        let refused = server.call("nap", &json!({"minutes": 3}));
        assert_eq!(refused["result"]["isError"], true);
    }
    server.input = None;
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn a_call_that_runs_when_it_is_asked_to_stop_is_answered() {
    let crib = Crib::new(&[("sleep.yaml", SLEEP)]);
    let mut server = Server::mcp(&crib);
    server.nap(&crib, 1);
    server.signal("TERM");
    let answer = server.receive();
    assert_eq!(answer["result"]["content"][0]["text"], "rested\n", "{answer}");
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn asked_twice_it_ends_what_runs_and_says_so_in_the_answer() {
    let crib = Crib::new(&[("sleep.yaml", SLEEP)]);
    let mut server = Server::mcp(&crib);
    server.nap(&crib, 600);
    let asked = Instant::now();
    server.signal("INT");
    std::thread::sleep(Duration::from_millis(500));
    server.signal("INT");
    let answer = server.receive();
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let text = answer["result"]["content"][0]["text"].as_str().expect("a text");
    assert!(text.contains("the host is shutting down"), "{text}");
    assert_eq!(server.ended(), Some(0));
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
}

#[test]
fn asked_to_stop_it_says_for_how_many_calls_it_waits_and_how_to_stop_at_once() {
    let crib = Crib::new(&[("sleep.yaml", SLEEP)]);
    let log = crib.data().join("log");
    let file = std::fs::File::create(&log).expect("the file system");
    let mut command = command(env!("CARGO_BIN_EXE_toolcrib"));
    command.arg("mcp").env_remove("TOOLCRIB_TOKEN");
    let mut server = Server::spawn_with_log(&crib, command, Stdio::from(file)).greeted();
    server.nap(&crib, 600);
    server.signal("INT");
    let said = || std::fs::read_to_string(&log).expect("it is written");
    let deadline = Instant::now() + Duration::from_secs(4);
    while !said().contains("waiting for 1 call, at most 5 s; press Ctrl-C again to stop now") {
        assert!(Instant::now() < deadline, "{}", said());
        std::thread::sleep(Duration::from_millis(10));
    }
    server.signal("INT");
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn a_client_that_leaves_ends_the_server() {
    let crib = Crib::new(&[("sleep.yaml", SLEEP)]);
    let mut server = Server::mcp(&crib);
    drop(server.input.take());
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn over_http_it_takes_no_more_calls_and_answers_those_that_run() {
    let crib = Crib::new(&[("sleep.yaml", SLEEP)]);
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--no-auth", "--json"];
    let mut server = Server::start(&crib, &arguments);
    let url = server.receive()["url"].as_str().expect("a URL").to_owned();
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");

    let mark = crib.path().join("began");
    let nap = post(address, &call(1, "nap", &json!({"seconds": 3, "mark": mark})));
    wait_for(&mark);
    server.signal("TERM");
    let sum = call(2, "calculator", &json!({"expression": "2+2"}));
    let deadline = Instant::now() + Duration::from_secs(2);
    let mut late = answer(post(address, &sum));
    while !late.contains("takes no more calls") {
        assert!(Instant::now() < deadline, "it still takes calls: {late}");
        late = answer(post(address, &sum));
    }
    let answer = answer(nap);
    assert!(answer.contains("rested"), "{answer}");
    assert_eq!(server.ended(), Some(0));
}
