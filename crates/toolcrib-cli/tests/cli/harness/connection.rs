//! A connection on which a client sends many requests, as real clients do.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// How long an answer may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    address: String,
    token: String,
}

/// A status with a JSON body.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Value,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl Connection {
    /// Fails if nobody listens.
    pub(crate) fn open(address: &str, token: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        let (address, token) = (address.to_owned(), token.to_owned());
        Ok(Self { stream: BufReader::new(stream), address, token })
    }

    /// Sends a request and reads the answer. Fails if the server has closed the connection instead.
    pub(crate) fn ask(
        &mut self,
        line: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> io::Result<Reply> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut request = format!(
            "{line} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n",
            self.address,
            self.token,
            body.len()
        );
        for (name, value) in headers {
            request.extend([name, ": ", value, "\r\n"]);
        }
        request.extend(["\r\n", &body]);
        self.stream.get_mut().write_all(request.as_bytes())?;
        self.reply()
    }

    fn reply(&mut self) -> io::Result<Reply> {
        let first = self.line()?;
        let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| io::Error::other(format!("no status: {first:?}")))?;
        let mut reply = Reply { status, headers: Vec::new(), body: Value::Null };
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            let header = line.split_once(": ");
            reply
                .headers
                .extend(header.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())));
        }
        let length = reply.header("content-length").and_then(|length| length.parse().ok());
        let mut body = vec![0; length.ok_or_else(|| io::Error::other("no length"))?];
        self.stream.read_exact(&mut body)?;
        reply.body = serde_json::from_slice(&body)?;
        Ok(reply)
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }
}
