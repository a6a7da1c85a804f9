//! Characters that are invisible or change how the surrounding text is shown: finds them, and makes them visible.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The text with control characters and bidirectional controls written as escapes, for example
/// `\u{1b}`. Tabs and line ends stay; a carriage return without a newline after it does not, because
/// it overwrites the line on a terminal.
///
/// ```
/// use toolcrib_tool::visible;
///
/// assert_eq!(visible("\u{1b}[31mred\r\n"), "\\u{1b}[31mred\r\n");
/// ```
pub fn visible(text: &str) -> Cow<'_, str> {
    let hidden = |index: usize, character: char| match character {
        '\n' | '\t' => false,
        '\r' => !text[index + 1..].starts_with('\n'),
        character => character.is_control() || is_bidirectional(character),
    };
    let Some((first, _)) =
        text.char_indices().find(|(index, character)| hidden(*index, *character))
    else {
        return Cow::Borrowed(text);
    };
    let mut shown = String::with_capacity(text.len() + 16);
    shown.push_str(&text[..first]);
    for (index, character) in text[first..].char_indices() {
        if hidden(first + index, character) {
            let _ = write!(shown, "\\u{{{:x}}}", u32::from(character));
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

/// The text as one line with nothing hidden: every invisible character ([`is_unseen`]) becomes an escape, including
/// line ends and tabs. For questions to an operator, who must see everything that they decide on.
///
/// ```
/// use toolcrib_tool::fully_visible;
///
/// assert_eq!(fully_visible("rm \u{202e}x\u{9b}2J\n"), r"rm \u{202e}x\u{9b}2J\n");
/// ```
pub fn fully_visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unseen) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            unseen if is_unseen(unseen) => {
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(unseen));
            }
            seen => shown.push(seen),
        }
    }
    Cow::Owned(shown)
}

/// The same for a text of several lines, which keeps its line feeds: a script, a definition, or pretty-printed JSON.
///
/// ```
/// use toolcrib_tool::fully_visible_text;
///
/// assert_eq!(fully_visible_text("rm\u{a0}x\nls\r\n"), "rm\\u{a0}x\nls\\r\n");
/// ```
pub fn fully_visible_text(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|character| character != '\n' && is_unseen(character)) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for line in text.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        shown.push_str(&fully_visible(line));
        shown.push_str(end);
    }
    Cow::Owned(shown)
}

/// A character that a person reading a text cannot see, or sees differently than a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct HiddenCharacter {
    /// Its byte offset.
    pub at: usize,
    /// The character.
    pub character: char,
    /// What it does, as a clause: `which is invisible`.
    pub effect: &'static str,
}

/// The first character of a text that is invisible, changes the direction of the surrounding text, or is a control
/// character other than tab and line end. Foreign texts for models must have none: a reviewer would not see what the
/// model reads.
///
/// Joiners are allowed between characters beyond ASCII, where scripts and emoji need them.
///
/// ```
/// use toolcrib_tool::hidden_character;
///
/// assert_eq!(hidden_character("Reads a file. 👩‍💻\n"), None);
/// let hidden = hidden_character("Reads\u{200b} a file.").map(|found| (found.at, found.effect));
/// assert_eq!(hidden, Some((5, "which is invisible")));
/// ```
pub fn hidden_character(text: &str) -> Option<HiddenCharacter> {
    hidden_characters(text).next()
}

/// Every such character of a text, in order.
pub fn hidden_characters(text: &str) -> impl Iterator<Item = HiddenCharacter> {
    text.char_indices().filter_map(move |(at, character)| {
        let effect = effect(text, at, character)?;
        Some(HiddenCharacter { at, character, effect })
    })
}

fn effect(text: &str, at: usize, character: char) -> Option<&'static str> {
    match Unseen::of(character)? {
        // A reader sees a blank, and so does the model.
        Unseen::Space | Unseen::EmojiSelector => None,
        Unseen::Control if matches!(character, '\n' | '\r' | '\t') => None,
        Unseen::Control => Some("which is a control character"),
        Unseen::Direction => Some("which turns the direction of the text around it"),
        Unseen::Tag => Some("which is invisible and spells text to a model"),
        Unseen::Selector => Some("which is invisible and can carry hidden data"),
        Unseen::LineEnd => Some("which ends a line for some readers and not for others"),
        Unseen::Noncharacter => {
            Some("which is not a character and which readers show differently or not at all")
        }
        Unseen::Joiner => {
            let before = text[..at].chars().next_back();
            let after = text[at + character.len_utf8()..].chars().next();
            let joins = before.zip(after).is_some_and(|(a, b)| !a.is_ascii() && !b.is_ascii());
            (!joins).then_some("which is invisible")
        }
        Unseen::Invisible => Some("which is invisible"),
    }
}

/// Whether a person cannot tell this character from another one, or from none, by looking: control characters
/// (including tabs and line ends), characters without an image, every space other than U+0020, and noncharacters. For
/// places where a text must show everything, such as a question to an operator.
pub fn is_unseen(character: char) -> bool {
    Unseen::of(character).is_some()
}

/// Whether a character changes the direction of the surrounding text.
fn is_bidirectional(character: char) -> bool {
    Unseen::of(character) == Some(Unseen::Direction)
}

/// Why a character is not seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unseen {
    /// A control character, also a tab or a line end.
    Control,
    /// Changes the direction of the surrounding text.
    Direction,
    /// Spells ASCII text without an image.
    Tag,
    /// Selects a variant of the character before it; a sequence of them can carry any data.
    Selector,
    /// Selects text or picture of an emoji.
    EmojiSelector,
    /// Joins or separates characters, as some scripts and emoji need.
    Joiner,
    /// Ends a line in Unicode, but not for most programs.
    LineEnd,
    /// A space other than U+0020.
    Space,
    /// A code point that is reserved for programs.
    Noncharacter,
    /// Has no image for another reason.
    Invisible,
}

/// Every unseen character beyond the control characters and the noncharacters at the ends of the planes, in order: the
/// default-ignorable ones, the format characters that have no image, the separators, and letters, symbols and fillers
/// that are blank. A test holds it against the tables of Unicode.
const UNSEEN: &[(char, char, Unseen)] = &[
    ('\u{a0}', '\u{a0}', Unseen::Space),
    ('\u{ad}', '\u{ad}', Unseen::Invisible),   // soft hyphen
    ('\u{34f}', '\u{34f}', Unseen::Invisible), // grapheme joiner
    ('\u{61c}', '\u{61c}', Unseen::Direction),
    ('\u{115f}', '\u{1160}', Unseen::Invisible), // Hangul fillers
    ('\u{1680}', '\u{1680}', Unseen::Space),
    ('\u{17b4}', '\u{17b5}', Unseen::Invisible), // Khmer vowels
    ('\u{180b}', '\u{180f}', Unseen::Invisible), // Mongolian selectors and separator
    ('\u{2000}', '\u{200a}', Unseen::Space),
    ('\u{200b}', '\u{200b}', Unseen::Invisible),
    ('\u{200c}', '\u{200d}', Unseen::Joiner),
    ('\u{200e}', '\u{200f}', Unseen::Direction),
    ('\u{2028}', '\u{2029}', Unseen::LineEnd),
    ('\u{202a}', '\u{202e}', Unseen::Direction),
    ('\u{202f}', '\u{202f}', Unseen::Space),
    ('\u{205f}', '\u{205f}', Unseen::Space),
    ('\u{2060}', '\u{2065}', Unseen::Invisible),
    ('\u{2066}', '\u{2069}', Unseen::Direction),
    ('\u{206a}', '\u{206f}', Unseen::Invisible),
    ('\u{2800}', '\u{2800}', Unseen::Invisible), // Braille blank
    ('\u{3000}', '\u{3000}', Unseen::Space),
    ('\u{3164}', '\u{3164}', Unseen::Invisible), // Hangul filler
    ('\u{fdd0}', '\u{fdef}', Unseen::Noncharacter),
    ('\u{fe00}', '\u{fe0d}', Unseen::Selector),
    ('\u{fe0e}', '\u{fe0f}', Unseen::EmojiSelector),
    ('\u{feff}', '\u{feff}', Unseen::Invisible),
    ('\u{ffa0}', '\u{ffa0}', Unseen::Invisible), // Hangul filler
    ('\u{fff0}', '\u{fffc}', Unseen::Invisible), // annotations, place of an object
    ('\u{13430}', '\u{1343f}', Unseen::Invisible), // hieroglyph controls
    ('\u{16fe4}', '\u{16fe4}', Unseen::Invisible), // Khitan filler
    ('\u{1bca0}', '\u{1bca3}', Unseen::Invisible), // shorthand controls
    ('\u{1d159}', '\u{1d159}', Unseen::Invisible), // null notehead
    ('\u{1d173}', '\u{1d17a}', Unseen::Invisible), // beams and ties of music
    ('\u{e0000}', '\u{e007f}', Unseen::Tag),
    ('\u{e0080}', '\u{e00ff}', Unseen::Invisible),
    ('\u{e0100}', '\u{e01ef}', Unseen::Selector),
    ('\u{e01f0}', '\u{e0fff}', Unseen::Invisible),
];

impl Unseen {
    fn of(character: char) -> Option<Self> {
        if character < '\u{a0}' {
            return character.is_control().then_some(Self::Control);
        }
        let after = UNSEEN.partition_point(|(first, ..)| *first <= character);
        match UNSEEN[..after].last() {
            Some((_, last, why)) if character <= *last => Some(*why),
            // The last two of each plane.
            _ => (u32::from(character) & 0xfffe == 0xfffe).then_some(Self::Noncharacter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_found_and_ordinary_text_is_not() {
        for text in ["\u{202e}x", "a\u{200b}b", "a\u{e0041}", "a\u{7}", "a\u{feff}", "\u{1b}[1m"] {
            assert!(hidden_character(text).is_some(), "{text:?}");
        }
        // A joiner between ASCII letters hides something; inside an emoji it belongs there.
        assert!(hidden_character("a\u{200d}b").is_some());
        for text in ["plain\ttext\r\n", "👩‍💻 ✔️ ❤️", "می‌خواهم", "naïve — “quotes”", "日本語", "🇩🇪"]
        {
            assert_eq!(hidden_character(text), None, "{text:?}");
        }
    }

    #[test]
    fn hidden_characters_are_unseen_and_unseen_ones_are_hidden_or_ordinary() {
        // ASCII letters need no joiners.
        let ordinary = ['\n', '\r', '\t', '\u{fe0e}', '\u{fe0f}'];
        for character in '\0'..=char::MAX {
            let is_hidden = hidden_character(&format!("a{character}b")).is_some();
            let is_space = Unseen::of(character) == Some(Unseen::Space);
            let expected = is_unseen(character) && !is_space && !ordinary.contains(&character);
            assert_eq!(is_hidden, expected, "{character:?}");
        }
    }

    #[test]
    fn every_character_without_an_image_in_the_tables_of_unicode_is_unseen() {
        let unseen =
            r"[\p{Cc}\p{Zs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}";
        let unseen = format!(r"{unseen}[\p{{Cf}}--\p{{Prepended_Concatenation_Mark}}]]");
        let unseen = regex::Regex::new(&unseen).unwrap();
        let blank = ['\u{2800}', '\u{fffc}', '\u{16fe4}', '\u{1d159}'];
        // Unassigned between format characters.
        let reserved = ['\u{fff9}', '\u{fffa}', '\u{fffb}'];
        for character in '\0'..=char::MAX {
            let text = character.to_string();
            let expected = character != ' ' && unseen.is_match(&text)
                || blank.contains(&character)
                || reserved.contains(&character);
            assert_eq!(is_unseen(character), expected, "{character:?}");
        }
        assert!(UNSEEN.is_sorted_by(|one, next| one.1 < next.0), "ranges are in order");
    }

    #[test]
    fn a_line_for_an_approver_shows_blanks_fillers_and_noncharacters() {
        for hidden in [
            "\u{1d173}",
            "\u{2800}",
            "\u{a0}",
            "\u{2003}",
            "\u{202f}",
            "\u{fdd0}",
            "\u{1ffff}",
            "\u{3164}",
        ] {
            let text = format!("rm{hidden}x\n");
            assert_eq!(fully_visible_text(&text), format!("rm{}x\n", hidden.escape_unicode()));
        }
    }

    #[test]
    fn terminal_and_direction_controls_become_visible() {
        for (text, shown) in [
            ("plain ä€🦀\ttab\n", "plain ä€🦀\ttab\n"),
            ("a\r\nb", "a\r\nb"),
            ("10%\r20%\r\n", "10%\\u{d}20%\r\n"),
            ("end\r", "end\\u{d}"),
            ("\u{7}\u{8}\u{7f}", "\\u{7}\\u{8}\\u{7f}"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("ab\u{202e}cd\u{2066}", "ab\\u{202e}cd\\u{2066}"),
            ("\0", "\\u{0}"),
        ] {
            assert_eq!(visible(text), shown);
        }
    }
}
