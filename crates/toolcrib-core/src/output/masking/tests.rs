//! No byte of a secret gets through, in one piece or in many.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;
use toolcrib_tool::{Content, ErrorKind, Link, StatusUpdate, ToolError, ToolOutput};

use super::*;

fn mask(secrets: &[&str]) -> Mask {
    Mask::new(secrets.iter().map(|secret| (*secret).to_owned())).unwrap()
}

#[test]
fn overlapping_secrets_go_whole() {
    let mask = mask(&["abcdef", "defghi", "cdef", "abcdefXYZ"]);
    assert_eq!(mask.text("-abcdefghi-"), "-[masked]-");
    assert_eq!(mask.text("-abcdefXY-"), "-[masked]XY-");
    assert_eq!(mask.text("-abcdefXYZ-"), "-[masked]-");
    assert_eq!(mask.text("cdefcdef"), "[masked][masked]");
}

#[test]
fn short_secrets_are_said_not_masked() {
    let mask = mask(&["  abc\n", "", "long enough"]);
    assert_eq!(mask.text("abc"), "abc");
    let ignored: Vec<_> = mask.ignored().iter().map(|one| (one.number, one.bytes)).collect();
    assert_eq!(ignored, [(1, 3), (2, 0)]);
    assert!(!format!("{mask:?}").contains("long enough"));
}

#[test]
fn what_was_hidden_stays_hidden_when_secrets_are_renewed() {
    let first = mask(&["the old one"]);
    let both = first.extended(["the new one".to_owned(), "abc".to_owned()]).unwrap();
    assert_eq!(both.text("the old one, the new one"), "[masked], [masked]");
    assert_eq!(both.ignored().iter().map(|one| one.number).collect::<Vec<_>>(), [2]);
    // Nothing new: nothing is built again.
    let same = both.extended(["the old one".to_owned()]).unwrap();
    assert_eq!(same.text("the new one"), "[masked]");
    assert!(same.ignored().is_empty());
    assert!(Mask::default().extended([]).unwrap().is_empty());
}

#[test]
fn a_secret_read_from_a_file_with_a_line_end_is_found_without_it() {
    assert_eq!(mask(&["hunter22\n"]).text("pw=hunter22;"), "pw=[masked];");
}

#[test]
fn parts_of_a_secret_url_are_hidden_and_short_words_of_it_are_not() {
    let mask = mask(&[
        "https://hooks.example/services/T0/B0/abcdefghijklmnopqrstuvwx",
        "postgres://shop:hunter22@db.example/orders",
        "https://api.example/v1",
    ]);
    for (text, shown) in [
        ("POST /services/T0/B0/abcdefghijklmnopqrstuvwx", "POST /[masked]"),
        (r#"{"path":"services\/T0\/B0\/abcdefghijklmnopqrstuvwx"}"#, r#"{"path":"[masked]"}"#),
        ("the token abcdefghijklmnopqrstuvwx is revoked", "the token [masked] is revoked"),
        ("password hunter22 failed", "password [masked] failed"),
        ("services of hooks.example, orders of v1", "services of hooks.example, orders of v1"),
    ] {
        assert_eq!(mask.text(text), shown);
    }
}

/// A private key of several lines, as a file holds it.
const KEY: &str =
    "-----BEGIN KEY-----\nMIIEvQIBADANBg/kqhkiG\nsecond-line-secret\n-----END KEY-----\n";

#[test]
fn a_secret_of_several_lines_is_found_with_any_line_ends() {
    for stored in ["\n", "\r\n", "\r", "\u{2028}"] {
        let mask = mask(&[&KEY.replace('\n', stored)]);
        for end in super::searched::LINE_ENDS {
            let printed = KEY.replace('\n', end);
            assert_eq!(mask.text(&format!("<{printed}>")), format!("<[masked]{end}>"));
            let json = Value::from(printed.as_str()).to_string();
            let masked = mask.text(&json);
            assert!(!masked.contains("KEY") && masked.starts_with("\"[masked]"), "{masked}");
            assert_eq!(mask.value(json!({"key": printed}))["key"], format!("[masked]{end}"));
            for spelt in [printed, json] {
                for size in [1, 7, 20] {
                    let mut stream = mask.bytes();
                    let mut shown = Vec::new();
                    spelt.as_bytes().chunks(size).for_each(|piece| stream.push(piece, &mut shown));
                    stream.finish(&mut shown);
                    assert_eq!(String::from_utf8(shown).unwrap(), mask.text(&spelt));
                }
            }
        }
    }
}

#[test]
fn the_spellings_of_json_are_found() {
    let mask = mask(&["a\"b\\c/é\u{1F600}"]);
    let secret = Value::from("a\"b\\c/é\u{1F600}");
    assert_eq!(mask.text(&secret.to_string()), "\"[masked]\"");
    assert_eq!(mask.text(r#"a\"b\\c\/é😀"#), "[masked]");
    assert_eq!(mask.text(r#"a\"b\\c/\u00e9\ud83d\ude00"#), "[masked]");
    assert_eq!(mask.text(r#"a\"b\\c/\u00E9\uD83D\uDE00"#), "[masked]");
}

#[test]
fn a_secret_is_found_as_other_programs_spell_it_in_json() {
    let mask = mask(&["Zü\"\\/<>&😀-q77"]);
    for spelt in [
        r#"Zü\"\\/\u003c\u003e\u0026😀-q77"#,
        r#"Zü\"\\\/<>&😀-q77"#,
        r#"Z\u00FC\"\\/<>&\uD83D\uDE00-q77"#,
        r#"Zü\"\\/<>&😀\u002dq77"#,
        r#"Z\\u00fc\\\"\\\\/<>&😀-q77"#,
        r#"Z\\\\u00fc\\\\\\\"\\\\\\\\/\\\\u003C>&😀-q77"#,
    ] {
        assert_eq!(mask.text(&format!(r#"{{"a":"{spelt}"}}"#)), r#"{"a":"[masked]"}"#, "{spelt}");
        assert_eq!(mask.value(json!({"a": spelt})), json!({"a": "[masked]"}));
    }
}

#[test]
fn the_lines_of_a_secret_are_masked_wherever_they_stand() {
    let key =
        "-----BEGIN KEY-----\nMIIEvQIBADANBg\n\n  second-line-secret  \nshort\n-----END KEY-----\n";
    let mask = mask(&[key]);
    let shown = "> MIIEvQIBADANBg\t\n> second-line-secret\n> short\n> -----END KEY-----";
    assert_eq!(mask.text(shown), "> [masked]\t\n> [masked]\n> short\n> -----END KEY-----");
    assert_eq!(mask.text(&format!("<{key}>")), "<[masked]\n>", "the whole is one secret");
    assert_eq!(mask.text(r"MIIEvQIBADANBg\\nsecond-line-secret\\n"), r"[masked]\\n[masked]\\n");
}

#[test]
fn data_is_masked_in_strings_keys_and_numbers() {
    let mask = mask(&["12345678", "key-1", "key-2"]);
    let data = json!({
        "key-1": 1, "key-2": [2, "x key-1 x"], "pin": 12_345_678, "long": 9_123_456_789_u64,
        "other": 1234,
    });
    assert_eq!(
        mask.value(data),
        json!({
            "[masked]": 1, "[masked]*": [2, "x [masked] x"], "pin": "[masked]",
            "long": "9[masked]9", "other": 1234,
        })
    );
}

#[test]
fn outputs_failures_and_status_are_masked_everywhere() {
    let mask = mask(&["hunter22"]);
    let output = ToolOutput::from("hunter22")
        .with_content({
            let mut link = Link::new("https://u:hunter22@host/", "hunter22");
            link.title = Some("of hunter22".into());
            link.description = Some("with hunter22".into());
            link
        })
        .with_content(Content::TextFile {
            uri: "f:hunter22".into(),
            text: "is hunter22".into(),
            mime_type: None,
        })
        .with_content(Content::Blob {
            uri: "f".into(),
            data: b"pw hunter22".to_vec(),
            mime_type: "text/plain".into(),
        })
        .with_data(json!({"hunter22": ["hunter22"]}))
        .with_meta("command", "login hunter22");
    let leaks = |text: String| text.contains("hunter22") || text.contains("104, 117, 110");
    let masked = mask.output(output.clone());
    assert!(leaks(format!("{output:?}")) && !leaks(format!("{masked:?}")));
    assert_eq!(masked.content().len(), 4);

    let error = ToolError::new(ErrorKind::RateLimited, "no hunter22")
        .with_hint("not hunter22")
        .with_partial(output)
        .with_retry_after(std::time::Duration::from_secs(7))
        .with_source(std::io::Error::other("hunter22 refused"));
    let masked = mask.error(error);
    assert_eq!((masked.kind(), masked.retryable()), (ErrorKind::RateLimited, true));
    assert_eq!(masked.retry_after(), Some(std::time::Duration::from_secs(7)));
    assert_eq!(masked.message(), "no [masked]");
    assert_eq!(masked.source().unwrap().to_string(), "[masked] refused");
    assert!(!leaks(format!("{masked:?} {:?}", masked.partial())));

    let status =
        StatusUpdate::error("hunter22").with_tip("at hunter22").with_param("p", "hunter22");
    let status = mask.status(status.with_result("hunter22").with_metadata("hunter22", 1));
    assert!(!leaks(format!("{status:?}")));
    assert_eq!(status.tip.as_deref(), Some("at [masked]"));
}

#[test]
fn the_type_of_a_part_is_masked_wherever_it_stands() {
    let mask = mask(&["hunter22"]);
    let (uri, mime_type) = ("a:b".to_owned(), "image/hunter22".to_owned());
    let parts = [
        Content::Image { data: vec![0], mime_type: mime_type.clone() },
        Content::Audio { data: vec![0], mime_type: mime_type.clone() },
        Content::Blob { uri: uri.clone(), data: vec![0], mime_type: mime_type.clone() },
        Content::TextFile { uri, text: String::new(), mime_type: Some(mime_type.clone()) },
        Link::new("a:b", "b").mime_type(mime_type).into(),
    ];
    for part in parts {
        let output = mask.output(ToolOutput::new().replace_content(vec![part]));
        let shown = format!("{output:?}");
        assert!(shown.contains("image/[masked]") && !shown.contains("hunter22"), "{shown}");
    }
}

#[test]
fn an_output_without_secrets_stays_what_it_is() {
    let output = ToolOutput::from("plain").with_data(json!({"a": [1, null]}));
    assert_eq!(mask(&["hunter22"]).output(output.clone()), output);
}

#[test]
fn a_stream_is_not_held_up_by_what_is_no_beginning() {
    let mut stream = mask(&["hunter22"]).stream();
    assert_eq!(stream.push("plain text"), "plain text");
    assert!(matches!(stream.push("borrowed"), Cow::Borrowed(_)));
    assert_eq!(stream.push("hunting"), "hunting");
    assert_eq!(stream.push("h"), "");
    assert_eq!(stream.push("hunter2"), "h");
    assert_eq!(stream.push("3"), "hunter23");
    assert_eq!(stream.finish(), "");
}

#[test]
fn a_part_that_is_no_text_ends_the_text_before_it() {
    let mut stream = mask(&["hunter22"]).stream();
    let link = Content::from(Link::new("x:hunter22", "l"));
    let masked = Content::from(Link::new("x:[masked]", "l"));
    assert_eq!(stream.part("hun".into()), []);
    assert_eq!(stream.part("ter22hunt".into()), [Content::text("[masked]")]);
    assert_eq!(stream.part(link), [Content::text("hunt"), masked]);
    assert_eq!(stream.part("er22".into()), [Content::text("er22")]);
    assert_eq!(stream.finish(), "");
}

/// Letters that make secrets overlap often and that are in no mark.
const LETTERS: &str = "[xy\"é]{1,9}";

/// A piece of a text with some of the escapes of JSON, whole and cut off.
const PIECE: &str = r#"([xy"é\\ ]|\\u007[89]|\\\\u0|\\ud83d|u00E9){0,12}"#;

/// The bytes of the longest spelling of a character after all levels of escapes that are read.
const LONGEST_ESCAPE: usize = 12 * 6 * 6 * 6;

/// A text as a string of JSON, each character spelt in the way that the next of the choices says.
fn escaped(text: &str, choices: &[u8]) -> String {
    let number = |unit: u16, capital: bool| {
        if capital { format!("\\u{unit:04X}") } else { format!("\\u{unit:04x}") }
    };
    let mut spelt = String::new();
    for (character, choice) in text.chars().zip(choices.iter().cycle()) {
        let short = match character {
            '"' | '\\' | '/' => Some(character),
            '\n' => Some('n'),
            '\t' => Some('t'),
            _ => None,
        };
        match (short, choice % 4) {
            (Some(letter), 0 | 1) => spelt.extend(['\\', letter]),
            (None, 0 | 1) => spelt.push(character),
            (_, style) => character
                .encode_utf16(&mut [0; 2])
                .iter()
                .for_each(|unit| spelt.push_str(&number(*unit, style == 3))),
        }
    }
    spelt
}

#[test]
fn a_masked_failure_keeps_all_but_the_secret() {
    let error = ToolError::unavailable("S3CRET is used up")
        .with_hint("wait")
        .with_retryable(true)
        .with_retry_after(Duration::from_secs(7))
        .with_partial(ToolOutput::from("half").with_meta("rows", 1));
    let masked = mask(&["S3CRET"]).error(error.clone());
    assert_eq!(masked.message(), "[masked] is used up");
    let expected = error.map_texts(|text| text.replace("S3CRET", "[masked]"));
    assert_eq!(masked, expected);
    assert_eq!(masked.retry_after(), Some(Duration::from_secs(7)));
}

proptest! {
    #[test]
    fn a_stream_shows_what_the_whole_shows(
        secrets in prop::collection::vec(LETTERS, 0..5),
        pieces in prop::collection::vec(PIECE, 0..8),
    ) {
        let mask = Mask::new(secrets.clone()).unwrap();
        let longest = secrets.iter().map(String::len).max().unwrap_or(1);
        let whole: String = pieces.concat();
        let mut stream = mask.stream();
        let mut shown = String::new();
        for piece in &pieces {
            shown.push_str(&stream.push(piece));
            prop_assert!(stream.held() < (longest + 2) * LONGEST_ESCAPE);
        }
        shown.push_str(&stream.finish());
        prop_assert_eq!(&shown, &mask.text(&whole).into_owned());
        for secret in secrets.iter().filter(|secret| secret.len() >= SHORTEST_SECRET) {
            prop_assert!(!shown.contains(secret.as_str()), "{secret} in {shown}");
        }
    }

    #[test]
    fn bytes_in_pieces_are_masked_like_the_whole_text(
        secrets in prop::collection::vec(LETTERS, 0..5),
        pieces in prop::collection::vec(PIECE, 0..8),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let mask = Mask::new(secrets).unwrap();
        let text = pieces.concat();
        // Pieces of a stream end anywhere, also within a character.
        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        ends.push(text.len());
        ends.sort_unstable();
        let (mut stream, mut shown, mut start) = (mask.bytes(), Vec::new(), 0);
        for end in ends {
            stream.push(&text.as_bytes()[start..end], &mut shown);
            start = end;
        }
        stream.finish(&mut shown);
        prop_assert_eq!(String::from_utf8(shown).unwrap(), mask.text(&text).into_owned());
    }

    /// A writer of JSON may escape any character, and its text may stand in a string of JSON again and again.
    #[test]
    fn a_secret_is_found_under_any_escapes_of_json_wherever_the_stream_is_cut(
        secret in "[a-z<>&/\\\\\"\n\té€😀u0-9-]{4,12}",
        choices in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..9), 1..4),
        before in "[ a-z\\\\]{0,4}",
        cut in any::<prop::sample::Index>(),
    ) {
        prop_assume!(secret.trim().len() >= SHORTEST_SECRET);
        let mask = mask(&[&secret]);
        let (mut spelt, mut around) = (secret.trim().to_owned(), before);
        for choices in &choices {
            spelt = escaped(&spelt, choices);
            around = escaped(&around, choices);
        }
        let text = format!("{{\"{around}\":\"{spelt}\"}}");
        let masked = mask.text(&text);
        prop_assert_eq!(&*masked, &format!("{{\"{around}\":\"[masked]\"}}"));
        prop_assert!(mask.finds(&text));
        let (first, second) = text.as_bytes().split_at(cut.index(text.len()));
        let (mut stream, mut shown) = (mask.bytes(), Vec::new());
        stream.push(first, &mut shown);
        stream.push(second, &mut shown);
        stream.finish(&mut shown);
        prop_assert_eq!(String::from_utf8(shown).unwrap(), masked.into_owned());
    }

    #[test]
    fn whatever_stands_between_secrets_stays(before in "[a-z ]{0,9}", after in "[a-z ]{0,9}") {
        let text = format!("{before}S3CRET{after}");
        let masked = format!("{before}[masked]{after}");
        prop_assert_eq!(mask(&["S3CRET"]).text(&text), masked);
    }
}

#[test]
fn questions_are_masked_and_what_the_tool_remembers_is_not() {
    use serde_json::json;
    use toolcrib_tool::{InputPart, InputRequest};

    use crate::suspension::Waiting;

    let schema = json!({"type": "object", "title": "hunter22?"});
    let parts = [InputPart::form("a", "hunter22?", schema), InputPart::sample("b", "hunter22", 9)];
    let request = InputRequest::of(parts).remember("hunter22");
    let waiting = serde_json::to_value(mask(&["hunter22"]).waiting(Waiting::from(request)));
    let mut waiting = waiting.expect("it is JSON");
    assert_eq!(waiting["remembered"].take(), "hunter22");
    assert!(!waiting.to_string().contains("hunter22"), "{waiting}");
    assert_eq!(waiting["parts"][1]["ask"]["prompt"], "[masked]");
}
