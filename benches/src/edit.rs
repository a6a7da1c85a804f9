//! Edits by quoted text: the same block sought in the same file, drifted in each way an edit looks
//! through.

use std::hint::black_box;
use std::time::Instant;

use memchr::memmem;
use toolcrib_edit::Edit;

use crate::Contender;

/// A file, and a source to be found in it or not.
#[derive(Debug, Clone)]
pub struct Work {
    /// What has drifted.
    pub name: &'static str,
    /// The file.
    pub file: Vec<u8>,
    /// What is sought.
    pub source: String,
}

/// Lines of the source.
const BLOCK: usize = 12;

/// Lines of which a file repeats, so that a large one is made quickly.
const CHUNK: usize = 1_000;

fn line(word: &str, number: usize) -> String {
    let indent = "    ".repeat(1 + number % 3);
    format!("{indent}let {word}_{number} = compute({word}_{}, \"item {number}\");\n", number / 2)
}

/// What may have drifted.
pub const DRIFTS: [&str; 12] = [
    "exact",
    "line ends",
    "trailing blanks",
    "indentation",
    "quotes",
    "quotes at the start",
    "invisible characters",
    "odd separators",
    "ambiguous",
    "a miss",
    "a miss, and quotes",
    "nothing alike",
];

/// One of the [`DRIFTS`], in a file of about so many lines, with a source of so many, which stands
/// at three quarters of it.
pub fn drift(name: &'static str, lines: usize, block: usize) -> Work {
    let source: String = (0..block).map(|number| line("sought", number)).collect();
    let chunk: String = (0..CHUNK).map(|number| line("value", number)).collect();
    let chunks = lines.div_ceil(CHUNK);
    let drifted = |text: &str| match name {
        "line ends" => text.replace('\n', "\r\n"),
        "trailing blanks" => text.replace('\n', "  \n"),
        "indentation" => text.replace("    ", "\t"),
        "quotes" => text.replace('"', "\u{201d}"),
        "quotes at the start" => text.replace("let ", "\u{201c}let\u{201d} "),
        "invisible characters" => text.replace("compute", "comp\u{200b}ute"),
        "odd separators" => text.replace(" = ", "\u{a0}=\u{2028}"),
        "a miss" => text.replace("item", "thing"),
        "a miss, and quotes" => text.replace("item", "thing").replace('"', "\u{201d}"),
        "nothing alike" => String::new(),
        _ => text.to_owned(),
    };
    let around = match name {
        "a miss" => chunk,
        "a miss, and quotes" => chunk.replace('"', "\u{201d}"),
        _ => drifted(&chunk),
    };
    let around = if name == "nothing alike" { line("value", 1).repeat(CHUNK) } else { around };
    let before = around.repeat(chunks * 3 / 4);
    let mut file = before + &drifted(&source) + &around.repeat(chunks - chunks * 3 / 4);
    if name == "ambiguous" {
        file += &source;
    }
    let source = match name {
        "nothing alike" => "zzyzx qwfp\n".repeat(block),
        "quotes at the start" => source.replace("let ", "\"let\" "),
        _ => source,
    };
    Work { name, file: file.into_bytes(), source }
}

/// All of them, with a source of twelve lines.
pub fn drifts(lines: usize) -> Vec<Work> {
    DRIFTS.map(|name| drift(name, lines, BLOCK)).into()
}

/// Files in which nearly everything repeats.
pub fn pathological(lines: usize) -> Vec<Work> {
    let work = |name, file: String, source: String| Work { name, file: file.into_bytes(), source };
    vec![
        work("one line, always", "    return x;\n".repeat(lines), "return x;\n".repeat(500)),
        work(
            "one line, always, and another at last",
            "    return x;\n".repeat(lines),
            "\treturn x;\n".repeat(500) + "\treturn y;\n",
        ),
        work("closing braces", "\t}\n".repeat(lines), "    }\n".repeat(500) + "    {\n"),
        work("one character", "a".repeat(lines * 40), "a".repeat(2_000) + "b"),
        work("folded, always", "say  “x”;\n".repeat(lines), "say \"x\";\n".repeat(500) + "y\n"),
        work("blank lines", "\n".repeat(lines * 10), "x\n".to_owned() + &"\n".repeat(500)),
    ]
}

/// Who looks for the source: ours with its whole answer, one substring search as the limit, and a
/// scan of lines as common tools make it.
pub fn contenders(work: &Work) -> Vec<Contender> {
    let ours = work.clone();
    let limit = work.clone();
    let scan = work.clone();
    vec![
        Contender::new("ours", move |times| {
            let start = Instant::now();
            for _ in 0..times {
                // A target that differs in its last line.
                let target = ours.source.clone() + "    // new\n";
                let edit = Edit::new(&ours.source, &target);
                let _ = black_box(edit.find(black_box(&ours.file)));
            }
            start.elapsed()
        }),
        Contender::new("limit/memmem", move |times| {
            let start = Instant::now();
            for _ in 0..times {
                let found = memmem::find_iter(black_box(&limit.file), limit.source.as_bytes());
                black_box(found.count());
            }
            start.elapsed()
        }),
        Contender::new("line scan", move |times| {
            let start = Instant::now();
            for _ in 0..times {
                black_box(line_scan(black_box(&scan.file), &scan.source));
            }
            start.elapsed()
        }),
    ]
}

/// A way to look at a line.
type Eyes = fn(&str) -> String;

/// A string per line; at each position the block is compared, by stricter eyes first.
fn line_scan(file: &[u8], source: &str) -> Option<usize> {
    let text = String::from_utf8_lossy(file);
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let wanted: Vec<String> = source.lines().map(str::to_owned).collect();
    let eyes: [Eyes; 4] = [
        str::to_owned,
        |line| line.trim_end().to_owned(),
        |line| line.trim().to_owned(),
        |line| line.trim().replace(['\u{201c}', '\u{201d}'], "\""),
    ];
    eyes.iter().find_map(|seen| {
        (0..=lines.len().checked_sub(wanted.len())?).find(|first| {
            let window = lines[*first..].iter().zip(&wanted);
            window.clone().count() == wanted.len()
                && window.into_iter().all(|(line, wanted)| seen(line) == seen(wanted))
        })
    })
}
