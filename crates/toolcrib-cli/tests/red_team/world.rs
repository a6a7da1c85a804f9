//! A server under attack: its folder, its process, and its connections for clients.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::dimensions::{Files, Layout, Right, Row, Surface, User};
use crate::folder::{Folder, Words};
use crate::oracle::Oracle;
use crate::surfaces::http::Client;
use crate::surfaces::listeners::Listeners;
use crate::surfaces::mcp::{HttpSession, StdioSession};
use crate::surfaces::program::Program;

/// The properties in which servers differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Kind {
    pub(crate) layout: Layout,
    pub(crate) files: Files,
    pub(crate) user: User,
    pub(crate) open: bool,
}

impl Kind {
    pub(crate) fn of(row: &Row) -> Self {
        let Row { layout, files, user, right, .. } = *row;
        Self { layout, files, user, open: right == Right::NoAuth }
    }
}

/// How a client with some right sends its calls.
enum Door {
    Rest(Client),
    Mcp(HttpSession),
    Stdio(Box<StdioSession>),
    Cli,
}

/// One server with its environment; ended and removed on drop.
pub(crate) struct World {
    pub(crate) folder: Folder,
    pub(crate) listeners: Listeners,
    pub(crate) oracle: Oracle,
    doors: HashMap<(Right, Surface), Door>,
    /// Whether a tool works here at all, or why not.
    pub(crate) alive: HashMap<crate::dimensions::Tool, Result<(), String>>,
    /// Whether something was changed that cannot be restored: then this server is not used any
    /// more.
    pub(crate) spoilt: bool,
    address: SocketAddr,
    server: Server,
}

/// A process that is ended with its owner.
pub(crate) struct Server(pub(crate) Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl World {
    /// Starts a server; the error is its output instead of its address.
    pub(crate) fn start(kind: Kind) -> Result<Self, String> {
        let folder = Folder::new(kind.layout, kind.files, kind.user, kind.open);
        let listeners = Listeners::open(&folder.outside());
        let mut arguments = vec!["serve", "--listen", "127.0.0.1:0", "--json"];
        if kind.open {
            arguments.push("--no-auth");
        }
        let errors = folder.base().join("server.err");
        let log = std::fs::File::create(&errors).map_err(|error| error.to_string())?;
        let mut command = folder.command(&arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        let mut server = Server(command.spawn().map_err(|error| error.to_string())?);
        let output = server.0.stdout.take().ok_or("no output")?;
        let (sender, first) = channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let line = first.recv_timeout(Duration::from_secs(60)).map_err(|_| {
            let said = std::fs::read_to_string(&errors).unwrap_or_default();
            format!("the server did not start: {said}")
        })?;
        let said: Value =
            serde_json::from_str(&line).map_err(|error| format!("{error}: {line}"))?;
        let address =
            said["api"].as_str().and_then(|url| url.strip_prefix("http://")?.parse().ok());
        let address = address.ok_or(line)?;
        let mut world = Self {
            oracle: Oracle::new(&folder, server.0.id()),
            folder,
            listeners,
            doors: HashMap::new(),
            alive: HashMap::new(),
            spoilt: false,
            address,
            server,
        };
        world.settle();
        Ok(world)
    }

    /// Waits until the upstream server is connected, and records the files that were created since.
    fn settle(&mut self) {
        for _ in 0..40 {
            let answer = self.operator().send("GET", "/v1/tools/hostile_run", &[], "");
            if answer.is_ok_and(|answer| answer.status == 200) {
                break;
            }
            thread::sleep(Duration::from_millis(50));
        }
        self.oracle = Oracle::new(&self.folder, self.server.0.id());
    }

    /// Whether the server still runs.
    pub(crate) fn is_up(&mut self) -> bool {
        matches!(self.server.0.try_wait(), Ok(None))
    }

    pub(crate) fn server(&self) -> u32 {
        self.server.0.id()
    }

    pub(crate) fn client(&self, token: Option<&str>) -> Client {
        Client::new(self.address, token)
    }

    /// The operator's own connection, for preparations and checks.
    pub(crate) fn operator(&self) -> Client {
        self.client(Some(&Words::get().operator))
    }

    /// The client that the row's attacker is.
    pub(crate) fn attacker(&self, right: Right) -> Client {
        let words = Words::get();
        let token = match right {
            Right::Operator => Some(words.operator.as_str()),
            Right::Call => Some(words.token("caller")),
            Right::CallApprove => Some(words.token("approver")),
            Right::Observe => Some(words.token("observer")),
            Right::WrongToken => {
                Some("0000000000000000000000000000000000000000000000000000000000000000")
            }
            Right::NoToken | Right::NoAuth | Right::Local | Right::LocalCall => None,
        };
        self.client(token)
    }

    fn door(&mut self, right: Right, surface: Surface) -> Result<&mut Door, String> {
        if !self.doors.contains_key(&(right, surface)) {
            let client = self.attacker(right);
            let door = match surface {
                Surface::Rest => Door::Rest(client),
                Surface::Mcp => Door::Mcp(HttpSession::open(&client)),
                Surface::Cli => Door::Cli,
                Surface::Stdio => {
                    let mut arguments = vec!["mcp"];
                    if right == Right::LocalCall {
                        arguments.extend(["--set", "mcp.stdio.rights=[\"call\"]"]);
                    }
                    let session = StdioSession::start(&mut self.folder.command(&arguments));
                    Door::Stdio(Box::new(session.map_err(|error| error.to_string())?))
                }
            };
            self.doors.insert((right, surface), door);
        }
        self.doors.get_mut(&(right, surface)).ok_or_else(|| "no door".to_owned())
    }

    /// A call as a hostile client makes it: it consents to every question. Returns everything it
    /// received.
    pub(crate) fn call(&mut self, row: &Row, tool: &str, arguments: &Value) -> String {
        let params = json!({"name": tool, "arguments": arguments});
        match self.door(row.right, row.surface) {
            Err(error) => return error,
            Ok(Door::Mcp(session)) => return session.request("tools/call", &params),
            Ok(Door::Stdio(session)) => return session.request("tools/call", &params),
            Ok(Door::Rest(client)) => {
                let client = client.clone();
                return rest_call(&client, tool, arguments);
            }
            Ok(Door::Cli) => {}
        }
        let file = match tempfile::NamedTempFile::new() {
            Ok(file) => file,
            Err(error) => return error.to_string(),
        };
        let path = file.path().to_string_lossy();
        let mut command = self.folder.command(&["call", tool, "--json", "--input", &path]);
        let written = fs::write(file.path(), arguments.to_string());
        let output = written.and_then(|()| command.stdin(Stdio::null()).output());
        output.map_or_else(
            |error| error.to_string(),
            |output| {
                let said = String::from_utf8_lossy(&output.stdout).into_owned();
                said + &String::from_utf8_lossy(&output.stderr)
            },
        )
    }

    /// Another MCP request, if the attacker's surface is MCP.
    pub(crate) fn request(&mut self, row: &Row, method: &str, params: &Value) -> String {
        match self.door(row.right, row.surface) {
            Ok(Door::Mcp(session)) => session.request(method, params),
            Ok(Door::Stdio(session)) => session.request(method, params),
            _ => String::new(),
        }
    }

    /// A call in MCP's revision without sessions.
    pub(crate) fn newest_call(&mut self, row: &Row, tool: &str, arguments: &Value) -> String {
        match self.door(row.right, row.surface) {
            Ok(Door::Mcp(session)) => session.newest_call(tool, arguments),
            _ => String::new(),
        }
    }
}

/// A call over REST; if it waits for approval, the caller's own token approves it.
pub(crate) fn rest_call(client: &Client, tool: &str, arguments: &Value) -> String {
    let body = json!({"arguments": arguments}).to_string();
    let post = |path: &str, body: &str| match client.send("POST", path, &[], body) {
        Ok(answer) => (answer.status, answer.text()),
        Err(error) => (0, error),
    };
    let (status, mut heard) = post(&format!("/v1/tools/{tool}/call"), &body);
    if status == 202
        && let Ok(run) = serde_json::from_str::<Value>(&heard)
        && let (Some(run), Some(waiting)) = (run["id"].as_str(), run["waiting"][0]["id"].as_str())
    {
        let approve = json!({"id": waiting, "decision": "approve"}).to_string();
        heard += &post(&format!("/v1/runs/{run}/resolve"), &approve).1;
        let approve = json!({"decision": "approve"}).to_string();
        heard += &post(&format!("/v1/approvals/{waiting}"), &approve).1;
        heard +=
            &post("/v1/approvals", &json!({"id": waiting, "decision": "approve"}).to_string()).1;
    }
    heard
}

/// Whether this program supports a right.
pub(crate) fn known(right: Right) -> Result<(), String> {
    if right == Right::LocalCall && !Program::get().knows_stdio_rights {
        return Err("this program knows no `mcp.stdio.rights`".to_owned());
    }
    Ok(())
}
