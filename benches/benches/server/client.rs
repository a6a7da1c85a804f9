//! The other end: started servers, and clients that do as little as they can.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, ChildStdout};
use std::time::{Duration, Instant};

use crate::program::{self, Failure, Program};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A server; ended when dropped.
#[derive(Debug)]
pub(crate) struct Process(Child);

impl Process {
    /// The folder of its threads.
    pub(crate) fn threads(&self) -> String {
        format!("/proc/{}/task", self.0.id())
    }

    /// The time its threads have had a processor.
    pub(crate) fn processors(&self) -> Result<Duration, Failure> {
        let mut nanoseconds = 0;
        for thread in fs::read_dir(self.threads())? {
            // One that has ended meanwhile is missed: the servers keep theirs.
            let Ok(times) = fs::read_to_string(thread?.path().join("schedstat")) else { continue };
            let first = times.split_whitespace().next().ok_or("an empty schedstat")?;
            nanoseconds += first.parse::<u64>()?;
        }
        Ok(Duration::from_nanos(nanoseconds))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has nothing to lose; one that has ended already is no failure.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Connections to a server over HTTP, each with one request at a time.
#[derive(Debug)]
pub(crate) struct Http {
    process: Process,
    connections: Vec<BufReader<TcpStream>>,
    head: String,
}

impl AsRef<Process> for Http {
    fn as_ref(&self) -> &Process {
        &self.process
    }
}

impl Http {
    pub(crate) fn open(
        program: Program,
        tools: usize,
        connections: usize,
    ) -> Result<Self, Failure> {
        let mut child = program::start(program, "http", tools)?;
        let output = child.stdout.take();
        let process = Process(child);
        let mut port = String::new();
        BufReader::new(output.ok_or("no output")?).read_line(&mut port)?;
        let connect = || {
            let connection = TcpStream::connect(("127.0.0.1", port.trim().parse()?))?;
            connection.set_nodelay(true)?;
            Ok::<_, Failure>(BufReader::new(connection))
        };
        let connections = (0..connections).map(|_| connect()).collect::<Result<_, _>>()?;
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2025-11-25\r\n",
            port.trim()
        );
        let mut http = Self { process, connections, head };
        if program.has_sessions() {
            let (head, _) = exchange(&mut http.connections[0], &http.head, INITIALIZE)?;
            let session = head
                .lines()
                .find_map(|line| {
                    line.to_ascii_lowercase()
                        .strip_prefix("mcp-session-id:")
                        .map(str::trim)
                        .map(str::to_owned)
                })
                .ok_or("the server opened no session")?;
            http.head += "Mcp-Session-Id: ";
            http.head += &session;
            http.head += "\r\n";
            exchange(&mut http.connections[0], &http.head, INITIALIZED)?;
        }
        Ok(http)
    }

    /// So many calls over all connections; how long they took, and how many they were.
    pub(crate) fn calls(&mut self, calls: usize, body: &str) -> Result<(Duration, usize), Failure> {
        let each = calls.div_ceil(self.connections.len());
        let done = each * self.connections.len();
        let head = self.head.as_str();
        let begun = Instant::now();
        std::thread::scope(|scope| {
            let threads: Vec<_> = self
                .connections
                .iter_mut()
                .map(|connection| {
                    scope.spawn(move || {
                        for id in 1..=each {
                            let body = body.replacen("ID", &id.to_string(), 1);
                            let (_, answer) = exchange(connection, head, &body)?;
                            if !answer.contains("services/billing") {
                                return Err(format!("no answer of the tool's: {answer}").into());
                            }
                        }
                        Ok::<_, Failure>(())
                    })
                })
                .collect();
            threads.into_iter().try_for_each(|thread| match thread.join() {
                Ok(ended) => ended,
                Err(panic) => std::panic::resume_unwind(panic),
            })
        })?;
        // For each connection one call after another, so that many at once do not look faster.
        let rounds = begun.elapsed() * u32::try_from(self.connections.len())?;
        Ok((rounds, done))
    }

    /// The whole list so many times, page by page.
    pub(crate) fn lists(
        &mut self,
        times: usize,
        tools: usize,
    ) -> Result<(Duration, usize), Failure> {
        let begun = Instant::now();
        for _ in 0..times {
            let (mut cursor, mut listed) = (None::<String>, 0);
            loop {
                let params =
                    cursor.map_or_else(String::new, |cursor| format!(r#""cursor":{cursor}"#));
                let body = format!(
                    r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{params}}}}}"#
                );
                let (_, answer) = exchange(&mut self.connections[0], &self.head, &body)?;
                listed += answer.matches(r#""inputSchema""#).count();
                cursor = answer.split_once(r#""nextCursor":"#).and_then(|(_, rest)| {
                    let end = rest.get(1..)?.find('"')? + 2;
                    rest.get(..end).map(str::to_owned)
                });
                if cursor.is_none() {
                    break;
                }
            }
            if listed != tools {
                return Err(format!("{listed} tools were listed, not {tools}").into());
            }
        }
        Ok((begun.elapsed(), times))
    }
}

/// One request and its answer: the head, and the body however it is framed.
fn exchange(
    connection: &mut BufReader<TcpStream>,
    head: &str,
    body: &str,
) -> Result<(String, String), Failure> {
    let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
    connection.get_mut().write_all(request.as_bytes())?;
    let (mut head, mut length, mut chunked) = (String::new(), 0, false);
    loop {
        let begun = head.len();
        if connection.read_line(&mut head)? == 0 {
            return Err("the server closed the connection".into());
        }
        let line = head[begun..].trim();
        if line.is_empty() {
            break;
        }
        let Some((name, value)) = line.split_once(':') else { continue };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse()?;
        }
        chunked |= name.eq_ignore_ascii_case("transfer-encoding");
    }
    let mut answer = Vec::new();
    if !chunked {
        answer.resize(length, 0);
        connection.read_exact(&mut answer)?;
        return Ok((head, String::from_utf8(answer)?));
    }
    loop {
        let mut size = String::new();
        connection.read_line(&mut size)?;
        let size = usize::from_str_radix(size.trim(), 16)?;
        let begun = answer.len();
        answer.resize(begun + size + 2, 0);
        connection.read_exact(&mut answer[begun..])?;
        answer.truncate(begun + size);
        if size == 0 {
            return Ok((head, String::from_utf8(answer)?));
        }
    }
}

/// A server over its standard input and output.
#[derive(Debug)]
pub(crate) struct Stdio {
    process: Process,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    in_flight: usize,
}

impl AsRef<Process> for Stdio {
    fn as_ref(&self) -> &Process {
        &self.process
    }
}

impl Stdio {
    pub(crate) fn open(program: Program, tools: usize, in_flight: usize) -> Result<Self, Failure> {
        let mut child = program::start(program, "stdio", tools)?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let process = Process(child);
        let (input, output) = (input.ok_or("no input")?, output.ok_or("no output")?);
        let mut stdio = Self { process, input, output: BufReader::new(output), in_flight };
        stdio.input.write_all(format!("{INITIALIZE}\n").as_bytes())?;
        stdio.answer()?;
        stdio.input.write_all(format!("{INITIALIZED}\n").as_bytes())?;
        Ok(stdio)
    }

    /// So many calls, that many of them at once.
    pub(crate) fn calls(&mut self, calls: usize, body: &str) -> Result<(Duration, usize), Failure> {
        let begun = Instant::now();
        for id in 1..=calls + self.in_flight {
            if id > self.in_flight {
                let answer = self.answer()?;
                if !answer.contains("services/billing") {
                    return Err(format!("no answer of the tool's: {answer}").into());
                }
            }
            if id <= calls {
                let mut line = body.replacen("ID", &id.to_string(), 1);
                line.push('\n');
                self.input.write_all(line.as_bytes())?;
            }
        }
        Ok((begun.elapsed() * u32::try_from(self.in_flight)?, calls))
    }

    fn answer(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            return Err("the server closed its output".into());
        }
        Ok(line)
    }
}
