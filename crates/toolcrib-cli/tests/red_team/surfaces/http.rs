//! A small HTTP client for one server on loopback: a request, its answer, and event streams.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long an answer may take.
const LIMIT: Duration = Duration::from_secs(40);

/// A server's address and the token for it.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    address: SocketAddr,
    token: Option<String>,
}

/// An answer whose body has not been read.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    body: Box<dyn BufRead>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let header = self.headers.iter().find(|(header, _)| header == name);
        header.map(|(_, value)| value.as_str())
    }

    /// The next line of the body; `None` at its end.
    pub(crate) fn line(&mut self) -> Option<String> {
        let mut line = Vec::new();
        match self.body.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(String::from_utf8_lossy(&line).trim_end().to_owned()),
        }
    }

    /// The complete rest of the body.
    pub(crate) fn text(mut self) -> String {
        let mut bytes = Vec::new();
        // Data from before a connection broke counts too.
        let _ = self.body.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Client {
    pub(crate) fn new(address: SocketAddr, token: Option<&str>) -> Self {
        Self { address, token: token.map(str::to_owned) }
    }

    /// Sends a request; if connecting or answering fails, returns the error's text.
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<Answer, String> {
        self.try_send(method, path, headers, body).map_err(|error| error.to_string())
    }

    fn try_send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> std::io::Result<Answer> {
        let stream = TcpStream::connect_timeout(&self.address, Duration::from_secs(5))?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n",
            self.address,
            body.len()
        );
        if !body.is_empty() {
            request.push_str("Content-Type: application/json\r\n");
        }
        if let Some(token) = &self.token {
            let _ = write!(request, "Authorization: Bearer {token}\r\n");
        }
        for (name, value) in headers {
            let _ = write!(request, "{name}: {value}\r\n");
        }
        request.push_str("\r\n");
        request.push_str(body);
        (&stream).write_all(request.as_bytes())?;
        answer(BufReader::new(stream))
    }
}

fn answer(mut stream: BufReader<TcpStream>) -> std::io::Result<Answer> {
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':') {
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
    let find =
        |name: &str| headers.iter().find(|(header, _)| header == name).map(|(_, value)| value);
    let body: Box<dyn BufRead> = if find("transfer-encoding").is_some() {
        Box::new(BufReader::new(Chunks { stream, left: 0 }))
    } else {
        let length = find("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        Box::new(BufReader::new(stream.take(length)))
    };
    Ok(Answer { status, headers, body })
}

/// A body in chunks.
struct Chunks {
    stream: BufReader<TcpStream>,
    left: usize,
}

impl Read for Chunks {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            if line.trim().is_empty() {
                line.clear();
                self.stream.read_line(&mut line)?;
            }
            self.left = usize::from_str_radix(line.trim(), 16).unwrap_or(0);
            if self.left == 0 {
                return Ok(0);
            }
        }
        let wanted = buffer.len().min(self.left);
        let got = self.stream.read(&mut buffer[..wanted])?;
        self.left -= got;
        Ok(got)
    }
}
