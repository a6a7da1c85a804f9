//! `robots.txt` as RFC 9309 describes it.

/// The name by which `robots.txt` may address this program.
const PRODUCT: &str = "toolcrib";
/// The most rules that are kept.
const MAX_RULES: usize = 2_000;

/// The rules of one `robots.txt` for this program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RobotsRules {
    /// Patterns of paths and whether they are allowed.
    rules: Vec<(String, bool)>,
}

impl RobotsRules {
    /// Rules that allow nothing.
    pub(super) fn nothing() -> Self {
        Self { rules: vec![("/".to_owned(), false)] }
    }

    /// Reads the rules of the groups that name this program, else those for everybody.
    pub(super) fn parse(text: &str) -> Self {
        let (mut own, mut everybodys) = (Vec::new(), Vec::new());
        let (mut is_own, mut is_everybodys, mut names_go_on, mut has_own) =
            (false, false, false, false);
        for line in text.trim_start_matches('\u{feff}').lines() {
            let line = line.split('#').next().unwrap_or_default();
            let Some((key, value)) = line.split_once(':') else { continue };
            let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
            match key.as_str() {
                "user-agent" => {
                    if !names_go_on {
                        (is_own, is_everybodys) = (false, false);
                    }
                    names_go_on = true;
                    is_everybodys |= value == "*";
                    let is_named = value.to_ascii_lowercase().starts_with(PRODUCT);
                    is_own |= is_named;
                    has_own |= is_named;
                }
                "allow" | "disallow" => {
                    names_go_on = false;
                    let rule = || (value.to_owned(), key == "allow");
                    if value.is_empty() || own.len() + everybodys.len() >= MAX_RULES {
                        continue;
                    }
                    if is_own {
                        own.push(rule());
                    }
                    if is_everybodys {
                        everybodys.push(rule());
                    }
                }
                // `sitemap` and unknown lines belong to no group.
                _ => {}
            }
        }
        Self { rules: if has_own { own } else { everybodys } }
    }

    /// Whether a path with its query may be fetched: the longest pattern decides, and `allow` if two are equally long.
    pub(super) fn allow(&self, path: &str) -> bool {
        let fitting = self.rules.iter().filter(|(pattern, _)| fits(pattern, path));
        fitting
            .max_by_key(|(pattern, allowed)| (pattern.len(), *allowed))
            .is_none_or(|(_, allowed)| *allowed)
    }
}

/// Whether a pattern, in which `*` is any text and a final `$` the end, fits the beginning of a path. Takes time in
/// proportion to both lengths multiplied at most.
fn fits(pattern: &str, path: &str) -> bool {
    let (pattern, to_end) = match pattern.strip_suffix('$') {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let mut parts = pattern.split('*');
    let Some(mut rest) = path.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return !to_end || rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() && to_end {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_pattern_of_the_right_group_decides() {
        let text = "\u{feff}User-agent: other\nDisallow: /\n\nUser-Agent: *\nuser-agent: More\nDisallow: /private # all\n\
                    Allow: /private/open\nDisallow: /*.pdf$\nDisallow: /a*b*c\nDisallow:\nSitemap: https://x/\nnonsense";
        let rules = RobotsRules::parse(text);
        for (path, allowed) in [
            ("/", true),
            ("/private", false),
            ("/private/x?y", false),
            ("/private/open/x", true),
            ("/paper.pdf", false),
            ("/paper.pdf?x", true),
            ("/a1b2c3", false),
            ("/a1c", true),
        ] {
            assert_eq!(rules.allow(path), allowed, "{path}");
        }
        let own = format!("{text}\nUser-agent: Toolcrib/1.0\nDisallow: /x");
        let rules = RobotsRules::parse(&own);
        assert!(rules.allow("/private") && !rules.allow("/x"));
        // A group of its own without rules allows everything.
        assert!(RobotsRules::parse(&format!("{text}\nUser-agent: toolcrib")).allow("/private"));
        assert!(!RobotsRules::nothing().allow("/"));
        assert!(RobotsRules::parse("<html>not found</html>").allow("/"));
    }

    #[test]
    fn hostile_rules_are_bounded() {
        let star = format!("User-agent: *\nDisallow: /{}$", "*a".repeat(5_000));
        let rules = RobotsRules::parse(&star);
        assert!(rules.allow(&format!("/{}", "a".repeat(4_000))));
        let many = format!("User-agent: *\n{}", "Disallow: /x\n".repeat(10_000));
        assert_eq!(RobotsRules::parse(&many).rules.len(), MAX_RULES);
    }
}
