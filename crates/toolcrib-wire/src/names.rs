//! Maps names that a provider refuses to names that it accepts, and back.

use std::collections::{BTreeMap, BTreeSet};

/// The names that a target accepts: ASCII letters, digits, `_` and `-`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NameRule {
    /// The longest name, in bytes.
    pub(crate) max_len: usize,
    /// Whether `.` is allowed in a name.
    pub(crate) dots: bool,
    /// Whether a name may begin with something other than a letter or `_`.
    pub(crate) digit_first: bool,
}

impl NameRule {
    fn takes_character(self, character: char) -> bool {
        character.is_ascii_alphanumeric()
            || matches!(character, '_' | '-')
            || (self.dots && character == '.')
    }

    fn takes_start(self, name: &str) -> bool {
        self.digit_first || name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
    }

    pub(crate) fn takes(self, name: &str) -> bool {
        (1..=self.max_len).contains(&name.len())
            && name.chars().all(|character| self.takes_character(character))
            && self.takes_start(name)
    }

    /// The name with `_` for every refused character; it may still be too long.
    fn replace(self, name: &str) -> String {
        let plain: String =
            name.chars().map(|c| if self.takes_character(c) { c } else { '_' }).collect();
        if plain.is_empty() || !self.takes_start(&plain) { format!("_{plain}") } else { plain }
    }
}

/// A one-to-one map between tool names and one provider's names for them.
///
/// A name that the provider accepts stays unchanged. In any other name each refused character becomes `_`; if the
/// result is too long or taken, it is cut and ends with a hash of the name. The map depends only on the set of names,
/// never on their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NameMap {
    to_provider: BTreeMap<String, String>,
    from_provider: BTreeMap<String, String>,
}

impl NameMap {
    pub(crate) fn new<'a>(names: impl IntoIterator<Item = &'a str>, rule: NameRule) -> Self {
        let names: BTreeSet<&str> = names.into_iter().collect();
        let mut map = Self::default();
        let (fitting, refused): (Vec<_>, Vec<_>) =
            names.into_iter().partition(|name| rule.takes(name));
        for name in fitting {
            map.insert(name, name.to_owned());
        }
        let mut wishes: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for name in refused {
            wishes.entry(rule.replace(name)).or_default().push(name);
        }
        let mut contested = Vec::new();
        for (wish, names) in wishes {
            match names.as_slice() {
                [only] if rule.takes(&wish) && !map.from_provider.contains_key(&wish) => {
                    map.insert(only, wish);
                }
                _ => contested.extend(names.into_iter().map(|name| (name, wish.clone()))),
            }
        }
        contested.sort_unstable();
        for (name, wish) in contested {
            // Each salt gives another name, so a free one is found after at most as many attempts as there are names.
            let free = (0..).map(|salt| hashed(name, &wish, salt, rule));
            if let Some(free) = free.into_iter().find(|new| !map.from_provider.contains_key(new)) {
                map.insert(name, free);
            }
        }
        map
    }

    fn insert(&mut self, own: &str, provider: String) {
        self.from_provider.insert(provider.clone(), own.to_owned());
        self.to_provider.insert(own.to_owned(), provider);
    }

    /// Removes every tool that `keep` does not accept.
    pub(crate) fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.to_provider.retain(|own, _| keep(own));
        self.from_provider.retain(|_, own| keep(own));
    }

    /// The provider's name for the tool `name`; `None` if it was not exported.
    pub fn to_provider(&self, name: &str) -> Option<&str> {
        self.to_provider.get(name).map(String::as_str)
    }

    /// The tool with the provider's name `name`; `None` if there is none.
    pub fn from_provider(&self, name: &str) -> Option<&str> {
        self.from_provider.get(name).map(String::as_str)
    }

    /// Every pair of own name and provider's name, sorted by own name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.to_provider.iter().map(|(own, provider)| (own.as_str(), provider.as_str()))
    }
}

/// The beginning of `wish` and a hash of the name, within the rule's length.
fn hashed(name: &str, wish: &str, salt: u64, rule: NameRule) -> String {
    let hash = fnv1a(name).wrapping_add(salt) & 0xffff_ffff;
    // Nine bytes for the hash and its underscore; `wish` is ASCII, so every cut is between characters.
    let head = wish.get(..rule.max_len - 9).unwrap_or(wish).trim_end_matches('_');
    format!("{head}_{hash:08x}")
}

/// FNV-1a, 64 bits: the same on every machine and in every release, because stored conversations contain these names.
fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Target;

    fn map(names: &[&str]) -> NameMap {
        NameMap::new(names.iter().copied(), Target::OpenAiChat.name_rule())
    }

    #[test]
    fn an_accepted_name_is_kept_even_if_another_maps_to_it() {
        let map = map(&["a b", "a_b"]);
        assert_eq!(map.to_provider("a_b"), Some("a_b"));
        let other = map.to_provider("a b").unwrap();
        assert!(other.starts_with("a_b_") && other.len() == 12, "{other}");
        assert_eq!(map.from_provider(other), Some("a b"));
    }

    #[test]
    fn two_names_that_map_to_the_same_name_both_get_a_hash() {
        let map = map(&["a b", "a.b"]);
        assert!(map.iter().all(|(_, provider)| provider.len() == 12));
        assert_ne!(map.to_provider("a b"), map.to_provider("a.b"));
    }

    #[test]
    fn a_long_name_is_cut_and_ends_in_a_hash() {
        let long = "x".repeat(70);
        let map = map(&[&long]);
        let cut = map.to_provider(&long).unwrap();
        assert_eq!(cut.len(), 64);
        assert!(cut.starts_with("xxx"));
    }

    #[test]
    fn a_taken_hash_is_replaced() {
        let taken = hashed("a b", "a_b", 0, Target::OpenAiChat.name_rule());
        let map = map(&["a b", "a_b", &taken]);
        assert_eq!(map.to_provider(&taken), Some(taken.as_str()));
        assert_ne!(map.to_provider("a b"), Some(taken.as_str()));
        assert_eq!(map.iter().count(), 3);
    }

    #[test]
    fn gemini_names_begin_with_a_letter_or_an_underscore() {
        let map = NameMap::new(["3d_print", "a.b", "", "天气"], Target::Gemini.name_rule());
        assert_eq!(map.to_provider("3d_print"), Some("_3d_print"));
        assert_eq!(map.to_provider("a.b"), Some("a.b"));
        assert_eq!(map.to_provider(""), Some("_"));
        assert_eq!(map.to_provider("天气"), Some("__"));
    }
}
