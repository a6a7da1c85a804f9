//! Finds lines in a file that may be large; other lines are not stored.

use std::io::{self, BufRead, BufReader, Read};

use toolcrib_sandbox::OpenFile;
use toolcrib_tool::ToolError;

use super::call::FileCall;

/// How many bytes are read to count all lines of a file.
const COUNTED: u64 = 16 << 20;

/// Some lines of a file.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pub(super) bytes: Vec<u8>,
    /// The byte offset of the first line.
    pub(super) start: u64,
    /// The number of the first line, from 1.
    pub(super) first: u64,
    /// The number of the last line; less than `first` if there are none.
    pub(super) last: u64,
    /// The last line was cut because it did not fit.
    pub(super) cut: bool,
    /// There are more lines.
    pub(super) more: bool,
    /// The number of lines in the file, if it was cheap to count them.
    pub(super) total: Option<u64>,
}

/// Reads the lines from `first` (from 1) to `last`, both included, or as many as fit into `room` bytes: whole lines,
/// unless the first alone is longer.
pub(super) fn read(
    file: OpenFile,
    first: u64,
    last: u64,
    room: usize,
    call: &FileCall<'_>,
) -> Result<Lines, ToolError> {
    let size = file.size();
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let (skipped, start) = skip(&mut reader, first - 1, call)?;
    let mut lines = Lines { start, first: skipped + 1, last: skipped, ..Lines::default() };
    if skipped < first - 1 {
        lines.total = Some(skipped);
        return Ok(lines);
    }
    while lines.last < last && lines.bytes.len() < room {
        let before = lines.bytes.len();
        let left = (room - before) as u64;
        if reader.by_ref().take(left).read_until(b'\n', &mut lines.bytes)? == 0 {
            break;
        }
        lines.last += 1;
        let ended = lines.bytes.ends_with(b"\n") || reader.fill_buf()?.is_empty();
        if !ended && before > 0 {
            lines.bytes.truncate(before);
            lines.last -= 1;
            lines.more = true;
            return Ok(lines);
        }
        lines.cut = !ended;
    }
    lines.more = lines.cut || !reader.fill_buf()?.is_empty();
    let read = start + lines.bytes.len() as u64;
    if !lines.more {
        lines.total = Some(lines.last);
    } else if size.saturating_sub(read) <= COUNTED {
        // The rest of a cut line counts for the total, but not as a new line.
        let (rest, _) = skip(&mut reader, u64::MAX, call)?;
        lines.total = Some(lines.last + rest - u64::from(lines.cut));
    }
    Ok(lines)
}

/// Skips up to `count` lines. Returns how many were skipped, and their bytes.
fn skip(
    reader: &mut BufReader<OpenFile>,
    count: u64,
    call: &FileCall<'_>,
) -> Result<(u64, u64), ToolError> {
    let (mut lines, mut bytes, mut open) = (0, 0, false);
    let mut looked = 0_u64;
    while lines < count {
        let buffer = match reader.fill_buf() {
            Ok(buffer) => buffer,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        if buffer.is_empty() {
            // The last line need not end.
            lines += u64::from(open);
            break;
        }
        let mut used = buffer.len();
        for end in memchr::memchr_iter(b'\n', buffer) {
            lines += 1;
            if lines == count {
                used = end + 1;
                break;
            }
        }
        open = buffer[used - 1] != b'\n';
        reader.consume(used);
        bytes += used as u64;
        looked += 1;
        if looked.is_multiple_of(64) {
            call.check_cancelled()?;
        }
    }
    Ok((lines, bytes))
}
