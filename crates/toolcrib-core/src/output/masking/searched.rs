//! What is searched for to mask a secret: the value, its parts that stand alone, and its line ends.

use super::{IgnoredSecret, SHORTEST_SECRET};

/// The minimum length in bytes of a line that is masked by itself, when the secret has several lines: a shorter one can
/// be an ordinary word.
const SHORTEST_LINE: usize = 8;

/// What is searched for, and the values that are too short to be masked.
pub(super) fn searched_values(
    secrets: impl IntoIterator<Item = String>,
) -> (Vec<Box<str>>, Vec<IgnoredSecret>) {
    let mut ignored = Vec::new();
    let mut searched = Vec::new();
    for (index, secret) in secrets.into_iter().enumerate() {
        let secret = secret.trim();
        if secret.len() < SHORTEST_SECRET {
            ignored.push(IgnoredSecret { number: index + 1, bytes: secret.len() });
            continue;
        }
        searched.extend(url_parts(secret).into_iter().map(Into::into));
        searched.push(secret.into());
        let text = LINE_ENDS.iter().fold(secret.to_owned(), |text, end| text.replace(end, "\n"));
        if text.contains('\n') {
            searched.extend(LINE_ENDS.iter().map(|end| text.replace('\n', end).into()));
            let lines = text.lines().map(str::trim);
            searched.extend(lines.filter(|line| is_secret_line(line)).map(Into::into));
        }
    }
    (searched, ignored)
}

/// Whether a line of a secret is masked by itself: where a program has indented the lines, cut blanks at their ends, or
/// left out empty ones.
fn is_secret_line(line: &str) -> bool {
    // These lines are the same in every file of their kind.
    let is_pem_boundary = line.starts_with("-----") && line.ends_with("-----");
    line.len() >= SHORTEST_LINE && !is_pem_boundary
}

/// The minimum length, in bytes, of what follows the host of a URL for it to be masked alone.
const SHORTEST_URL_REST: usize = 8;
/// The minimum length, in bytes, of one segment or value of a URL for it to be masked alone: shorter
/// ones are words such as `services`.
const SHORTEST_URL_SEGMENT: usize = 16;

/// The parts of a URL that servers and programs print without the rest of it: the password before the
/// host, what follows the host, and its long segments and values. Nothing for other secrets.
fn url_parts(secret: &str) -> Vec<&str> {
    let Some((scheme, rest)) = secret.split_once("://") else { return Vec::new() };
    let is_scheme = |letter: u8| letter.is_ascii_alphanumeric() || b"+-.".contains(&letter);
    if scheme.is_empty() || !scheme.bytes().all(is_scheme) || rest.contains(char::is_whitespace) {
        return Vec::new();
    }
    let (authority, after) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let password = authority.rsplit_once('@').and_then(|(user, _)| Some(user.split_once(':')?.1));
    let after = after.trim_matches(['/', '?', '#']);
    let segments = after.split(['/', '?', '&', '=', '#']);
    let is_long = |part: &&str, bytes: usize| part.len() >= bytes;
    (password.into_iter().filter(|part| is_long(part, SHORTEST_SECRET)))
        .chain(std::iter::once(after).filter(|part| is_long(part, SHORTEST_URL_REST)))
        .chain(segments.filter(|part| is_long(part, SHORTEST_URL_SEGMENT)))
        .collect()
}

/// What programs and terminals end lines with: LF, CR LF, CR, the CR CR LF of a terminal that is sent CR LF, and the
/// line ends of Unicode. A longer one comes before those that it contains.
pub(super) const LINE_ENDS: [&str; 9] =
    ["\r\r\n", "\r\n", "\r", "\n", "\u{b}", "\u{c}", "\u{85}", "\u{2028}", "\u{2029}"];
