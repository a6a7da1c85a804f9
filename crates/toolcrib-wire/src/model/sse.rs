//! Splits a byte stream into server-sent events, wherever the bytes are cut.

/// An incremental parser of `text/event-stream`.
///
/// It follows the WHATWG rules: lines end with CR, LF or CRLF, a byte order mark at the start is skipped, lines that
/// begin with a colon are comments, and an event ends with an empty line. The `id` and `retry` fields are skipped.
/// Each byte is read once, and at most `limit` bytes of one event are kept.
#[derive(Debug)]
pub(super) struct SseParser {
    /// The start of a line whose end has not arrived.
    line: Vec<u8>,
    /// The data lines of the current event, joined by line feeds.
    data: Vec<u8>,
    has_data: bool,
    /// The last byte was a carriage return, so a line feed that follows belongs to it.
    after_return: bool,
    /// No line has been read yet, so a byte order mark may come.
    at_start: bool,
    limit: usize,
}

/// An event has more bytes than the limit allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventTooLarge;

impl SseParser {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            line: Vec::new(),
            data: Vec::new(),
            has_data: false,
            after_return: false,
            at_start: true,
            limit,
        }
    }

    /// Reads bytes up to the end of the next event. Returns how many were read, and whether an event is complete; its
    /// data is in [`data`](Self::data) until the next call.
    pub(super) fn advance(&mut self, bytes: &[u8]) -> Result<(usize, bool), EventTooLarge> {
        let mut read = 0;
        while let Some(rest) = bytes.get(read..).filter(|rest| !rest.is_empty()) {
            if std::mem::take(&mut self.after_return) && rest[0] == b'\n' {
                read += 1;
                continue;
            }
            let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                self.keep(rest)?;
                return Ok((bytes.len(), false));
            };
            self.after_return = rest[end] == b'\r';
            read += end + 1;
            let complete = if self.line.is_empty() {
                self.take_line(&rest[..end])?
            } else {
                self.keep(&rest[..end])?;
                let line = std::mem::take(&mut self.line);
                let complete = self.take_line(&line)?;
                self.line = line;
                self.line.clear();
                complete
            };
            if complete {
                return Ok((read, true));
            }
        }
        Ok((read, false))
    }

    /// The data of the event that [`advance`](Self::advance) completed.
    pub(super) fn data(&self) -> &[u8] {
        &self.data
    }

    /// Whether bytes of an unfinished event are waiting.
    pub(super) fn is_inside_event(&self) -> bool {
        self.has_data || !self.line.is_empty()
    }

    /// Forgets the event that was returned.
    pub(super) fn clear(&mut self) {
        self.data.clear();
        self.has_data = false;
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), EventTooLarge> {
        if self.data.len() + self.line.len() + bytes.len() > self.limit {
            return Err(EventTooLarge);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    /// Takes a whole line; returns whether it ends an event that has data.
    fn take_line(&mut self, line: &[u8]) -> Result<bool, EventTooLarge> {
        let line = if std::mem::take(&mut self.at_start) {
            line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line)
        } else {
            line
        };
        if line.is_empty() {
            return Ok(self.has_data);
        }
        let value = match line.strip_prefix(b"data") {
            Some([]) => &[],
            Some([b':', b' ', value @ ..] | [b':', value @ ..]) => value,
            _ => return Ok(false),
        };
        if self.data.len() + value.len() + 1 > self.limit {
            return Err(EventTooLarge);
        }
        if std::mem::replace(&mut self.has_data, true) {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(value);
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(chunks: &[&[u8]]) -> Vec<String> {
        let mut parser = SseParser::new(64);
        let mut events = Vec::new();
        for chunk in chunks {
            let mut rest = *chunk;
            while !rest.is_empty() {
                let (read, complete) = parser.advance(rest).unwrap();
                rest = &rest[read..];
                if complete {
                    events.push(String::from_utf8_lossy(parser.data()).into_owned());
                    parser.clear();
                }
            }
        }
        events
    }

    #[test]
    fn every_cut_and_line_ending_gives_the_same_events() {
        let text = "\u{feff}: hello\nevent: x\ndata: {\"a\":\ndata:1}\nid: 4\n\n\n:ping\n\ndata\n\ndata: ä\n\ndata: cut";
        for ending in ["\n", "\r\n", "\r"] {
            let bytes = text.replace('\n', ending).into_bytes();
            for cut in 0..=bytes.len() {
                let (head, tail) = bytes.split_at(cut);
                assert_eq!(events(&[head, tail]), ["{\"a\":\n1}", "", "ä"], "cut at {cut}");
            }
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(events(&single), ["{\"a\":\n1}", "", "ä"]);
        }
    }

    #[test]
    fn an_event_beyond_the_limit_is_refused_in_any_shape() {
        let long_line = format!("data: {}", "x".repeat(80));
        let many_lines = "data: 1234567890\n".repeat(8);
        for text in [long_line.clone(), format!("{long_line}\n"), many_lines] {
            assert_eq!(SseParser::new(64).advance(text.as_bytes()), Err(EventTooLarge));
        }
        let comment = format!(":{}\n", "x".repeat(60)).repeat(100);
        assert_eq!(SseParser::new(64).advance(comment.as_bytes()), Ok((comment.len(), false)));
    }
}
