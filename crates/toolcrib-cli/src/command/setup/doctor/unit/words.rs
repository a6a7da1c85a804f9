//! The words of a line in a systemd unit.

/// The words of a value: quotes keep blanks together, a backslash takes the special meaning away.
pub(super) fn words(value: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => word.get_or_insert_default().extend(escaped(&mut letters)),
            _ if quote == Some(letter) => quote = None,
            '"' | '\'' if quote.is_none() => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            _ if letter.is_whitespace() && quote.is_none() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

/// The letter that an escape stands for.
fn escaped(letters: &mut std::str::Chars<'_>) -> Option<char> {
    match letters.next()? {
        's' => Some(' '),
        'n' => Some('\n'),
        't' => Some('\t'),
        'x' => {
            let digits: String = letters.by_ref().take(2).collect();
            u8::from_str_radix(&digits, 16).ok().map(char::from)
        }
        other => Some(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_escapes_are_those_of_systemd() {
        for (value, expected) in [
            ("a  b", vec!["a", "b"]),
            (r#"sh -c "exec x --no-auth" 'a b'"#, vec!["sh", "-c", "exec x --no-auth", "a b"]),
            (r#""A=b c" D=\x65\s\\"#, vec!["A=b c", "D=e \\"]),
            (r#""" x"#, vec!["", "x"]),
            ("", vec![]),
        ] {
            assert_eq!(words(value), expected, "{value}");
        }
    }
}
