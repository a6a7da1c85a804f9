//! `file_read`, `read_file`: reads a text file or a part of it, and says how to continue.

use std::io::{Read, Seek, SeekFrom};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolcrib_sandbox::OpenFile;
use toolcrib_tool::{ToolError, ToolOutput};

use super::call::FileCall;
use super::encoding::Encoding;
use super::lines;
use super::refusal::refusal;

/// The most that one call reads, in bytes.
const MAX_BYTES: usize = 1 << 20;

/// The largest file that is read completely to find lines in it, in bytes.
const MAX_WHOLE: u64 = 16 << 20;

/// The longest character, in bytes.
const SPARE: usize = 4;

/// How many characters of a model's budget the hint on continuing needs.
const HINT_CHARS: usize = 200;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReadArgs {
    /// The path, from the project's folder: `src/main.rs`.
    path: String,
    /// How the bytes become text: utf-8 (the default), utf-16le, utf-16be, or a label such as
    /// windows-1252, gbk or euc-kr; `base64` for the bytes themselves.
    encoding: Option<String>,
    /// The byte to begin at, from 0. Default 0.
    offset: Option<u64>,
    /// How many bytes to read at most. Default: as many as can be shown.
    #[schemars(range(min = 1, max = 1_048_576))]
    limit: Option<usize>,
    /// The line to begin at, from 1; instead of `offset` and `limit`.
    #[schemars(range(min = 1))]
    start_line: Option<u64>,
    /// The last line to read, itself included. Default: as many as can be shown.
    #[schemars(range(min = 1))]
    end_line: Option<u64>,
}

super::in_both_profiles! {
    /// Read a file of the project as text. A long file is read in parts: the answer says how to continue, by byte
    /// (`offset`) or by line (`start_line`).
    #[tool(
        category = "file",
        tags("file", "text"),
        read_only,
        destructive = false,
        idempotent,
        open_world = false,
        reads("files"),
        empty_as_absent("encoding"),
        examples(
            r#"{"path": "README.md"}"#,
            r#"{"path": "src/main.rs", "start_line": 40, "end_line": 80}"#,
            r#"{"path": "logs/today.log", "offset": 24000}"#,
            r#"{"path": "pixel.gif", "encoding": "base64"}"#
        )
    )]
    file_read / read_file (ReadArgs) => read
}

fn read(args: &ReadArgs, call: &FileCall<'_>) -> Result<ToolOutput, ToolError> {
    let encoding = Encoding::of(args.encoding.as_deref())?;
    let by_line = args.start_line.is_some() || args.end_line.is_some();
    if by_line && (args.offset.is_some() || args.limit.is_some()) {
        return Err(ToolError::invalid_args("both lines and bytes were requested")
            .with_hint("Send either `start_line` and `end_line`, or `offset` and `limit`."));
    }
    let path = call.relative(&args.path)?;
    let file = call.workspace.open_file(&args.path).map_err(|error| refusal(&args.path, error))?;
    let room = call.cx.output_chars().saturating_sub(HINT_CHARS).clamp(HINT_CHARS, MAX_BYTES);
    let part = match (by_line, encoding) {
        (false, _) => bytes(args, &path, file, encoding, room)?,
        (true, Encoding::Base64) => {
            return Err(ToolError::invalid_args("raw bytes have no lines")
                .with_hint("With base64, use `offset` and `limit`."));
        }
        (true, _) => by_lines(args, &path, file, encoding, room, call)?,
    };
    let mut data = part.data;
    data["path"] = path.into();
    let output = ToolOutput::from(part.text).with_data(data);
    Ok(match part.hint {
        Some(hint) => output.with_content(format!("[{hint}]")),
        None => output,
    })
}

/// The part that was read, and the hint.
struct ReadPart {
    text: String,
    hint: Option<String>,
    data: Value,
}

fn bytes(
    args: &ReadArgs,
    path: &str,
    mut file: OpenFile,
    encoding: Encoding,
    room: usize,
) -> Result<ReadPart, ToolError> {
    let size = file.size();
    let mut offset = args.offset.unwrap_or(0);
    if offset > size {
        return Err(past_the_end(&format!("byte {offset}"), &format!("{size} bytes")));
    }
    if matches!(encoding, Encoding::Utf16 { .. }) {
        offset -= offset % 2;
    }
    let room = if encoding == Encoding::Base64 { room / 4 * 3 } else { room };
    let wanted = args.limit.unwrap_or(room).min(MAX_BYTES);
    file.seek(SeekFrom::Start(offset))?;
    // The extra bytes show whether there is more, and replace dropped ones.
    let there = usize::try_from(size - offset).unwrap_or(usize::MAX);
    let mut bytes = Vec::with_capacity(wanted.min(there) + SPARE);
    file.take((wanted + SPARE) as u64).read_to_end(&mut bytes)?;
    if offset > 0 && encoding == Encoding::Utf8 {
        // Do not begin in the middle of a character.
        let inside = bytes.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
        bytes.drain(..inside);
        offset += inside as u64;
    }
    let more = bytes.len() > wanted;
    bytes.truncate(wanted);
    if more {
        let keep = bytes.len() - encoding.excess(&bytes);
        if keep == 0 {
            return Err(ToolError::invalid_args("`limit` is smaller than one character")
                .with_hint("Send a larger `limit`."));
        }
        bytes.truncate(keep);
        // A page whose size this tool chose ends with a line.
        if args.limit.is_none()
            && encoding.has_plain_lines()
            && let Some(end) = memchr::memrchr(b'\n', &bytes).filter(|end| *end >= room / 2)
        {
            bytes.truncate(end + 1);
        }
    }
    let text = encoding.decode(&bytes).map_err(|why| no_text(path, &why, &bytes))?;
    let end = offset + bytes.len() as u64;
    let size = size.max(end);
    let hint = if more {
        Some(format!("bytes {offset} to {end} of {size}; to continue: offset={end}"))
    } else if offset > 0 {
        Some(format!("bytes {offset} to {end} of {size}: the end of the file"))
    } else if bytes.is_empty() {
        Some("the file is empty".to_owned())
    } else {
        None
    };
    let mut data = json!({"size": size, "offset": offset, "end": end, "more": more});
    if offset == 0 && !more && encoding.has_plain_lines() {
        data["lines"] = text.lines().count().into();
    }
    Ok(ReadPart { text, hint, data })
}

fn by_lines(
    args: &ReadArgs,
    path: &str,
    mut file: OpenFile,
    encoding: Encoding,
    room: usize,
    call: &FileCall<'_>,
) -> Result<ReadPart, ToolError> {
    let first = args.start_line.unwrap_or(1);
    let last = args.end_line.unwrap_or(u64::MAX);
    if last < first {
        return Err(ToolError::invalid_args(format!(
            "`end_line` {last} comes before `start_line` {first}"
        )));
    }
    let size = file.size();
    let (found, text) = if encoding.has_plain_lines() {
        let found = lines::read(file, first, last, room, call)?;
        let keep = if found.cut {
            found.bytes.len() - encoding.excess(&found.bytes)
        } else {
            found.bytes.len()
        };
        let text = encoding
            .decode(&found.bytes[..keep])
            .map_err(|why| no_text(path, &why, &found.bytes))?;
        (found, text)
    } else {
        let whole = file.read_all(MAX_WHOLE).map_err(|error| refusal(path, error))?;
        let whole = encoding.decode(&whole).map_err(|why| no_text(path, &why, &whole))?;
        pick(&whole, first, last, room)
    };
    if found.last < found.first && (found.first, first) != (1, 1) {
        let there = found.total.unwrap_or(0);
        return Err(past_the_end(&format!("line {first}"), &format!("{there} lines")));
    }
    let (first, last) = (found.first, found.last);
    let total = found.total.map_or_else(String::new, |total| format!(" of {total}"));
    let hint = if last < first {
        "the file is empty".to_owned()
    } else if found.cut {
        let next = found.start + found.bytes.len() as u64;
        format!("line {first}{total} is cut; to continue: offset={next}")
    } else if found.more {
        format!("lines {first} to {last}{total}; to continue: start_line={}", last + 1)
    } else {
        format!("lines {first} to {last}{total}: the end of the file")
    };
    let mut data =
        json!({"size": size, "first_line": first, "last_line": last, "more": found.more});
    if let Some(total) = found.total {
        data["lines"] = total.into();
    }
    Ok(ReadPart { text, hint: Some(hint), data })
}

/// Picks lines of a text that is in memory.
fn pick(text: &str, first: u64, last: u64, room: usize) -> (lines::Lines, String) {
    let total = text.lines().count() as u64;
    let mut found =
        lines::Lines { first, last: first - 1, total: Some(total), ..Default::default() };
    let mut picked = String::new();
    let skipped = usize::try_from(first - 1).unwrap_or(usize::MAX);
    for line in text.split_inclusive('\n').skip(skipped) {
        if found.last == last || (!picked.is_empty() && picked.len() + line.len() > room) {
            break;
        }
        picked.push_str(line);
        found.last += 1;
    }
    found.more = found.last < total;
    (found, picked)
}

fn past_the_end(asked: &str, there: &str) -> ToolError {
    ToolError::invalid_args(format!("{asked} is past the end: the file has {there}"))
}

fn no_text(path: &str, why: &str, bytes: &[u8]) -> ToolError {
    let guess = match bytes {
        [0xff, 0xfe, ..] => "It looks like utf-16le.",
        [0xfe, 0xff, ..] => "It looks like utf-16be.",
        _ => "If it is text in another encoding, set `encoding`, such as windows-1252.",
    };
    ToolError::execution(format!("`{path}` is not text in this encoding: {why}"))
        .with_hint(guess)
        .with_hint("For the bytes themselves, send `encoding: base64`.")
}
