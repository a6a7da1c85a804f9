//! Reads test cases from files: `corpus/<category>.txt`.
//!
//! A case begins with `=== name`. Its parts begin with `--- file`, `--- source`, `--- target`, then
//! perhaps `--- with replace_all` or `--- with near_line=N`, and last `--- becomes LEVEL` and what
//! the file becomes, or `--- refused WHY`. The lines of a part are joined by LF, so the last one has
//! no end unless it is written: `\n`, `\r`, `\t`, `\s` (a space), `\xNN` (a byte), `\u{N}` (a
//! character) and `\\` are what they look like.

use std::fs;
use std::path::Path;

/// The expected outcome.
pub(crate) enum Outcome {
    Becomes { level: String, bytes: Vec<u8> },
    Refused { why: String },
}

pub(crate) struct Case {
    pub(crate) category: String,
    pub(crate) name: String,
    pub(crate) file: Vec<u8>,
    pub(crate) source: String,
    pub(crate) target: String,
    pub(crate) replace_all: bool,
    pub(crate) near_line: Option<usize>,
    pub(crate) outcome: Outcome,
}

/// Every case of every file, in the order of file names.
pub(crate) fn all() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/edit/corpus");
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().flat_map(|path| cases(path)).collect()
}

fn cases(path: &Path) -> Vec<Case> {
    let text = fs::read_to_string(path).unwrap();
    let category = path.file_stem().unwrap().to_str().unwrap();
    text.split("\n=== ").skip(1).map(|case| read(category, case)).collect()
}

fn read(category: &str, text: &str) -> Case {
    let mut parts = text.strip_suffix('\n').unwrap_or(text).split("\n--- ");
    let name = parts.next().unwrap().to_owned();
    let mut case = Case {
        category: category.to_owned(),
        name,
        file: Vec::new(),
        source: String::new(),
        target: String::new(),
        replace_all: false,
        near_line: None,
        outcome: Outcome::Refused { why: String::new() },
    };
    for part in parts {
        let (head, body) = part.split_once('\n').unwrap_or((part, ""));
        // The line that separates a part from the next case does not belong to it.
        let bytes = unescape(body);
        let string = || String::from_utf8(bytes.clone()).unwrap();
        match head.split_once(' ').unwrap_or((head, "")) {
            ("file", _) => case.file = bytes,
            ("source", _) => case.source = string(),
            ("target", _) => case.target = string(),
            ("with", "replace_all") => case.replace_all = true,
            ("with", near) => {
                case.near_line = Some(near.strip_prefix("near_line=").unwrap().parse().unwrap());
            }
            ("becomes", level) => {
                case.outcome = Outcome::Becomes { level: level.to_owned(), bytes };
            }
            ("refused", why) => case.outcome = Outcome::Refused { why: why.to_owned() },
            other => panic!("{category}: {}: {other:?}", case.name),
        }
    }
    case
}

fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        if char != '\\' {
            bytes.extend(char.encode_utf8(&mut [0; 4]).bytes());
            continue;
        }
        match chars.next().unwrap() {
            'n' => bytes.push(b'\n'),
            'r' => bytes.push(b'\r'),
            't' => bytes.push(b'\t'),
            's' => bytes.push(b' '),
            '\\' => bytes.push(b'\\'),
            'x' => {
                let digits: String = chars.by_ref().take(2).collect();
                bytes.push(u8::from_str_radix(&digits, 16).unwrap());
            }
            'u' => {
                let digits: String =
                    chars.by_ref().skip(1).take_while(|char| *char != '}').collect();
                let char = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32).unwrap();
                bytes.extend(char.encode_utf8(&mut [0; 4]).bytes());
            }
            other => panic!("\\{other}"),
        }
    }
    bytes
}
