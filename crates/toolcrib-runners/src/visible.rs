//! Making characters visible that would change how the text around them is shown.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The text with control characters and bidirectional controls written as escapes, for example
/// `\u{1b}`. Tabs and line ends stay; a carriage return without a newline after it does not, because
/// it overwrites the line on a terminal.
///
/// ```
/// use toolcrib_runners::visible;
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

/// Whether a character steers the direction of the text around it.
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
    fn what_steers_a_terminal_or_the_direction_of_text_becomes_visible() {
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
