//! Tools that nobody has: as many as one likes, with names and descriptions like real ones'.

use toolcrib_search::{Parameter, Searchable};

use crate::random::Random;

/// A tool.
#[derive(Debug, Clone)]
pub struct Tool {
    /// Unique in its catalogue, if it is made here.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Names and descriptions of its parameters.
    pub parameters: Vec<(String, String)>,
}

impl Tool {
    /// As ours is given it.
    pub fn searchable(&self) -> Searchable<'_> {
        let parameter = |(name, description)| Parameter { name, description };
        Searchable {
            name: &self.name,
            description: &self.description,
            parameters: self
                .parameters
                .iter()
                .map(|(name, description)| parameter((name.as_str(), description.as_str())))
                .collect(),
            ..Searchable::default()
        }
    }

    /// As a plain ranking is given it: the name twice, the description, names and descriptions of its parameters.
    pub fn plain(&self) -> String {
        let Self { name, description, parameters } = self;
        let parameters: Vec<&str> =
            parameters.iter().flat_map(|(name, text)| [name.as_str(), text]).collect();
        format!("{name} {name} {description} {}", parameters.join(" "))
    }
}

const VERBS: [&str; 16] = [
    "get", "list", "create", "update", "delete", "search", "send", "read", "write", "check", "run",
    "export", "import", "cancel", "assign", "compare",
];

/// Things that tools are about.
const THINGS: usize = 4_000;

/// Of so many tools, sorted by name. Words are used as unevenly as in real ones.
pub fn catalogue(tools: usize) -> Vec<Tool> {
    let mut random = Random::new(42);
    let mut catalogue: Vec<Tool> = (0..tools)
        .map(|number| {
            let verb = random.of(&VERBS);
            let (one, other) = (thing(random.seldom(THINGS)), thing(random.seldom(THINGS)));
            let mut description = format!("{verb} the {one} of a {other}");
            for _ in 0..random.below(3) {
                let (more, last) = (thing(random.seldom(THINGS)), thing(random.seldom(THINGS)));
                description.extend([", with the ", &more, " and its ", &last]);
            }
            let parameters = (0..=random.below(4)).map(|_| {
                let thing = thing(random.seldom(THINGS));
                (format!("{thing}_id"), format!("The {thing} to {verb}"))
            });
            Tool {
                name: format!("{verb}_{one}_{other}_{number:05}"),
                description,
                parameters: parameters.collect(),
            }
        })
        .collect();
    catalogue.sort_by(|one, other| one.name.cmp(&other.name));
    catalogue
}

/// Questions about the things of [`catalogue`]: one sentence, or three.
pub fn questions(sentences: usize) -> Vec<String> {
    let mut random = Random::new(7);
    let mut question = || {
        let sentence = |random: &mut Random| {
            let verb = *random.of(&VERBS);
            let [one, other, last] = [0; 3].map(|_| thing(random.seldom(THINGS)));
            format!("Please {verb} the {one} of my {other} with its {last}.")
        };
        let all: Vec<String> = (0..sentences).map(|_| sentence(&mut random)).collect();
        all.join(" ")
    };
    (0..64).map(|_| question()).collect()
}

/// A word of two or three syllables.
fn thing(number: usize) -> String {
    const SYLLABLES: [&str; 20] = [
        "ba", "cor", "dil", "fen", "gra", "hom", "jun", "kel", "lam", "mir", "nor", "pos", "quin",
        "rad", "sol", "tam", "ur", "vik", "wex", "zan",
    ];
    let mut word = String::new();
    let mut rest = number + SYLLABLES.len();
    while rest > 0 {
        word += SYLLABLES[rest % SYLLABLES.len()];
        rest /= SYLLABLES.len();
    }
    word
}
