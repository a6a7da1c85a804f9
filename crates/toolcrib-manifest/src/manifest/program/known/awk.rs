//! Programs in awk that run what they read or are given: `system`, pipes, and `getline` from a command.

use crate::programs::is_any_shell;

/// Stands for a string that names a shell, where other strings are `""`.
const TO_SHELL: &str = "\"!\"";

/// Whether a program in awk may run one of these variables, or what it reads if `reads` is set.
pub(in crate::manifest) fn runs(text: &str, variables: &[&str], reads: bool) -> bool {
    let masked = without_texts(text);
    let statements: Vec<&str> = masked.split([';', '\n', '{', '}']).collect();
    let mut tainted: Vec<&str> = variables.to_vec();
    let functions: Vec<(&str, Vec<&str>)> = statements
        .iter()
        .filter_map(|statement| {
            let (name, parameters) = statement.split_once("function ")?.1.split_once('(')?;
            let parameters = identifiers(parameters.split(')').next()?).collect();
            Some((name.trim(), parameters))
        })
        .collect();
    // A value may pass through several variables, also backwards in a loop.
    for _ in 0..3 {
        for statement in &statements {
            let mentions = mentions(statement, &tainted, reads);
            if let Some(name) = statement.split_once("getline ").map(|(_, rest)| rest.trim_start())
                && reads
            {
                tainted.extend(identifiers(name).next());
            }
            if statement.contains(TO_SHELL) && assigned(statement).is_some() {
                tainted.extend(assigned(statement));
            }
            if !mentions {
                continue;
            }
            // A function of the program is given the value.
            for (name, parameters) in &functions {
                if statement.contains(name) && !statement.contains("function ") {
                    tainted.extend(parameters);
                }
            }
            if ["split(", "match(", "sub("].iter().any(|call| statement.contains(call)) {
                tainted.extend(identifiers(statement));
            } else if let Some(name) = assigned(statement) {
                tainted.push(name);
            }
        }
        tainted.sort_unstable();
        tainted.dedup();
    }
    let is_run = |command: &str| mentions(command, &tainted, reads);
    statements.iter().any(|statement| {
        // What is written to a shell is run; without arguments that is the line that was read.
        let written = statement.trim_start();
        let is_line = reads && ["print |", "print|"].iter().any(|print| written.contains(print));
        if piped(statement).into_iter().any(|command| command.starts_with(TO_SHELL))
            && (is_line || is_run(statement))
        {
            return true;
        }
        let called = statement.split_once("system(").is_some_and(|(_, rest)| is_run(rest));
        called || piped(statement).into_iter().any(is_run)
    })
}

/// The commands in a statement that a pipe starts.
fn piped(statement: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (at, _) in statement.match_indices('|') {
        let (before, after) = (&statement[..at], &statement[at + 1..]);
        if before.ends_with('|') || after.starts_with('|') {
            continue;
        }
        let after = after.trim_start_matches('&').trim_start();
        found.push(if after.starts_with("getline") { before } else { after });
    }
    found
}

/// The variable that a statement sets.
fn assigned(statement: &str) -> Option<&str> {
    let at = statement.char_indices().find(|(at, c)| {
        let before = statement[..*at].chars().next_back();
        *c == '='
            && !statement[at + 1..].starts_with(['=', '~'])
            && !before.is_some_and(|before| "=!<>".contains(before))
    });
    let (at, _) = at?;
    identifiers(statement[..at].split('[').next().unwrap_or_default()).last()
}

fn mentions(text: &str, variables: &[&str], reads: bool) -> bool {
    reads && text.contains('$') || identifiers(text).any(|name| variables.contains(&name))
}

fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| c != '_' && !c.is_ascii_alphanumeric());
    words.filter(|word| word.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic()))
}

/// The program with spaces in the place of strings, patterns and comments.
fn without_texts(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut chars = text.chars();
    let mut before = '\n';
    while let Some(c) = chars.next() {
        let begins_pattern = c == '/' && "(,{;!~&|\n}".contains(before);
        if c == '#' {
            if chars.by_ref().any(|c| c == '\n') {
                masked.push('\n');
                before = '\n';
            }
        } else if c == '"' || begins_pattern {
            let program: String = chars
                .clone()
                .take_while(|inner| inner.is_alphanumeric() || *inner == '/')
                .collect();
            let is_shell = c == '"' && is_any_shell(program.rsplit('/').next().unwrap_or_default());
            while let Some(inner) = chars.next() {
                if inner == '\\' {
                    chars.next();
                } else if inner == c {
                    break;
                }
            }
            masked.push_str(if is_shell { TO_SHELL } else { "\"\"" });
            before = '"';
        } else {
            masked.push(c);
            if !c.is_whitespace() || c == '\n' {
                before = c;
            }
        }
    }
    masked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_made_of_values_are_told_from_commands_of_the_author() {
        for text in [
            "{system($0)}",
            "{print | $1}",
            "{cmd = \"ls \" $1; system(cmd)}",
            "{$1 | getline x}",
            "{while ((getline line) > 0) system(line)}",
            "{split($0, a); system(a[1])}",
            "{print | \"sh\"}",
            "{print $2 | \"/bin/bash -s\"}",
            "{print > \"a\"; cmd = \"sh\"; print $1 | cmd}",
            "function f(a) {system(a)} {f($1)}",
        ] {
            assert!(runs(text, &[], true), "{text}");
        }
        for text in [
            "{print $1}",
            "/a|b/ {print $1}",
            "$1 ~ /x|y/ || $2 > 3 {print $1 | \"sort\"}",
            "BEGIN {\"date\" | getline now} {print now, $1}",
            "{print \"system($0) | x\"} # system($0)",
        ] {
            assert!(!runs(text, &[], true), "{text}");
        }
        assert!(runs("BEGIN{system(c)}", &["c"], false));
        assert!(runs("function f(a){system(a)} BEGIN{f(c)}", &["c"], false));
        assert!(!runs("function f(a){print a} BEGIN{f(c); system(\"ls\")}", &["c"], false));
        assert!(!runs("BEGIN{print \"date\" | \"sh\"; print c}", &["c"], false));
        assert!(runs("BEGIN{d = c; system(\"ls \" d)}", &["c"], false));
        assert!(runs("BEGIN{system(ENVIRON[\"A\"])}", &["ENVIRON"], false));
        assert!(!runs("BEGIN{print c; system(\"ls\")}", &["c"], false));
        assert!(!runs("{print c, $1 | \"sort\"}", &["c"], false));
    }
}
