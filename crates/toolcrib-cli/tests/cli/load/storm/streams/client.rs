//! A client of the Responses API that can hang up in the middle of a stream.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use super::super::{Listening, TOKEN};

/// How long an event may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A stream of events.
pub(super) struct Events {
    reader: BufReader<TcpStream>,
    /// Whether the stream has said its end.
    pub(super) is_done: bool,
}

impl Events {
    /// Sends a request whose answer is a stream. `line` is the request line without the version.
    pub(super) fn open(server: &Listening, line: &str, body: &Value) -> Result<Self, String> {
        let problem = |error: std::io::Error| format!("{line}: {error}");
        let mut stream = TcpStream::connect(&server.address).map_err(problem)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(problem)?;
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = format!(
            "{line} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {TOKEN}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            server.address,
            body.len()
        );
        stream.write_all(request.as_bytes()).map_err(problem)?;
        let mut reader = BufReader::new(stream);
        let mut status = String::new();
        reader.read_line(&mut status).map_err(problem)?;
        if status.contains(" 200 ") {
            return Ok(Self { reader, is_done: false });
        }
        let mut rest = String::new();
        while reader.read_line(&mut rest).is_ok_and(|read| read > 0) {}
        Err(format!("{line}: {status}{rest}"))
    }

    /// The next event; `None` at the end of the stream.
    pub(super) fn next(&mut self) -> Result<Option<Value>, String> {
        loop {
            let mut line = String::new();
            let read = self.reader.read_line(&mut line);
            if read.map_err(|error| format!("no event: {error}"))? == 0 {
                return Ok(None);
            }
            // Each event has a chunk of its own, so that the lines between are those of the chunks.
            match line.trim_end().strip_prefix("data: ") {
                Some("[DONE]") => self.is_done = true,
                Some(data) => {
                    let event = serde_json::from_str(data);
                    return event.map(Some).map_err(|error| format!("{error}: {data}"));
                }
                None => {}
            }
        }
    }

    /// Adds so many events, or all that are left; whether there may be more.
    pub(super) fn read(&mut self, events: &mut Vec<Value>, count: usize) -> Result<bool, String> {
        for _ in 0..count {
            match self.next()? {
                Some(event) => events.push(event),
                None => return Ok(false),
            }
        }
        Ok(true)
    }
}

/// The number of an event.
pub(super) fn number(event: &Value) -> Result<u64, String> {
    event["sequence_number"].as_u64().ok_or_else(|| format!("an event without a number: {event}"))
}

/// Numbers only grow, so that nothing is told twice; whether none is left out either.
pub(super) fn is_whole(events: &[Value]) -> Result<bool, String> {
    let numbers: Vec<u64> = events.iter().map(number).collect::<Result<_, _>>()?;
    if let Some([before, number, ..]) = numbers.windows(2).find(|two| two[0] >= two[1]) {
        return Err(format!("event {number} comes after event {before}"));
    }
    Ok((0..).zip(&numbers).all(|(expected, number)| expected == *number))
}

/// Every item is finished once, and the last event has the same ones. Returns its response.
pub(super) fn finished(events: &[Value]) -> Result<&Value, String> {
    let last = events.last().ok_or("no events")?;
    let output = last["response"]["output"].as_array();
    let output = output.ok_or_else(|| format!("the last event has no response: {last}"))?;
    let done: Vec<&Value> = events
        .iter()
        .filter(|event| event["type"] == "response.output_item.done")
        .map(|event| &event["item"]["id"])
        .collect();
    let ids: Vec<&Value> = output.iter().map(|item| &item["id"]).collect();
    if done == ids { Ok(&last["response"]) } else { Err(format!("{done:?} are done of {ids:?}")) }
}
