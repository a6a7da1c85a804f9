//! `toolcrib help manifest` and its like: the references that come with the program.

use std::ffi::OsString;

use toolcrib::manifest::reference::{DIAGNOSTICS, LOCK, MANIFEST, RELOADING};

use crate::{Exit, screen};

/// The names after `toolcrib help`, none of which is a command, and their texts in Markdown.
const TOPICS: [(&str, &str); 4] = [
    ("manifest", MANIFEST),
    ("diagnostics", DIAGNOSTICS),
    ("lock-file", LOCK),
    ("reloading", RELOADING),
];

/// The text that a command line asks for.
pub(crate) fn topic(arguments: &[OsString]) -> Option<&'static str> {
    let [_, help, asked] = arguments else { return None };
    let asked = asked.to_str().filter(|_| help == "help")?;
    TOPICS.iter().find(|(name, _)| *name == asked).map(|(_, text)| *text)
}

pub(crate) fn print(text: &str) -> anyhow::Result<Exit> {
    screen::out(text)?;
    Ok(Exit::Success)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_topic_hides_the_help_of_a_command() {
        let commands = crate::command::command_line();
        for (name, text) in TOPICS {
            assert!(commands.find_subcommand(name).is_none(), "{name}");
            assert!(text.starts_with("# ") || text.len() > 1000, "{name}");
        }
    }

    #[test]
    fn only_help_is_followed_by_a_topic() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        assert!(topic(&words("toolcrib help manifest")).is_some());
        for other in ["toolcrib help list", "toolcrib show manifest", "toolcrib help"] {
            assert!(topic(&words(other)).is_none(), "{other}");
        }
    }
}
