//! The values that an argument may carry: as a whole, behind `=`, or behind the letters of an option.

/// The texts of an argument that may be paths: the argument, what follows its first `=`, and, if it
/// begins with one dash, what follows one or two letters of the option, as in `-fx.mk`. At most four.
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
    fn a_value_may_stand_behind_an_equals_sign_or_behind_one_or_two_letters() {
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
