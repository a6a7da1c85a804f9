//! The least that a server can be: the standard library alone, and always the same answer.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;

use crate::program::{Failure, announce};

/// What is answered, as much as ours says.
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":0,"result":{"content":[{"type":"text","text":"services/billing/src/main/resources/templates"}],"isError":false}}"#;

/// Room for what is read at once.
const READ: usize = 64 * 1024;

/// Answers requests over HTTP, a thread for each connection.
pub(crate) fn serve_http() -> Result<(), Failure> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    announce(listener.local_addr()?)?;
    for connection in listener.incoming() {
        let connection = connection?;
        thread::spawn(move || converse(connection));
    }
    Ok(())
}

fn converse(mut connection: TcpStream) -> Result<(), Failure> {
    connection.set_nodelay(true)?;
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{ANSWER}",
        ANSWER.len()
    );
    let (mut room, mut read) = (vec![0; READ], Vec::new());
    while more(&mut connection, &mut room, &mut read)? {
        while let Some(length) = request(&read)? {
            read.drain(..length);
            connection.write_all(answer.as_bytes())?;
        }
    }
    Ok(())
}

/// How long the first request is, if it is there.
fn request(read: &[u8]) -> Result<Option<usize>, Failure> {
    const LENGTH: &[u8] = b"Content-Length: ";
    let Some(head) = memchr::memmem::find(read, b"\r\n\r\n") else { return Ok(None) };
    let begun = memchr::memmem::find(&read[..head], LENGTH).ok_or("no length")? + LENGTH.len();
    let digits = read[begun..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let body: usize = std::str::from_utf8(&read[begun..begun + digits])?.parse()?;
    let length = head + b"\r\n\r\n".len() + body;
    Ok((length <= read.len()).then_some(length))
}

/// Answers requests over standard input and output, all that are there at once.
pub(crate) fn serve_stdio() -> Result<(), Failure> {
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    let (mut room, mut read, mut answers) = (vec![0; READ], Vec::new(), Vec::new());
    while more(&mut input, &mut room, &mut read)? {
        let mut begun = 0;
        for end in memchr::memchr_iter(b'\n', &read) {
            // Notifications have none.
            if memchr::memmem::find(&read[begun..end], b"\"id\":").is_some() {
                answers.extend_from_slice(ANSWER.as_bytes());
                answers.push(b'\n');
            }
            begun = end + 1;
        }
        read.drain(..begun);
        output.write_all(&answers)?;
        output.flush()?;
        answers.clear();
    }
    Ok(())
}

/// Reads what is there, or waits for it; false at the end.
fn more(from: &mut impl Read, room: &mut [u8], read: &mut Vec<u8>) -> Result<bool, Failure> {
    let more = loop {
        match from.read(room) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            more => break more?,
        }
    };
    read.extend_from_slice(&room[..more]);
    Ok(more > 0)
}
