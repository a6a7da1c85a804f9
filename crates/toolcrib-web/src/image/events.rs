//! Splits an event stream of an images endpoint into its events.

/// Collects bytes and returns the data of each complete event.
#[derive(Debug, Default)]
pub(super) struct EventLines {
    line: Vec<u8>,
    data: Vec<u8>,
}

impl EventLines {
    /// Takes the next bytes; `complete` gets the data of each event that they end.
    pub(super) fn push(&mut self, bytes: &[u8], mut complete: impl FnMut(&[u8])) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if !piece.ends_with(b"\n") {
                continue;
            }
            let line = std::mem::take(&mut self.line);
            let line = line.strip_suffix(b"\n").unwrap_or(&line);
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                self.end(&mut complete);
            } else if let Some(data) = line.strip_prefix(b"data:") {
                if !self.data.is_empty() {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
            }
        }
    }

    /// The stream is over: some servers leave out the last empty line.
    pub(super) fn end(&mut self, mut complete: impl FnMut(&[u8])) {
        let data = std::mem::take(&mut self.data);
        if !data.is_empty() {
            complete(&data);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_complete_wherever_the_bytes_are_cut() {
        let stream =
            b": note\r\nevent: a\r\ndata: one\r\n\r\ndata:two\ndata: 2\n\nid: 3\n\ndata: three\n";
        for size in 1..stream.len() {
            let (mut lines, mut events) = (EventLines::default(), Vec::new());
            for bytes in stream.chunks(size) {
                lines.push(bytes, |data| events.push(String::from_utf8_lossy(data).into_owned()));
            }
            lines.end(|data| events.push(String::from_utf8_lossy(data).into_owned()));
            assert_eq!(events, ["one", "two\n2", "three"], "{size}");
        }
    }
}
