//! Tables of programs, one TOML file for each kind. Shells and interpreters of scripts are in `interpreters`.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::program::Program;
use crate::words::Words;

/// Every table. The first entry with a name counts.
const TEXT: &str = concat!(
    include_str!("lists.toml"),
    include_str!("wrappers.toml"),
    include_str!("packages.toml"),
    include_str!("shells.toml"),
    include_str!("scripted.toml"),
    include_str!("git.toml"),
    include_str!("databases.toml"),
    include_str!("containers.toml"),
    include_str!("options.toml"),
    include_str!("toolchains.toml"),
    include_str!("developer.toml"),
    include_str!("module_loaders.toml"),
);

/// What is known of programs.
pub(super) static TABLES: LazyLock<Tables> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "a constant; every test of a program reads it")]
    Tables::read().expect("the tables of programs are valid")
});

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tables {
    /// Lists that several programs share. A program names them `@name`.
    lists: HashMap<String, Words>,
    /// The programs themselves.
    program: Vec<Program>,
    /// Commands of programs, by the names that `commands` of a program lists.
    command: HashMap<String, Program>,
    /// Programs that take `--` for the end of their options.
    pub(super) end_options: Words,
    /// Where in `program` the entry with a name is.
    #[serde(skip)]
    by_name: HashMap<String, usize>,
}

impl Tables {
    fn read() -> Result<Self, toml::de::Error> {
        let mut tables: Self = toml::from_str(TEXT)?;
        for program in tables.program.iter_mut().chain(tables.command.values_mut()) {
            program.complete_with(&tables.lists);
        }
        for (at, program) in tables.program.iter().enumerate() {
            for name in program.names.iter() {
                tables.by_name.entry(name.to_owned()).or_insert(at);
            }
        }
        Ok(tables)
    }

    /// The first program with one of these names.
    pub(super) fn find(&self, names: &[&str]) -> Option<&Program> {
        let at = names.iter().filter_map(|name| self.by_name.get(*name)).min()?;
        self.program.get(*at)
    }

    /// The commands of a program.
    pub(super) fn commands(&self, program: &Program) -> impl Iterator<Item = &Program> {
        program.commands.iter().filter_map(|name| self.command.get(name))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_command_and_list_that_a_program_names_exists_and_none_is_left_over() {
        let tables = &*TABLES;
        let all = || tables.program.iter().chain(tables.command.values());
        let named: BTreeSet<&str> = all().flat_map(|one| one.commands.iter()).collect();
        let known: BTreeSet<&str> = tables.command.keys().map(String::as_str).collect();
        assert_eq!(named, known);

        let used: BTreeSet<&str> =
            TEXT.split('@').skip(1).filter_map(|rest| rest.split([' ', '"']).next()).collect();
        let lists = tables.lists.keys().map(String::as_str);
        let unused: Vec<&str> = lists.filter(|list| !used.contains(list)).collect();
        assert_eq!(unused, [""; 0]);
    }
}
