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
    match character {
        '\n' | '\r' | '\t' => None,
        character if is_bidirectional(character) => {
            Some("which turns the direction of the text around it")
        }
        '\u{e0000}'..='\u{e007f}' => Some("which is invisible and spells text to a model"),
        '\u{fe00}'..='\u{fe0d}' | '\u{e0100}'..='\u{e01ef}' => {
            Some("which is invisible and can carry hidden data")
        }
        '\u{200c}' | '\u{200d}' => {
            let before = text[..at].chars().next_back();
            let after = text[at + character.len_utf8()..].chars().next();
            let joins = before.zip(after).is_some_and(|(a, b)| !a.is_ascii() && !b.is_ascii());
            (!joins).then_some("which is invisible")
        }
        '\u{ad}'
        | '\u{34f}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'
        | '\u{2060}'..='\u{2065}'
        | '\u{206a}'..='\u{206f}'
        | '\u{3164}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{e0080}'..='\u{e00ff}'
        | '\u{e01f0}'..='\u{e0fff}' => Some("which is invisible"),
        '\u{2028}' | '\u{2029}' => Some("which ends a line for some readers and not for others"),
        character if character.is_control() => Some("which is a control character"),
        _ => None,
    }
}

/// Whether this character is invisible by itself, in any position: including tabs and line ends, joiners and emoji
/// selectors. For places where a text must show everything, such as a question to an operator.
pub fn is_unseen(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// Whether a character changes the direction of the surrounding text.
fn is_bidirectional(character: char) -> bool {
    matches!(
        character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
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
            let expected = is_unseen(character) && !ordinary.contains(&character);
            assert_eq!(is_hidden, expected, "{character:?}");
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
