//! The values in an argument: the whole text, the text after `=`, or after the letters of an option.

/// The texts in an argument that may be paths: the argument, the text after its first `=`, and, if it begins with one
/// dash, the text after one or two option letters, as in `-fx.mk`. At most four.
pub(super) fn values(argument: &str) -> impl Iterator<Item = &str> {
    let value = argument.split_once('=').map(|(_, value)| value);
    let letters = argument.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
    let glued = letters.into_iter().flat_map(|letters| {
        let ends = letters.char_indices().skip(1).take(2);
        ends.map(|(end, _)| &letters[end..])
    });
    [Some(argument), value].into_iter().flatten().chain(glued)
}

#[cfg(test)]
mod tests {
    use super::values;

    #[test]
    fn a_value_may_follow_an_equals_sign_or_one_or_two_letters() {
        let found = |argument| values(argument).collect::<Vec<_>>();
        assert_eq!(found("-fx.mk"), ["-fx.mk", "x.mk", ".mk"]);
        assert_eq!(found("-éé/x"), ["-éé/x", "é/x", "/x"]);
        assert_eq!(found("--rcfile=x"), ["--rcfile=x", "x"]);
        assert_eq!(found("-f=x"), ["-f=x", "x", "=x", "x"]);
        assert_eq!(found("-f"), ["-f"]);
        assert_eq!(found("-"), ["-"]);
        assert_eq!(found("status"), ["status"]);
    }
}
