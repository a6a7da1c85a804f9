//! The role of a word for the program that gets it: a file that is run, read or written.

use super::programs::{name_without_version, runs_its_arguments, runs_no_file};

/// The role of a word if it names a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WordRole {
    /// The program runs it, or may run it.
    Code,
    /// The program reads it, or it is not a file name.
    Plain,
    /// The program writes it.
    Output,
}

/// Options whose value is a file that the program reads, whatever its name looks like.
const READ: [&str; 17] = [
    "-f",
    "-F",
    "-x",
    "-K",
    "-c",
    "-r",
    "--file",
    "--from-file",
    "--config",
    "--config-file",
    "--conf",
    "--script",
    "--rcfile",
    "--init-file",
    "--require",
    "--include",
    "--files-from",
];

/// Options whose value is a file that any program writes.
const WRITE: [&str; 5] = ["--output", "--output-file", "--outfile", "-out", "of"];

/// Programs that write the value of `-o`.
const WRITE_O: [&str; 14] = [
    "sort", "shuf", "cc", "gcc", "g++", "c++", "clang", "clang++", "ld", "rustc", "curl", "pandoc",
    "dot", "gpg",
];

/// Shell keywords that a command follows.
const KEYWORDS: [&str; 9] = ["if", "then", "else", "elif", "while", "until", "do", "!", "{"];

/// Shell built-ins that run nothing named in their arguments.
const PLAIN_BUILT_IN: [&str; 15] = [
    ":", "[", "[[", "cd", "echo", "exit", "false", "printf", "pwd", "return", "shift", "test",
    "true", "umask", "wait",
];

/// Programs that run a file or program named in their arguments, but not their input.
const INPUT_IS_DATA: [&str; 13] = [
    "awk", "gawk", "mawk", "sed", "make", "gmake", "nice", "timeout", "nohup", "setsid", "stdbuf",
    "time", "env",
];

/// Whether an option's value is a file that the program reads.
pub(super) fn is_read(option: &str) -> bool {
    READ.contains(&option)
}

/// Whether a text is a bare word and not a file name: it has no `/` and no extension.
pub(super) fn is_bare(text: &str) -> bool {
    !text.contains(['/', '.'])
}

/// Whether the value of an option is a file that is written; `programs` are the words before the option.
pub(super) fn is_written(option: &str, programs: &[&str]) -> bool {
    let is_among = |names: &[&str]| programs.iter().any(|word| names.contains(&name(word)));
    WRITE.contains(&option)
        || option == "-o" && is_among(&WRITE_O)
        || is_archive_option(option, programs)
}

/// Whether `tar` creates or changes the archive that follows.
fn is_archive_option(option: &str, words: &[&str]) -> bool {
    let Some(tar) = words.iter().position(|word| name(word) == "tar") else {
        return false;
    };
    let changes = |letters: &str| letters.contains(['c', 'r', 'u']);
    let creates = words[tar + 1..].iter().enumerate().any(|(at, word)| {
        matches!(*word, "--create" | "--append" | "--update")
            || bundle(word).is_some_and(changes)
            || at == 0 && !word.starts_with('-') && changes(word)
    });
    let takes_archive = option == "--file"
        || bundle(option).is_some_and(|letters| letters.ends_with('f'))
        || words.len() == tar + 1 && option.ends_with('f');
    let is_creating =
        bundle(option).is_some_and(changes) || words.len() == tar + 1 && changes(option);
    takes_archive && (creates || is_creating)
}

/// The short option letters in one word.
fn bundle(word: &str) -> Option<&str> {
    word.strip_prefix('-').filter(|rest| !rest.starts_with('-'))
}

fn name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or_default()
}

/// The words of a shell command text, each with its role.
pub(super) fn in_shell_text(text: &str) -> Vec<(&str, WordRole)> {
    let commands: Vec<_> =
        text.split([';', '|', '&', '(', ')', '`', '\n']).map(words_of_command).collect();
    let has = |is: fn(&str) -> bool| commands.iter().flatten().any(|(word, _)| is(word));
    // `eval` may combine any words of the text into a command, and so may an interpreter that reads a pipe.
    let is_built = has(|word| word == "eval");
    let is_piped = text.contains('|') && has(runs_its_input);
    let mut words = Vec::new();
    for found in commands {
        let runs = is_piped
            || found
                .iter()
                .any(|(word, _)| matches!(*word, "." | "source") || runs_its_arguments(word));
        let program = found
            .iter()
            .find(|(word, sign)| sign.is_none() && !KEYWORDS.contains(word) && !word.contains('='))
            .map(|(word, _)| *word);
        let is_known =
            program.is_some_and(|word| runs_no_file(word) || PLAIN_BUILT_IN.contains(&word));
        let mut is_command_next = true;
        for (word, redirection) in found {
            if is_built {
                words.push((word, WordRole::Code));
                if let Some((_, value)) = word.split_once('=') {
                    words.push((value, WordRole::Code));
                }
                continue;
            }
            if redirection == Some('>') {
                words.push((word, WordRole::Output));
                continue;
            }
            if let Some((_, value)) = word.split_once('=') {
                words.push((value, WordRole::Code));
                words.push((word, WordRole::Plain));
                continue;
            }
            let is_code = runs || !is_known && redirection.is_none() || is_command_next;
            if redirection.is_none() && !KEYWORDS.contains(&word) {
                is_command_next = false;
            }
            // For a program that runs no files, a bare word has another meaning, such as the name of a table.
            if is_code || !is_bare(word) {
                words.push((word, if is_code { WordRole::Code } else { WordRole::Plain }));
            }
        }
    }
    words
}

/// Whether a program may run what it reads from its input.
fn runs_its_input(program: &str) -> bool {
    runs_its_arguments(program) && !INPUT_IS_DATA.contains(&name_without_version(program))
}

/// The words of one command, each with the redirection sign before it.
fn words_of_command(command: &str) -> Vec<(&str, Option<char>)> {
    let mut words = Vec::new();
    let mut redirection = None;
    let mut rest = command;
    while let Some(first) = rest.chars().next() {
        let is_end = |c: char| c.is_whitespace() || matches!(c, '<' | '>' | '"' | '\'');
        if is_end(first) {
            if matches!(first, '<' | '>') {
                redirection = Some(first);
            }
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let (word, behind) = rest.split_at(rest.find(is_end).unwrap_or(rest.len()));
        words.push((word, redirection.take()));
        rest = behind;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_a_shell_text_writes_are_distinguished_from_those_it_runs() {
        let roles = |text| in_shell_text(text);
        let expected = [("printf", WordRole::Code), ("notes.txt", WordRole::Output)];
        assert_eq!(roles("printf x >> notes.txt"), expected);
        let expected = [
            ("wc", WordRole::Code),
            ("notes.txt", WordRole::Plain),
            (".", WordRole::Code),
            ("run", WordRole::Code),
        ];
        assert_eq!(roles("wc < notes.txt; . run"), expected);
        assert!(roles("unknown table").contains(&("table", WordRole::Code)));
        assert!(roles("cat $1 | ./run.sh > out.txt").contains(&("out.txt", WordRole::Output)));
        assert!(roles("for f in run; do $f; done").contains(&("run", WordRole::Code)));
        assert!(roles("echo x > run.sh && ./run.sh").contains(&("./run.sh", WordRole::Code)));
        assert!(roles("sh < run.sh").contains(&("run.sh", WordRole::Code)));
        assert!(roles("S=run.sh; $S").contains(&("run.sh", WordRole::Code)));
        assert!(roles("if ./a.sh; then ./b.sh; fi").contains(&("./b.sh", WordRole::Code)));
        assert!(roles("\"./a.sh\" x").contains(&("./a.sh", WordRole::Code)));
        assert!(!roles("getent hosts \"$1\"").iter().any(|(word, _)| *word == "hosts"));
    }

    #[test]
    fn a_text_that_may_be_evaluated_counts_as_code() {
        let all_code = |text| in_shell_text(text).iter().all(|(_, role)| *role == WordRole::Code);
        assert!(all_code("x=run; echo a > run; eval \"./$x\""));
        assert!(all_code("echo . run | sh"));
        assert!(all_code("printf '%s' run | xargs sh"));
        assert!(!all_code("cat notes.txt | sed s/a/b/ > out.txt"));
    }

    #[test]
    fn options_that_write_files_are_recognized() {
        for (option, words) in [
            ("-o", &["sort"][..]),
            ("-o", &["timeout", "5", "/usr/bin/sort"]),
            ("--output", &["anything"]),
            ("of", &["dd"]),
            ("-cf", &["tar"]),
            ("-f", &["tar", "-c"]),
            ("czf", &["tar"]),
            ("--file", &["tar", "--create"]),
        ] {
            assert!(is_written(option, words), "{option} {words:?}");
        }
        for (option, words) in [
            ("-o", &["mytool"][..]),
            ("-xf", &["tar"]),
            ("-f", &["tar", "-x"]),
            ("-f", &["mytool"]),
            ("-C", &["tar", "-c"]),
            ("5", &["timeout"]),
        ] {
            assert!(!is_written(option, words), "{option} {words:?}");
        }
    }
}
