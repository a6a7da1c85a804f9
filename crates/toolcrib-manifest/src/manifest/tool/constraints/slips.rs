//! Recognizes syntax of other languages in rules, and suggests CEL.

use std::ops::Range;

/// Syntax of another language in a rule.
pub(super) struct ForeignSyntax {
    /// Its byte range in the rule.
    pub(super) range: Range<usize>,
    pub(super) message: String,
    pub(super) help: String,
}

/// A token of a rule.
#[derive(Clone, Copy)]
struct RuleToken<'r> {
    text: &'r str,
    at: usize,
}

impl RuleToken<'_> {
    fn range(&self) -> Range<usize> {
        self.at..self.at + self.text.len()
    }
}

/// Splits a rule into words, operators and quoted texts.
fn tokens(rule: &str) -> Vec<RuleToken<'_>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = rule[at..].chars().next() {
        let rest = &rule[at..];
        let length = if first == '\'' || first == '"' {
            let close = rest[1..].find(first);
            close.map_or(rest.len(), |close| close + 2)
        } else if first.is_alphanumeric() || first == '_' {
            let end = rest.find(|c: char| !(c.is_alphanumeric() || "_.".contains(c)));
            end.unwrap_or(rest.len())
        } else if "=!<>&|~".contains(first) {
            rest.find(|c: char| !"=!<>&|~".contains(c)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        if !first.is_whitespace() {
            tokens.push(RuleToken { text: &rest[..length], at });
        }
        at += length;
    }
    tokens
}

/// The first syntax of another language in an invalid rule.
pub(super) fn find(rule: &str) -> Option<ForeignSyntax> {
    let tokens = tokens(rule);
    let after = |at: usize| tokens.get(at + 1).map_or("", |token| token.text);
    tokens.iter().enumerate().find_map(|(at, token)| {
        let (range, help) = match token.text {
            "or" | "OR" | "|" => (token.range(), "write `||`".to_owned()),
            "and" | "AND" | "&" => (token.range(), "write `&&`".to_owned()),
            "not" | "NOT" if after(at) == "in" => {
                (token.range(), "write `!(x in [\u{2026}])`: the `!` stands in front".to_owned())
            }
            "not" | "NOT" => (token.range(), format!("write `!{}`", after(at))),
            "=" | "===" | "is" if at > 0 => (token.range(), "write `==`".to_owned()),
            "<>" | "!==" => (token.range(), "write `!=`".to_owned()),
            "=~" | "~" | "~=" => {
                (token.range(), "write `args.name.matches('^\u{2026}$')`".to_owned())
            }
            "IN" => (token.range(), "write `in`".to_owned()),
            "None" | "nil" | "NULL" | "undefined" => (
                token.range(),
                "write `null`, or `!has(args.name)` for an argument that is absent".to_owned(),
            ),
            "True" => (token.range(), "write `true`".to_owned()),
            "False" => (token.range(), "write `false`".to_owned()),
            "len" | "length" | "count" if after(at) == "(" => {
                (token.range(), "write `size(args.name)`".to_owned())
            }
            "in" if after(at) == "(" => in_parentheses(rule, &tokens[at + 1..])?,
            "$" if after(at) == "{" => {
                let reference = tokens.get(at + 2)?;
                let close =
                    rule[reference.at..].find('}').map_or(rule.len(), |end| reference.at + end + 1);
                (token.at..close, format!("write {} alone: a rule knows its names", reference.text))
            }
            _ => return None,
        };
        let written = &rule[range.clone()];
        Some(ForeignSyntax { range, message: format!("`{written}` is not CEL"), help })
    })
}

/// `('dev', 'prod')` for a list.
fn in_parentheses(rule: &str, tokens: &[RuleToken<'_>]) -> Option<(Range<usize>, String)> {
    let open = tokens.first()?;
    let close = tokens.iter().find(|token| token.text == ")")?;
    let inside = &rule[open.at + 1..close.at];
    // A single value in parentheses need not be a list.
    inside.contains(',').then_some(())?;
    let range = open.at..close.at + 1;
    Some((range, format!("a list stands in brackets: write `in [{inside}]`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_slip_of_a_rule_is_found_with_its_repair() {
        for (rule, place, repair) in [
            ("args.a or args.b", "or", "||"),
            ("args.a and args.b", "and", "&&"),
            ("not args.a", "not", "!args.a"),
            ("args.a = 'x'", "=", "=="),
            ("args.a <> 'x'", "<>", "!="),
            ("args.a in ('x', 'y')", "('x', 'y')", "['x', 'y']"),
            ("len(args.a) < 3", "len", "size("),
            ("${args.a} < 3", "${args.a}", "args.a alone"),
        ] {
            let slip = find(rule).unwrap_or_else(|| panic!("{rule}"));
            assert_eq!(&rule[slip.range], place, "{rule}");
            assert!(slip.help.contains(repair), "{rule}: {}", slip.help);
        }
    }

    #[test]
    fn words_in_texts_are_left_alone() {
        assert!(find("args.a == 'this or that' && args.order < 3").is_none());
        assert!(find("args.a == \"x = y\"").is_none());
    }
}
