//! Patterns of addresses: whether they fix the host that is reached.

use regex_syntax::hir::{Hir, HirKind, Look};

use super::value_shape::matches_one;

/// What ends the name of a host in an address.
const ENDS: [char; 4] = ['/', ':', '?', '#'];

/// Stands for a part of a host that the value chooses.
const CHOSEN: char = '\u{1}';

/// Domains of the top that only a company's own name servers know.
const PRIVATE: [&str; 7] = ["corp", "home", "internal", "intra", "lan", "local", "test"];

/// Whether each address that a pattern matches has the host which it names, or one below the domain with which it
/// ends: `^https://api\.example\.com/`, `^https://[a-z]+\.example\.com(/|$)`.
pub(in crate::manifest) fn names_host(pattern: &str) -> bool {
    let Ok(translated) = jsonschema_regex::to_rust_regex(pattern) else { return false };
    let Ok(hir) = regex_syntax::parse(&translated) else { return false };
    let mut parts = Vec::new();
    flatten(&hir, &mut parts);
    let mut parts = parts.into_iter();
    if parts.next().is_none_or(|first| *first.kind() != HirKind::Look(Look::Start)) {
        return false;
    }
    // The scheme, up to `://`; an `s` that may be absent is another part.
    let mut host = String::new();
    for part in parts.by_ref() {
        let text = literal(part);
        if let Some((_, rest)) = text.as_deref().and_then(|text| text.split_once("://")) {
            rest.clone_into(&mut host);
            break;
        } else if text.is_none() && matches_one(part, &[('/', '/')]) {
            return false;
        }
    }
    if let Some((named, _)) = host.split_once(ENDS) {
        return is_named(named);
    }
    for part in parts {
        if *part.kind() == HirKind::Look(Look::End) {
            return is_named(&host);
        } else if let Some(text) = literal(part) {
            host.push_str(&text);
            if let Some((named, _)) = host.split_once(ENDS) {
                return is_named(named);
            }
        } else if begins_with_end(part) {
            // What may be absent leaves the end to what follows.
            if !matches!(part.kind(), HirKind::Repetition(one) if one.min == 0) {
                return is_named(&host);
            }
        } else if matches_one(part, &ENDS.map(|end| (end, end))) {
            return false;
        } else if is_listed(part) {
            host.push_str("listed.");
        } else {
            host.push(CHOSEN);
            // What may be absent before a domain ends with its dot.
            host.push_str(if ends_with_dot(part) { "." } else { "" });
        }
    }
    false
}

/// Whether the author has written the host, or the domain with which it ends.
fn is_named(host: &str) -> bool {
    let is_plain = |text: &str| text.contains(char::is_alphanumeric);
    match host.rsplit_once(CHOSEN) {
        None => is_plain(host),
        Some((_, end)) => end.strip_prefix('.').is_some_and(|domain| {
            let domain = domain.trim_end_matches('.');
            domain.contains('.') || PRIVATE.contains(&domain)
        }),
    }
}

fn flatten<'h>(hir: &'h Hir, parts: &mut Vec<&'h Hir>) {
    match hir.kind() {
        HirKind::Concat(inner) => inner.iter().for_each(|part| flatten(part, parts)),
        _ => parts.push(hir),
    }
}

fn literal(hir: &Hir) -> Option<String> {
    match hir.kind() {
        HirKind::Literal(literal) => String::from_utf8(literal.0.to_vec()).ok(),
        _ => None,
    }
}

/// Whether every match of a part begins with what ends a host, or is the end of the text.
fn begins_with_end(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Look(look) => *look == Look::End,
        HirKind::Literal(_) => literal(hir).is_some_and(|text| text.starts_with(ENDS)),
        HirKind::Class(regex_syntax::hir::Class::Unicode(class)) => {
            let is_end = |one: char| ENDS.contains(&one);
            class.ranges().iter().all(|range| (range.start()..=range.end()).all(is_end))
        }
        HirKind::Repetition(repetition) => begins_with_end(&repetition.sub),
        HirKind::Capture(capture) => begins_with_end(&capture.sub),
        HirKind::Concat(parts) => parts.first().is_some_and(begins_with_end),
        HirKind::Alternation(parts) => parts.iter().all(begins_with_end),
        _ => false,
    }
}

/// Whether every match of a part ends with a dot.
fn ends_with_dot(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Literal(_) => literal(hir).is_some_and(|text| text.ends_with('.')),
        HirKind::Repetition(repetition) => ends_with_dot(&repetition.sub),
        HirKind::Capture(capture) => ends_with_dot(&capture.sub),
        HirKind::Concat(parts) => parts.last().is_some_and(ends_with_dot),
        HirKind::Alternation(parts) => parts.iter().all(ends_with_dot),
        _ => false,
    }
}

/// Whether a part matches nothing but texts that it lists.
fn is_listed(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Literal(_) => true,
        HirKind::Capture(capture) => is_listed(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().all(is_listed),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::names_host;

    #[test]
    fn a_pattern_fixes_a_host_if_it_names_the_host_or_its_domain_to_the_end() {
        for pattern in [
            r"^https://api\.example\.com/",
            r"^https://api\.example\.com(/|$)",
            r"^https://api\.example\.com$",
            r"^https?://api\.example\.com(?::[0-9]+)?(?:/.*)?$",
            r"^https://[a-z0-9-]+\.example\.com/",
            r"^https://([a-z0-9-]+\.)?example\.com/",
            r"^https://(api|www)\.example\.com/",
            r"^https://(a\.example|b\.example)/",
            r"^http://localhost:8080/",
            r"^https://[a-z0-9-]+\.internal/",
        ] {
            assert!(names_host(pattern), "{pattern}");
        }
        for pattern in [
            r"^https?://",
            r"^https://.+",
            r"^https://[^/]+/wiki/",
            r"^https://api\.example\.com",
            r"^https://.*\.example\.com/",
            r"^https://[a-z.]+/",
            r"^https://[a-z]+\.?/",
            r"^https?://[^\s@/?#-][^\s@/?#]*(?:[/?#]\S*)?$",
            r"^https://[a-z]+\.com/",
            r"^https://[a-z]*example\.com/",
            r"https://api\.example\.com/",
            r"^.*https://api\.example\.com/",
            r"^[a-z]+$",
        ] {
            assert!(!names_host(pattern), "{pattern}");
        }
    }
}
