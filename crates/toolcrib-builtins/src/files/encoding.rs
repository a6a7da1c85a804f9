//! Converts between the bytes of a file and text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use toolcrib_tool::ToolError;

/// The encoding of a file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Encoding {
    Utf8,
    Utf16 {
        big_endian: bool,
    },
    /// The raw bytes in base64.
    Base64,
    /// An older encoding, in which a line end is one byte.
    Legacy(&'static encoding_rs::Encoding),
}

/// The encoding of a lower-case label, as browsers or Python spell it; models often use Python's spelling.
fn known(label: &str) -> Option<&'static encoding_rs::Encoding> {
    let of = |label: &str| encoding_rs::Encoding::for_label(label.as_bytes());
    // Python accepts any punctuation, or none, between the parts of a name.
    let parts: Vec<&str> =
        label.split(['-', '_', ' ', '.']).filter(|part| !part.is_empty()).collect();
    of(label).or_else(|| of(&parts.join("-"))).or_else(|| {
        let name = parts.concat();
        let usual = match name.as_str() {
            "u8" | "utf" | "cp65001" => "utf-8",
            "utf16le" | "utf16" | "u16" => "utf-16le",
            "utf16be" => "utf-16be",
            "8859" | "latin" | "cp819" => "latin1",
            "latin9" => "iso-8859-15",
            "cp874" => "windows-874",
            "cp932" | "ms932" | "mskanji" => "shift_jis",
            "cp936" | "ms936" => "gbk",
            "cp949" | "ms949" | "uhc" => "euc-kr",
            "cp950" | "ms950" | "big5hkscs" | "hkscs" => "big5",
            "macroman" => "macintosh",
            "maccyrillic" => "x-mac-cyrillic",
            name => name,
        };
        of(usual).or_else(|| {
            // `iso8859_15`, `iso88591`
            usual.strip_prefix("iso8859").and_then(|part| of(&format!("iso-8859-{part}")))
        })
    })
}

impl Encoding {
    /// The encoding of a label; utf-8 if there is none.
    pub(super) fn of(label: Option<&str>) -> Result<Self, ToolError> {
        let Some(label) = label else { return Ok(Self::Utf8) };
        let lower = label.trim().to_ascii_lowercase();
        if lower == "base64" {
            return Ok(Self::Base64);
        }
        match known(&lower) {
            Some(known) if known == encoding_rs::UTF_8 => Ok(Self::Utf8),
            Some(known) if known == encoding_rs::UTF_16LE => Ok(Self::Utf16 { big_endian: false }),
            Some(known) if known == encoding_rs::UTF_16BE => Ok(Self::Utf16 { big_endian: true }),
            // This encoding has shift states, so reading cannot begin in the middle of a file.
            Some(known)
                if known != encoding_rs::REPLACEMENT && known != encoding_rs::ISO_2022_JP =>
            {
                Ok(Self::Legacy(known))
            }
            _ => Err(ToolError::invalid_args(format!("there is no encoding {label:?}")).with_hint(
                "Use utf-8, utf-16le, utf-16be, a label such as windows-1252, latin1, gbk, \
                 shift_jis or euc-kr, or base64 for the bytes themselves.",
            )),
        }
    }

    /// Whether byte 10 always ends a line.
    pub(super) fn has_plain_lines(self) -> bool {
        matches!(self, Self::Utf8 | Self::Legacy(_))
    }

    /// The text of bytes, without a byte order mark. `Err` explains why they are not text.
    pub(super) fn decode(self, bytes: &[u8]) -> Result<String, String> {
        match self {
            Self::Utf8 => {
                let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
                let text = std::str::from_utf8(bytes).map_err(|error| {
                    let at = error.valid_up_to();
                    format!("the byte 0x{:02x} at {at} is no part of a character", bytes[at])
                })?;
                match text.find('\0') {
                    Some(zero) => Err(format!("there is a zero byte at {zero}")),
                    None => Ok(text.to_owned()),
                }
            }
            Self::Utf16 { big_endian } => {
                let units = bytes.chunks_exact(2).map(|pair| {
                    let pair = [pair[0], pair[1]];
                    if big_endian { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) }
                });
                let text: Result<String, _> = char::decode_utf16(units).collect();
                let text = text.map_err(|error| error.to_string())?;
                Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
            }
            Self::Base64 => Ok(BASE64.encode(bytes)),
            Self::Legacy(encoding) => encoding
                .decode_without_bom_handling_and_without_replacement(bytes)
                .map(std::borrow::Cow::into_owned)
                .ok_or_else(|| format!("there are bytes that mean nothing in {}", encoding.name())),
        }
    }

    /// The bytes of a text.
    pub(super) fn encode(self, text: &str) -> Result<Vec<u8>, ToolError> {
        match self {
            Self::Utf8 => Ok(text.as_bytes().to_vec()),
            Self::Utf16 { big_endian: true } => {
                Ok(text.encode_utf16().flat_map(u16::to_be_bytes).collect())
            }
            Self::Utf16 { big_endian: false } => {
                Ok(text.encode_utf16().flat_map(u16::to_le_bytes).collect())
            }
            Self::Base64 => BASE64.decode(text.trim()).map_err(|error| {
                ToolError::invalid_args(format!("`content` is not base64: {error}")).with_hint(
                    "Send standard base64 with padding, or leave `encoding` out for text.",
                )
            }),
            Self::Legacy(encoding) => match encoding.encode(text) {
                (bytes, _, false) => Ok(bytes.into_owned()),
                _ => Err(ToolError::invalid_args(format!(
                    "`content` has characters that {} does not have",
                    encoding.name()
                ))
                .with_hint("Use utf-8, or leave these characters out.")),
            },
        }
    }

    /// How many bytes to drop so that the bytes end between characters.
    pub(super) fn excess(self, bytes: &[u8]) -> usize {
        match self {
            Self::Utf8 => match std::str::from_utf8(bytes) {
                Err(error) if error.error_len().is_none() => bytes.len() - error.valid_up_to(),
                _ => 0,
            },
            Self::Utf16 { big_endian } => {
                let odd = bytes.len() % 2;
                let last = bytes[..bytes.len() - odd].last_chunk::<2>();
                let high = last.is_some_and(|pair| {
                    let unit = if big_endian {
                        u16::from_be_bytes(*pair)
                    } else {
                        u16::from_le_bytes(*pair)
                    };
                    (0xd800..0xdc00).contains(&unit)
                });
                odd + if high { 2 } else { 0 }
            }
            Self::Base64 => 0,
            // Up to three bytes at the end may be the beginning of a character.
            Self::Legacy(encoding) => (0..=3.min(bytes.len()))
                .find(|less| {
                    let part = &bytes[..bytes.len() - less];
                    encoding.decode_without_bom_handling_and_without_replacement(part).is_some()
                })
                .unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_spellings_name_the_same_encodings() {
        for (python, name) in [
            ("latin-1", "windows-1252"),
            ("latin_1", "windows-1252"),
            ("iso8859_1", "windows-1252"),
            ("ISO-8859-1", "windows-1252"),
            ("iso8859_15", "ISO-8859-15"),
            ("iso8859-2", "ISO-8859-2"),
            ("cp1252", "windows-1252"),
            ("utf_8", "UTF-8"),
            ("U8", "UTF-8"),
            ("utf_16_le", "UTF-16LE"),
            ("utf-16-be", "UTF-16BE"),
            ("utf_16", "UTF-16LE"),
            ("euc_jp", "EUC-JP"),
            ("cp932", "Shift_JIS"),
            ("shift-jis", "Shift_JIS"),
            ("cp949", "EUC-KR"),
            ("gb2312", "GBK"),
            ("gb18030", "gb18030"),
            ("big5hkscs", "Big5"),
            ("koi8_r", "KOI8-R"),
            ("mac_roman", "macintosh"),
        ] {
            let found = known(&python.to_ascii_lowercase()).map(encoding_rs::Encoding::name);
            assert_eq!(found, Some(name), "{python}");
        }
        for none in ["klingon", "", "latin-", "iso8859-99", "utf_32", "cp437"] {
            assert_eq!(Encoding::of(Some(none)).is_ok(), none == "latin-", "{none}");
        }
    }
}
