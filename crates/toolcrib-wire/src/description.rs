//! Shortens descriptions that are too long for a provider.

/// Marks where text was cut.
const ELLIPSIS: char = '…';

/// Shortens the text if it has more than `limit` characters: keeps the first sentences that fit, followed by an
/// ellipsis. If no sentence ends in the second half, the text is cut after a word.
pub(crate) fn cut(text: &str, limit: usize) -> Option<String> {
    let room = limit.saturating_sub(2);
    let (end, _) = text.char_indices().nth(limit).map(|_| text.char_indices().nth(room))??;
    let head = text.get(..end)?;
    let sentence = sentence_end(head).filter(|at| *at >= end / 2);
    let word = head.rfind(char::is_whitespace).filter(|at| *at >= end / 2);
    let kept = head.get(..sentence.or(word).unwrap_or(end)).unwrap_or(head).trim_end();
    let gap = if sentence.is_some() { " " } else { "" };
    Some(format!("{kept}{gap}{ELLIPSIS}"))
}

/// The position after the last sentence that ends inside the text.
fn sentence_end(text: &str) -> Option<usize> {
    let mut end = None;
    let mut previous = ' ';
    for (at, character) in text.char_indices() {
        let after_stop = matches!(previous, '.' | '!' | '?' | '。' | '！' | '？' | ':');
        let blank_follows = character.is_whitespace() || matches!(previous, '。' | '！' | '？');
        if character == '\n' || (after_stop && blank_follows) {
            end = Some(at);
        }
        previous = character;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_fits_is_left_alone() {
        assert_eq!(cut("abc", 3), None);
        assert_eq!(cut("", 3), None);
    }

    #[test]
    fn a_long_text_ends_with_a_whole_sentence() {
        assert_eq!(
            cut("First one. Second one. Third one.", 28).unwrap(),
            "First one. Second one. …"
        );
    }

    #[test]
    fn without_a_sentence_a_word_is_kept_whole() {
        assert_eq!(cut("alpha beta gamma delta", 14).unwrap(), "alpha beta…");
    }

    #[test]
    fn characters_are_counted_and_never_split() {
        for limit in 2..20 {
            let short = cut(&"天气。预报很好！".repeat(5), limit).unwrap();
            assert!(short.chars().count() <= limit, "{short}");
        }
    }
}
