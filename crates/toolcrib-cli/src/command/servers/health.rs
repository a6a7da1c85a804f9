//! `toolcrib health`: whether a server answers and takes calls, for the probes of containers.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use serde_json::{Value, json};
use toolcrib::http::Listen;

use crate::options::{JsonOutput, Options};
use crate::{Exit, screen, startup};

/// How long the server may take to accept the connection, and then between two parts of its answer.
const PATIENCE: Duration = Duration::from_secs(3);
/// The most bytes of an answer that are read.
const ANSWER_BYTES: u64 = 64 * 1024;
/// What is said of an answer that no toolcrib gives.
const FOREIGN: &str = "what answers there is no toolcrib";

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolcrib health                            the server that this config describes
  toolcrib health --listen 127.0.0.1:9000    without reading a config
  toolcrib health --alive                    for a liveness probe: 0 also while the server is stopping

It needs no token, and asks the server itself at its address on this machine: /ready, or /health with --alive.

Exit code 1: nothing answers there, or the server is stopping. A degraded server still serves (exit code 0).")]
pub(crate) struct HealthOptions {
    /// The address that the server listens on [default: `server.listen` of the config]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<Listen>,
    /// Ask only whether the server answers
    #[arg(long)]
    alive: bool,
    #[command(flatten)]
    output: JsonOutput,
}

pub(in crate::command) fn run(options: &Options, own: &HealthOptions) -> anyhow::Result<Exit> {
    let listen = match &own.listen {
        Some(listen) => listen.clone(),
        None => startup::config(options)?.into_config().server.listen,
    };
    let path = if own.alive { "/health" } else { "/ready" };
    let answer = ask(&listen, path).with_context(|| format!("asking the server on {listen}"));
    let (status, body) = match answer {
        Ok(answer) => answer,
        Err(error) => return not_healthy(&listen, format!("{error:#}"), own.output),
    };
    let is_ok = status == 200;
    if is_ok && !is_health(&body) {
        return not_healthy(
            &listen,
            format!("asking the server on {listen}: {FOREIGN}"),
            own.output,
        );
    }
    if own.output.json {
        let listen = listen.to_string();
        screen::json(
            &json!({"ok": is_ok, "listen": listen, "http_status": status, "health": body}),
        )?;
    } else {
        let word = body["status"].as_str().unwrap_or("answered without a status");
        screen::out(format!("{listen}: {word}{}", notable(&body)))?;
    }
    Ok(if is_ok { Exit::Success } else { Exit::Failure })
}

/// Says why there is no healthy server at the address.
fn not_healthy(listen: &Listen, why: String, output: JsonOutput) -> anyhow::Result<Exit> {
    if output.json {
        screen::json(&json!({"ok": false, "listen": listen.to_string(), "error": why}))?;
    } else {
        screen::note(why);
    }
    Ok(Exit::Failure)
}

/// Whether a body is the health of a toolcrib: other programs answer with 200 and JSON, too.
fn is_health(body: &Value) -> bool {
    let word = body["status"].as_str();
    word.is_some_and(|word| ["ok", "degraded", "stopping"].contains(&word))
        && body["generation"].is_u64()
        && body["tools"].is_u64()
}

/// The numbers that need somebody, such as `files_stale 1`.
fn notable(body: &Value) -> String {
    // Tools that nobody configured are unavailable on a healthy server, too.
    const GOOD: [&str; 6] =
        ["generation", "tools", "unavailable", "files_live", "upstreams_connected", "status"];
    let numbers = body.as_object().into_iter().flatten();
    let wrong = numbers.filter(|(name, value)| {
        !GOOD.contains(&name.as_str()) && value.as_u64().is_some_and(|number| number > 0)
    });
    let wrong: Vec<_> = wrong.map(|(name, value)| format!("{name} {value}")).collect();
    if wrong.is_empty() { String::new() } else { format!(" ({})", wrong.join(", ")) }
}

/// The status and the body of the answer to one request.
fn ask(listen: &Listen, path: &str) -> anyhow::Result<(u16, Value)> {
    match listen {
        Listen::Tcp(address) => {
            let stream = TcpStream::connect_timeout(&reachable(*address), PATIENCE)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            exchange(stream, path)
        }
        Listen::Unix(socket) => {
            let stream = UnixStream::connect(socket)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            exchange(stream, path)
        }
    }
}

/// The address under which a server that listens on all addresses is reached from this machine.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

fn exchange(mut stream: impl Read + Write, path: &str) -> anyhow::Result<(u16, Value)> {
    write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
    let mut text = Vec::new();
    match stream.take(ANSWER_BYTES).read_to_end(&mut text) {
        Ok(_) => {}
        Err(error)
            if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) =>
        {
            anyhow::bail!("it does not answer within {} s", PATIENCE.as_secs());
        }
        Err(error) => return Err(error.into()),
    }
    parsed(&String::from_utf8_lossy(&text)).context(FOREIGN)
}

/// The status and the body of an answer whose body comes in one piece.
fn parsed(answer: &str) -> Option<(u16, Value)> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    Some((status, serde_json::from_str(body).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_on_all_addresses_is_asked_on_loopback() {
        let reached = |text: &str| reachable(text.parse().expect("an address")).to_string();
        assert_eq!(reached("0.0.0.0:7777"), "127.0.0.1:7777");
        assert_eq!(reached("[::]:7777"), "[::1]:7777");
        assert_eq!(reached("192.0.2.7:80"), "192.0.2.7:80");
    }

    #[test]
    fn only_answers_with_a_json_body_are_accepted() {
        let (status, body) =
            parsed("HTTP/1.1 503 Service Unavailable\r\na: b\r\n\r\n{\"status\":\"stopping\"}")
                .expect("an answer");
        assert_eq!((status, body["status"].as_str()), (503, Some("stopping")));
        for other in ["", "HTTP/1.1 200 OK\r\n\r\n<html>", "SSH-2.0-OpenSSH\r\n\r\n{}"] {
            assert!(parsed(other).is_none(), "{other:?}");
        }
    }

    #[test]
    fn json_of_another_program_is_no_health() {
        assert!(is_health(&json!({"status": "ok", "generation": 1, "tools": 3})));
        for other in [
            json!({"object": "list", "data": []}),
            json!({"status": "ok"}),
            json!({"status": "up", "generation": 1, "tools": 3}),
            json!([]),
        ] {
            assert!(!is_health(&other), "{other}");
        }
    }

    #[test]
    fn only_numbers_that_need_somebody_are_named() {
        let body = json!({"status": "degraded", "tools": 3, "unavailable": 2, "files_stale": 1, "audit_down": 0});
        assert_eq!(notable(&body), " (files_stale 1)");
    }
}
