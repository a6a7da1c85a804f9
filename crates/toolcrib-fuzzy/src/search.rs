//! Searching tools by words: a plain ranking that rewards rare words in prominent places.

use std::collections::HashMap;

/// What is searched of a tool.
#[derive(Debug, Clone, Default)]
pub struct Searchable<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its name for people.
    pub title: &'a str,
    /// What it does.
    pub description: &'a str,
    /// Its category and tags.
    pub tags: Vec<&'a str>,
    /// The names of its parameters.
    pub parameters: Vec<&'a str>,
}

/// A tool that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    /// Its place among what was searched.
    pub position: usize,
    /// How well it fits; of use only beside those of the same search.
    pub score: u32,
}

/// Words of a query that are looked at; the rest is ignored.
const QUERY_WORDS: usize = 32;

/// What a word is worth by where it stands: as a whole, and as the beginning of a longer one.
const NAME: (u32, u32) = (8, 4);
const TITLE: (u32, u32) = (6, 3);
const TAGS: (u32, u32) = (5, 2);
const PARAMETERS: (u32, u32) = (3, 1);
const DESCRIPTION: (u32, u32) = (2, 1);

/// The tools that a query's words are found in, the best first; of equals the first name.
///
/// A word counts by the most prominent place where it stands (name, title, tags, parameters,
/// description) and by how few tools have it. Case, separators and a plural's `s` do not matter. The
/// answer depends on the tools and the query alone.
///
/// ```
/// use toolcrib_fuzzy::{Searchable, search};
///
/// let tools = [
///     Searchable { name: "disk_usage", description: "Show used space.", ..Default::default() },
///     Searchable { name: "tail_log", description: "Show a log's end.", ..Default::default() },
/// ];
/// let found = search("show the disks", &tools);
/// assert_eq!(found.iter().map(|hit| hit.position).collect::<Vec<_>>(), [0, 1]);
/// assert!(search("weather", &tools).is_empty());
/// ```
pub fn search(query: &str, tools: &[Searchable<'_>]) -> Vec<Hit> {
    let mut wanted: Vec<String> = Vec::new();
    for word in words(query) {
        if !wanted.contains(&word) && wanted.len() < QUERY_WORDS {
            wanted.push(word);
        }
    }
    // Tool by tool, what each word of the query is worth there.
    let worth: Vec<Vec<u32>> = tools.iter().map(|tool| worth(tool, &wanted)).collect();
    let rarity: Vec<u32> = (0..wanted.len())
        .map(|word| {
            let having = worth.iter().filter(|worth| worth[word] > 0).count();
            tools.len().checked_div(having).map_or(0, |share| share.ilog2() + 1)
        })
        .collect();
    let scored = worth.iter().enumerate().map(|(position, worth)| {
        let score = worth.iter().zip(&rarity).map(|(worth, rarity)| worth * rarity).sum();
        Hit { position, score }
    });
    let mut hits: Vec<Hit> = scored.filter(|hit| hit.score > 0).collect();
    hits.sort_by(|one, other| {
        let name = |hit: &Hit| tools[hit.position].name;
        other.score.cmp(&one.score).then_with(|| name(one).cmp(name(other)))
    });
    hits
}

fn worth(tool: &Searchable<'_>, wanted: &[String]) -> Vec<u32> {
    let mut known: HashMap<String, (u32, u32)> = HashMap::new();
    let mut add = |text: &str, value: (u32, u32)| {
        for word in words(text) {
            let best = known.entry(word).or_insert(value);
            *best = (*best).max(value);
        }
    };
    add(tool.name, NAME);
    add(tool.title, TITLE);
    tool.tags.iter().for_each(|tag| add(tag, TAGS));
    tool.parameters.iter().for_each(|parameter| add(parameter, PARAMETERS));
    add(tool.description, DESCRIPTION);
    let value = |wanted: &String| {
        let begins = known.iter().filter(|(word, _)| word.starts_with(wanted.as_str()));
        let begun = begins.map(|(_, value)| value.1).max().unwrap_or(0);
        known.get(wanted).map_or(0, |value| value.0).max(begun)
    };
    wanted.iter().map(value).collect()
}

/// The words of a text: lower case, letters and digits, `camelCase` taken apart, no plural's `s`.
fn words(text: &str) -> impl Iterator<Item = String> {
    let mut parted = String::with_capacity(text.len());
    let mut was_lower = false;
    for c in text.chars() {
        if was_lower && c.is_uppercase() {
            parted.push(' ');
        }
        was_lower = c.is_lowercase();
        parted.extend(c.to_lowercase());
    }
    let words: Vec<String> = parted
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(|word| {
            let singular = word.strip_suffix('s').filter(|rest| rest.len() >= 3);
            singular.filter(|rest| !rest.ends_with('s')).unwrap_or(word).to_owned()
        })
        .collect();
    words.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool<'a>(name: &'a str, description: &'a str) -> Searchable<'a> {
        Searchable { name, description, ..Searchable::default() }
    }

    fn found(query: &str, tools: &[Searchable<'_>]) -> Vec<String> {
        search(query, tools).iter().map(|hit| tools[hit.position].name.to_owned()).collect()
    }

    #[test]
    fn a_name_weighs_more_than_a_description_and_a_rare_word_more_than_a_common_one() {
        let tools = [
            tool("tail_log", "Show the last lines of a file."),
            tool("read_file", "Show a text."),
            tool("list_files", "Show what is in a directory."),
            tool("ping", "Show whether a host answers."),
        ];
        assert_eq!(found("file", &tools), ["list_files", "read_file", "tail_log"]);
        assert_eq!(found("show me a host", &tools)[0], "ping");
        assert_eq!(found("ReadFiles", &tools)[0], "read_file");
        assert_eq!(found("dire", &tools), ["list_files"]);
        assert!(found("", &tools).is_empty() && found("?!", &tools).is_empty());
    }

    #[test]
    fn tags_and_parameters_are_found_and_order_of_tools_does_not_matter() {
        let mut one = tool("a", "Nothing.");
        one.parameters = vec!["timeZone"];
        let mut other = tool("b", "Nothing.");
        other.tags = vec!["zone"];
        assert_eq!(found("zones", &[one.clone(), other.clone()]), ["b", "a"]);
        assert_eq!(found("zones", &[other, one]), ["b", "a"]);
    }

    #[test]
    fn a_long_query_costs_little() {
        let text = "word ".repeat(20);
        let tools: Vec<_> = (0..1_000).map(|_| tool("name", &text)).collect();
        assert_eq!(search(&"word ".repeat(100_000), &tools).len(), 1_000);
    }
}
