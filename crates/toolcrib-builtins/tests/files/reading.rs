//! Reading: whole files, parts, other encodings, and files that are not text.

use std::fs;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::json;
use toolcrib_tool::ErrorKind;

use crate::harness::Crib;

#[tokio::test]
async fn a_file_is_read_as_it_is() {
    let text = "one\ntwo\r\nthr\u{e9}e";
    let crib = Crib::new(&[("a.txt", text.as_bytes()), ("empty", b"")]);
    assert_eq!(crib.text("file_read", json!({"path": "./a.txt"})).await, text);
    let data = crib.data("file_read", json!({"path": "./a.txt"})).await;
    let expected =
        json!({"path": "a.txt", "size": 15, "offset": 0, "end": 15, "more": false, "lines": 3});
    assert_eq!(data, expected);
    let empty = crib.text("file_read", json!({"path": "empty"})).await;
    assert_eq!(empty, "\n[the file is empty]");
}

#[tokio::test]
async fn a_long_file_is_read_page_by_page_and_nothing_is_lost() {
    let text =
        (0..20_000).map(|number| format!("line {number}: \u{fc}\n")).collect::<Vec<_>>().concat();
    let crib = Crib::new(&[("long.txt", text.as_bytes())]);
    let (mut whole, mut offset, mut pages) = (String::new(), 0, 0);
    loop {
        let arguments = json!({"path": "long.txt", "offset": offset});
        let result = crib.call("file_read", arguments).await;
        assert!(!result.truncated(), "the page is larger than the model's budget");
        let page = result.output().unwrap().content()[0].as_text().into_owned();
        assert!(page.ends_with('\n'), "a page ends with a line");
        whole.push_str(&page);
        pages += 1;
        let data = result.data().unwrap();
        if data["more"] == false {
            break;
        }
        let hint = result.output().unwrap().content()[1].as_text().into_owned();
        assert!(hint.contains(&format!("to continue: offset={}", data["end"])), "{hint}");
        offset = data["end"].as_u64().unwrap();
    }
    assert!(pages > 5, "{pages}");
    assert_eq!(whole, text);
}

#[tokio::test]
async fn lines_are_read_by_number_and_the_answer_says_how_to_continue() {
    let crib = Crib::new(&[("a.txt", b"one\ntwo\nthree\nfour\nfive")]);
    let read = async |arguments: serde_json::Value| {
        let mut arguments = arguments;
        arguments["path"] = json!("a.txt");
        crib.text("file_read", arguments).await
    };
    for (arguments, expected) in [
        (
            json!({"start_line": 2, "end_line": 3}),
            "two\nthree\n\n[lines 2 to 3 of 5; to continue: start_line=4]",
        ),
        (json!({"start_line": 4}), "four\nfive\n[lines 4 to 5 of 5: the end of the file]"),
        (
            json!({"start_line": 5, "end_line": 99}),
            "five\n[lines 5 to 5 of 5: the end of the file]",
        ),
        (json!({"end_line": 1}), "one\n\n[lines 1 to 1 of 5; to continue: start_line=2]"),
    ] {
        assert_eq!(read(arguments).await, expected);
    }
    let past = json!({"path": "a.txt", "start_line": 6});
    let said = crib.fails("file_read", past, ErrorKind::InvalidArgs).await;
    assert!(said.contains("line 6 is past the end: the file has 5 lines"), "{said}");
    for arguments in [
        json!({"path": "a.txt", "start_line": 3, "end_line": 2}),
        json!({"path": "a.txt", "start_line": 0}),
        json!({"path": "a.txt", "start_line": 1, "offset": 0}),
        json!({"path": "a.txt", "offset": 99}),
        json!({"path": "a.txt", "limit": 0}),
        json!({"path": "a.txt", "encoding": "klingon"}),
        json!({"path": "a.txt", "encoding": "base64", "start_line": 1}),
    ] {
        crib.fails("file_read", arguments, ErrorKind::InvalidArgs).await;
    }
}

#[tokio::test]
async fn lines_far_down_a_large_file_are_found() {
    let text = (1..=400_000).map(|number| format!("{number}\n")).collect::<Vec<_>>().concat();
    let crib =
        Crib::new(&[("large.txt", text.as_bytes()), ("wide.txt", "x".repeat(100_000).as_bytes())]);
    let arguments = json!({"path": "large.txt", "start_line": 399_998, "end_line": 399_999});
    let said = crib.text("file_read", arguments).await;
    assert_eq!(
        said,
        "399998\n399999\n\n[lines 399998 to 399999 of 400000; to continue: start_line=400000]"
    );
    // A line that does not fit into any answer is cut, and can be continued by byte.
    let data = crib.data("file_read", json!({"path": "wide.txt", "start_line": 1})).await;
    assert_eq!(
        (&data["more"], &data["last_line"], &data["lines"]),
        (&json!(true), &json!(1), &json!(1))
    );
    let said = crib.text("file_read", json!({"path": "wide.txt", "start_line": 1})).await;
    let next = said.rsplit("offset=").next().unwrap().trim_end_matches(']').parse::<u64>().unwrap();
    let rest =
        crib.data("file_read", json!({"path": "wide.txt", "offset": next, "limit": 90_000})).await;
    assert_eq!(rest["end"], 100_000);
}

#[tokio::test]
async fn other_encodings_are_read_and_written() {
    let crib = Crib::new(&[]);
    for (encoding, bytes) in [
        ("utf-16le", &b"\xe9\0\n\0"[..]),
        ("utf-16be", b"\0\xe9\0\n"),
        ("latin1", b"\xe9\n"),
        ("windows-1252", b"\xe9\n"),
        ("UTF-8", b"\xc3\xa9\n"),
    ] {
        let written = json!({"path": "a.txt", "content": "\u{e9}\n", "encoding": encoding});
        crib.text("file_write", written).await;
        assert_eq!(fs::read(crib.path("a.txt")).unwrap(), bytes, "{encoding}");
        let read = json!({"path": "a.txt", "encoding": encoding});
        assert_eq!(crib.text("file_read", read).await, "\u{e9}\n", "{encoding}");
        let lines = json!({"path": "a.txt", "encoding": encoding, "start_line": 1});
        assert!(crib.text("file_read", lines).await.starts_with("\u{e9}\n\n[lines 1 to 1 of 1"));
    }
    let bytes = json!({"path": "b.bin", "content": "AP8=", "encoding": "base64"});
    crib.text("file_write", bytes).await;
    assert_eq!(fs::read(crib.path("b.bin")).unwrap(), [0, 255]);
    let read = json!({"path": "b.bin", "encoding": "base64"});
    assert_eq!(crib.text("file_read", read).await, "AP8=");
    for (content, encoding) in [("\u{20ac}", "iso-8859-5"), ("A", "base64")] {
        let arguments = json!({"path": "c", "content": content, "encoding": encoding});
        crib.fails("file_write", arguments, ErrorKind::InvalidArgs).await;
    }
}

#[tokio::test]
async fn no_page_begins_or_ends_within_a_character() {
    let text = "a\u{e9}\u{20ac}\u{1f600}".repeat(3);
    let utf16: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let gbk = b"\xc4\xe3\xba\xc3".repeat(3);
    let crib = Crib::new(&[("8", text.as_bytes()), ("16", &utf16), ("gbk", &gbk)]);
    for (path, encoding, size) in
        [("8", "utf-8", text.len()), ("16", "utf-16le", utf16.len()), ("gbk", "gbk", gbk.len())]
    {
        for limit in 4..=9 {
            let (mut whole, mut offset) = (String::new(), 0);
            while offset < size {
                let arguments =
                    json!({"path": path, "encoding": encoding, "offset": offset, "limit": limit});
                let result = crib.call("file_read", arguments).await;
                assert!(result.is_success(), "{path} {offset} {limit}: {}", result.text());
                whole.push_str(&result.output().unwrap().content()[0].as_text());
                offset = usize::try_from(result.data().unwrap()["end"].as_u64().unwrap()).unwrap();
            }
            let expected = if path == "gbk" { "\u{4f60}\u{597d}".repeat(3) } else { text.clone() };
            assert_eq!(whole, expected, "{path} {limit}");
        }
    }
    // An offset in the middle of a character moves to the next one.
    let result = crib.call("file_read", json!({"path": "8", "offset": 2, "limit": 3})).await;
    assert_eq!(result.output().unwrap().content()[0].as_text(), "\u{20ac}");
}

#[tokio::test]
async fn a_file_that_is_not_text_says_how_to_read_it() {
    let crib = Crib::new(&[
        ("image.png", b"\x89PNG\r\n\x1a\n\0\0"),
        ("zero.txt", b"a\0b"),
        ("wide.txt", b"\xff\xfea\0"),
    ]);
    let said = crib.fails("file_read", json!({"path": "image.png"}), ErrorKind::Execution).await;
    assert!(said.contains("0x89") && said.contains("base64"), "{said}");
    crib.fails("file_read", json!({"path": "zero.txt"}), ErrorKind::Execution).await;
    let said = crib.fails("file_read", json!({"path": "wide.txt"}), ErrorKind::Execution).await;
    assert!(said.contains("utf-16le"), "{said}");
    mknodat(CWD, crib.path("fifo"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let said = crib.fails("file_read", json!({"path": "fifo"}), ErrorKind::Execution).await;
    assert!(said.contains("it is a FIFO, not a regular file"), "{said}");
    let said = crib.fails("file_read", json!({"path": "."}), ErrorKind::Execution).await;
    assert!(said.contains("it is a folder"), "{said}");
    let said = crib.fails("file_read", json!({"path": "a\u{1b}[2J"}), ErrorKind::InvalidArgs).await;
    assert!(said.contains("control character") && !said.contains('\u{1b}'), "{said}");
}

#[tokio::test]
async fn a_part_of_a_huge_file_is_read_quickly() {
    let crib = Crib::new(&[]);
    fs::File::create(crib.path("huge")).unwrap().set_len(20 << 30).unwrap();
    let arguments = json!({"path": "huge", "encoding": "base64", "offset": 10_u64 << 30});
    let data = crib.data("file_read", arguments).await;
    assert_eq!((&data["size"], &data["more"]), (&json!(20_u64 << 30), &json!(true)));
}
