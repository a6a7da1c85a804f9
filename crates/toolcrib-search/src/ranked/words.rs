//! Splits texts into words: `listFiles of 中文` becomes `list`, `files`, `of`, `中文`.

use unicode_normalization::UnicodeNormalization;

/// Calls `take` with each word of a text in lower case.
///
/// Words end at every character that is not a letter or digit, and at changes of case (`readFile`, `HTTPCheck`).
/// Accents are removed and full-width forms replaced by normal ones. Scripts without spaces between words yield every
/// pair of neighbours: questions and descriptions are then split alike, without a dictionary.
pub(super) fn each_word(text: &str, mut take: impl FnMut(&str)) {
    let mut word = String::new();
    let mut chars = PlainCharacters::of(text).peekable();
    let mut before = None;
    while let Some(c) = chars.next() {
        if !is_part(c) {
            finish(&mut word, &mut take);
            before = None;
            continue;
        }
        if before.is_some_and(|before| begins(before, c, chars.peek().copied())) {
            finish(&mut word, &mut take);
        }
        before = Some(c);
        if c.is_ascii() {
            word.push(c.to_ascii_lowercase());
        } else {
            word.extend(c.to_lowercase());
        }
    }
    finish(&mut word, &mut take);
}

/// Whether a word begins at `c`, which follows the letter or digit `before`.
fn begins(before: char, c: char, next: Option<char>) -> bool {
    if is_unspaced(before) != is_unspaced(c) {
        return true;
    }
    let after_capital = before.is_uppercase();
    c.is_uppercase() && (!after_capital || next.is_some_and(char::is_lowercase))
}

fn finish(word: &mut String, take: &mut impl FnMut(&str)) {
    if word.chars().next().is_some_and(is_unspaced) {
        let starts: Vec<usize> = word.char_indices().map(|(at, _)| at).collect();
        match starts.as_slice() {
            [] | [_] => take(word),
            starts => {
                for (number, &start) in starts[..starts.len() - 1].iter().enumerate() {
                    take(&word[start..starts.get(number + 2).copied().unwrap_or(word.len())]);
                }
            }
        }
    } else if !word.is_empty() {
        take(word);
    }
    word.clear();
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || is_unspaced(c)
}

/// Whether a character belongs to a script without word boundaries: Chinese, Japanese, Korean (whose particles stick to
/// their words), Thai, Lao, Burmese, Khmer.
fn is_unspaced(c: char) -> bool {
    matches!(
        u32::from(c),
        0x0e01..=0x0e4e | 0x0e81..=0x0ecd | 0x1000..=0x1049 | 0x1780..=0x17d3
            | 0x3041..=0x3096 | 0x30a1..=0x30fa | 0x30fc | 0x3400..=0x4dbf | 0x4e00..=0x9fff
            | 0xac00..=0xd7a3 | 0xf900..=0xfaff | 0x2_0000..=0x3_ffff
    )
}

/// The characters of a text without accents, in their normal forms.
struct PlainCharacters<'t> {
    text: std::str::Chars<'t>,
    /// The rest of the character decomposed last, back to front.
    parts: Vec<char>,
}

impl<'t> PlainCharacters<'t> {
    fn of(text: &'t str) -> Self {
        Self { text: text.chars(), parts: Vec::new() }
    }
}

impl Iterator for PlainCharacters<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        loop {
            if let Some(part) = self.parts.pop() {
                return Some(part);
            }
            let c = self.text.next()?;
            if c.is_ascii() || is_unspaced(c) {
                return Some(c);
            }
            let whole = std::iter::once(c).nfkd().filter(|part| !is_accent(*part));
            self.parts.extend(whole);
            self.parts.reverse();
        }
    }
}

/// Whether a character only modifies the one before it.
fn is_accent(c: char) -> bool {
    matches!(u32::from(c), 0x0300..=0x036f)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        each_word(text, |word| words.push(word.to_owned()));
        words
    }

    #[test]
    fn names_and_sentences_split_into_words() {
        for (text, expected) in [
            ("readFile", &["read", "file"][..]),
            ("HTTPCheck2xx", &["http", "check2xx"]),
            ("sha256Sum", &["sha256", "sum"]),
            ("get-36kr_trending", &["get", "36kr", "trending"]),
            ("Show me: the disk's end.", &["show", "me", "the", "disk", "s", "end"]),
            ("Größe, ZAŻÓŁĆ", &["große", "zazołc"]),
            ("e\u{301}tude", &["etude"]),
            ("ＡＢＣ", &["abc"]),
            ("", &[]),
            ("?!", &[]),
        ] {
            assert_eq!(words(text), expected, "{text}");
        }
    }

    #[test]
    fn scripts_without_spaces_yield_pairs() {
        assert_eq!(words("查天气"), ["查天", "天气"]);
        assert_eq!(words("天"), ["天"]);
        assert_eq!(words("用Python画图"), ["用", "python", "画图"]);
        assert_eq!(words("날씨를"), ["날씨", "씨를"]);
        assert_eq!(words("がく"), ["がく"]);
    }
}
