//! The role of a word for the program that gets it: a file that is run, read or written.

use toolcrib_manifest::shell_text;

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

/// Texts of shells within texts of shells that are read.
const DEPTH_MAX: usize = 4;

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

/// The words of a shell's text that may name files, each with its role, in every folder in which it may be read.
pub(super) fn in_shell_text(text: &str) -> Vec<(String, WordRole)> {
    let mut words = Vec::new();
    add_shell_text(text, 0, &mut words);
    words
}

fn add_shell_text(text: &str, depth: usize, words: &mut Vec<(String, WordRole)>) {
    let commands = shell_text::commands(text);
    let has = |is: fn(&str) -> bool| {
        commands.iter().flat_map(|command| &command.words).any(|word| is(word))
    };
    // `eval` may combine any words of the text into a command, and so may an interpreter that reads a pipe.
    let is_built = has(|word| word == "eval");
    let runs_all = text.contains('|') && has(runs_its_input);
    for command in &commands {
        let runs = runs_all
            || command
                .words
                .iter()
                .any(|word| matches!(word.as_str(), "." | "source") || runs_its_arguments(word));
        let is_known = command.words.first().is_some_and(|program| {
            runs_no_file(program) || PLAIN_BUILT_IN.contains(&program.as_str())
        });
        let mut found: Vec<(&str, WordRole)> = Vec::new();
        let mut add = |word, role| found.push((word, if is_built { WordRole::Code } else { role }));
        for (at, word) in command.words.iter().enumerate() {
            let is_code = is_built || runs || !is_known || at == 0;
            let value = word.split_once('=').map(|(_, value)| value);
            // For a program that runs no files, a bare word has another meaning, such as the name of a table.
            if is_code || !is_bare(word) {
                add(word, if is_code { WordRole::Code } else { WordRole::Plain });
            }
            if let Some(value) = value {
                add(value, WordRole::Code);
            }
        }
        let values = command.assignments.iter().map(|(_, value)| value).chain(&command.values);
        values.for_each(|value| add(value, WordRole::Code));
        command.outputs.iter().for_each(|file| add(file, WordRole::Output));
        if let Some(file) = &command.input {
            add(file, if runs { WordRole::Code } else { WordRole::Plain });
        }
        for folder in &command.folders {
            words.extend(found.iter().map(|(word, role)| (below(folder, word), *role)));
        }
        // What such a program is given is no text that a shell runs.
        let is_data = is_known && !runs && !is_built;
        if depth < DEPTH_MAX && !is_data {
            for word in command.words.iter().filter(|word| word.contains(char::is_whitespace)) {
                add_shell_text(word, depth + 1, words);
            }
        }
    }
}

/// A path as it is written from the folder in which a text begins.
fn below(folder: &str, word: &str) -> String {
    if folder.is_empty() || word.starts_with('/') {
        return word.to_owned();
    }
    format!("{folder}/{}", word.trim_start_matches("./"))
}

/// Whether a program may run what it reads from its input.
fn runs_its_input(program: &str) -> bool {
    runs_its_arguments(program) && !INPUT_IS_DATA.contains(&name_without_version(program))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_a_shell_text_writes_are_distinguished_from_those_it_runs() {
        let has = |text, word: &str, role| in_shell_text(text).contains(&(word.to_owned(), role));
        let code = |text, word| has(text, word, WordRole::Code);
        assert!(has("printf x >> notes.txt", "notes.txt", WordRole::Output));
        assert!(has("wc < notes.txt; . run", "notes.txt", WordRole::Plain));
        assert!(code("wc < notes.txt; . run", "run"));
        assert!(code("unknown table", "table"));
        assert!(has("cat $1 | ./run.sh > out.txt", "out.txt", WordRole::Output));
        assert!(code("for f in run; do $f; done", "run"));
        assert!(code("echo x > run.sh && ./run.sh", "./run.sh"));
        assert!(code("sh < run.sh", "run.sh"));
        assert!(code("S=run.sh; $S", "run.sh"));
        assert!(code("if ./a.sh; then ./b.sh; fi", "./b.sh"));
        assert!(code("\"./a.sh\" x", "./a.sh"));
        assert!(!in_shell_text("getent hosts \"$1\"").iter().any(|(word, _)| word == "hosts"));
    }

    #[test]
    fn a_file_that_a_text_writes_and_mentions_in_what_it_prints_is_no_code() {
        let text = "echo \"$H\" >> deployed; echo \"deployed $H by $U\"";
        let is_code = |text| in_shell_text(text).contains(&("deployed".to_owned(), WordRole::Code));
        assert!(!is_code(text), "{:?}", in_shell_text(text));
        assert!(is_code("echo x >> deployed; sh -c 'deployed x'"));
        assert!(is_code("echo \"deployed x\" | sh"));
    }

    #[test]
    fn files_are_found_in_the_folders_to_which_a_text_changes() {
        let code = |text: &str, word: &str| {
            in_shell_text(text).contains(&(word.to_owned(), WordRole::Code))
        };
        assert!(code("cd h; sh run.sh", "h/run.sh"));
        assert!(code("cd h && . ./run.sh", "h/run.sh"));
        assert!(code("pushd h; ./run.sh", "h/run.sh"));
        assert!(code("d=h; . $d/run.sh", "h/run.sh"));
        assert!(code("sh \"$PWD/h/run.sh\"", "./h/run.sh"));
        assert!(code(". \"$(pwd)/h/run.sh\"", "./h/run.sh"));
        assert!(code("bash -c 'cd h; . ./run.sh'", "h/run.sh"));
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
