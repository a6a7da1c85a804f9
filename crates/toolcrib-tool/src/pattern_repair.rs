//! Repairs of broken regular expressions, for messages.

/// Repairs by a part of the regex compiler's message.
const REPAIRS: &[(&str, &str)] = &[
    ("unclosed character class", r"close it with `]`, or write `\[` for the bracket itself"),
    ("unclosed group", r"close it with `)`, or write `\(` for the parenthesis itself"),
    ("unopened group", r"open it with `(`, or write `\)` for the parenthesis itself"),
    ("unclosed counted repetition", r"close it with `}`, or write `\{` for the brace itself"),
    (
        "repetition operator missing expression",
        r"`*`, `+` and `?` repeat what precedes them: write `.*` for any text, or `\*` for the star itself",
    ),
    (
        "repetition quantifier expects a valid decimal",
        r"write a number: `{2}`, `{2,}` or `{2,5}`; or write `\{` for the brace itself",
    ),
    ("invalid repetition count range", "write the smaller number first: `{2,5}`"),
    (
        "invalid character class range",
        "write the first character of the range first: `a-z`; write `-` at the end of the class for the character itself",
    ),
    (
        "look-around",
        "write it without look-ahead and look-behind, which cannot be matched in linear time",
    ),
    ("backreferences", "write it without back-references, which cannot be matched in linear time"),
    (
        "escape sequence",
        r"write `\\` for a backslash itself; only punctuation and the known classes such as `\d`, `\w` and `\s` follow a single one",
    ),
    ("Unicode property not found", r"write a known property such as `\p{L}` or `\p{Greek}`"),
    ("compiled regex exceeds size limit", "write smaller numbers of repetitions"),
];

/// How to repair a regular expression, from the compiler's message about it. `None` if the message
/// is not known.
///
/// ```
/// use toolcrib_tool::pattern_repair;
///
/// assert!(pattern_repair("unclosed group").unwrap().contains("close it with `)`"));
/// assert_eq!(pattern_repair("something else"), None);
/// ```
pub fn pattern_repair(problem: &str) -> Option<&'static str> {
    let known = |(part, _): &&(&str, &str)| {
        problem.to_ascii_lowercase().contains(&part.to_ascii_lowercase())
    };
    REPAIRS.iter().find(known).map(|(_, repair)| *repair)
}
