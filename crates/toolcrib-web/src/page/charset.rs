//! The encoding of a page: byte order mark, header, declaration in the page, else what the bytes look like.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// How far into a page its own declaration is looked for. Browsers look at 1,024 bytes; servers exceed that.
const DECLARED_WITHIN: usize = 4096;
/// How many bytes are looked at to guess.
const GUESSED_FROM: usize = 64 * 1024;

/// A body as text, and the name of its encoding. Bytes that the encoding does not have become `U+FFFD`.
pub(super) fn decoded(body: &[u8], content_type: &str, is_markup: bool) -> (String, &'static str) {
    let encoding = encoding(body, content_type, is_markup);
    // A byte order mark is removed, and overrides everything.
    let (text, used, _) = encoding.decode(body);
    (text.into_owned(), used.name())
}

fn encoding(body: &[u8], content_type: &str, is_markup: bool) -> &'static Encoding {
    if let Some((encoding, _)) = Encoding::for_bom(body) {
        return encoding;
    }
    let head = &body[..body.len().min(DECLARED_WITHIN)];
    in_header(content_type)
        .or_else(|| in_markup(head).filter(|_| is_markup))
        .unwrap_or_else(|| guessed(body))
}

fn in_header(content_type: &str) -> Option<&'static Encoding> {
    let mut parameters = content_type.split(';').skip(1);
    parameters.find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let value = value.trim().trim_matches(['"', '\'']);
        name.trim()
            .eq_ignore_ascii_case("charset")
            .then(|| Encoding::for_label(value.as_bytes()))?
    })
}

/// `<meta charset=…>`, `<meta … content="text/html; charset=…">` or `<?xml … encoding="…"?>`.
fn in_markup(head: &[u8]) -> Option<&'static Encoding> {
    let head: String = head.iter().map(|byte| char::from(byte.to_ascii_lowercase())).collect();
    let declared = if head.trim_start().starts_with("<?xml") {
        let declaration = head.split("?>").next().unwrap_or_default();
        declaration.split_once("encoding").map(|(_, rest)| rest)
    } else {
        None
    };
    let declared = declared.or_else(|| {
        head.split("<meta").skip(1).find_map(|tag| {
            let tag = tag.split('>').next().unwrap_or_default();
            tag.split_once("charset").map(|(_, rest)| rest)
        })
    })?;
    let label = declared.trim_start().strip_prefix('=')?.trim_start();
    let label = match label.chars().next()? {
        quote @ ('"' | '\'') => label[1..].split(quote).next()?,
        _ => label.split(|c: char| c.is_whitespace() || ";\"'/>".contains(c)).next()?,
    };
    let encoding = Encoding::for_label(label.as_bytes())?;
    // It was read as bytes of ASCII, so it cannot be UTF-16.
    Some(if [UTF_16BE, UTF_16LE].contains(&encoding) { UTF_8 } else { encoding })
}

fn guessed(body: &[u8]) -> &'static Encoding {
    if std::str::from_utf8(body).is_ok() {
        return UTF_8;
    }
    let mut detector = chardetng::EncodingDetector::new(chardetng::Iso2022JpDetection::Deny);
    detector.feed(&body[..body.len().min(GUESSED_FROM)], true);
    let guess = detector.guess(None, chardetng::Utf8Detection::Allow);
    if guess == UTF_8 { WINDOWS_1252 } else { guess }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_encoding_is_that_of_the_mark_the_header_the_page_or_the_bytes() {
        let russian =
            encoding_rs::WINDOWS_1251.encode("Привет, это довольно длинное предложение.").0;
        let japanese = encoding_rs::SHIFT_JIS.encode("これは日本語の文章です。").0;
        let meta = [b"<html><meta charset='shift_jis'><p>".as_slice(), &japanese].concat();
        let http = [
            b"<META http-equiv=Content-Type content='text/html; charset=Shift_JIS'>".as_slice(),
            &japanese,
        ]
        .concat();
        let xml =
            [b"<?xml version='1.0' encoding=\"Shift_JIS\"?><p>".as_slice(), &japanese].concat();
        let utf16: Vec<u8> = "\u{feff}Grüße".encode_utf16().flat_map(u16::to_le_bytes).collect();
        for (body, header, name, part) in [
            (&russian[..], "text/html; charset=windows-1251", "windows-1251", "Привет"),
            (&russian[..], "text/html", "windows-1251", "Привет"),
            (&meta, "text/html", "Shift_JIS", "日本語"),
            (&http, "text/html", "Shift_JIS", "日本語"),
            (&xml, "text/html", "Shift_JIS", "日本語"),
            (&utf16, "text/html; charset=iso-8859-1", "UTF-16LE", "Grüße"),
            ("Grüße".as_bytes(), "text/html; charset=nonsense", "UTF-8", "Grüße"),
            ("<meta charset=utf-16>Grüße".as_bytes(), "", "UTF-8", "Grüße"),
            (b"caf\xe9 cr\xe8me br\xfbl\xe9e", "text/plain", "windows-1252", "café crème"),
            (b"<meta charset>", "", "UTF-8", "<meta"),
            (b"<meta charset=", "", "UTF-8", "<meta"),
            (b"<meta charset=\"", "", "UTF-8", "<meta"),
        ] {
            let (text, used) = decoded(body, header, true);
            assert_eq!(used, name, "{header} {text}");
            assert!(text.contains(part), "{header} {text}");
        }
    }
}
