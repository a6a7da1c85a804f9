//! A client that does as little as it can.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

use memchr::memmem;

use crate::Failure;

/// What each delta has, once.
pub(crate) const DELTA: &[u8] = b"event: response.output_text.delta\n";

/// The longest time until the next bytes.
const PATIENCE: Duration = Duration::from_secs(30);

/// A connection for one request after the other.
pub(crate) struct Connection {
    stream: TcpStream,
    port: u16,
}

impl Connection {
    pub(crate) fn open(port: u16) -> Result<Self, Failure> {
        let connection = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        connection.set_nodelay(true)?;
        connection.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { stream: connection, port })
    }

    /// Reads a whole answer; how long its first delta took. Fails unless it has so many.
    pub(crate) fn ask(&mut self, body: &str, deltas: usize) -> Result<Duration, Failure> {
        let request = format!(
            "POST /v1/responses HTTP/1.1\r\nhost: 127.0.0.1:{}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            self.port,
            body.len()
        );
        let begun = Instant::now();
        self.stream.write_all(request.as_bytes())?;
        let (mut read, mut piece, mut first) = (Vec::new(), vec![0; 65_536], None);
        while !read.ends_with(b"\r\n0\r\n\r\n") {
            let count = self.stream.read(&mut piece)?;
            if count == 0 {
                return Err("the server hung up".into());
            }
            let before = read.len().saturating_sub(DELTA.len());
            read.extend_from_slice(&piece[..count]);
            if first.is_none() && memmem::find(&read[before..], DELTA).is_some() {
                first = Some(begun.elapsed());
            }
            if !read.starts_with(b"HTTP/1.1 200 ") {
                return Err(String::from_utf8_lossy(&read).into());
            }
        }
        let found = memmem::find_iter(&read, DELTA).count();
        if found != deltas {
            return Err(format!("{found} deltas, not {deltas}").into());
        }
        Ok(first.ok_or("no delta")?)
    }
}
