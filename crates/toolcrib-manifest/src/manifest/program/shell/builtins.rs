//! Builtins of a shell that run a text, name a variable, or hand on what they read.

use super::Taint;
use super::flow::{Flow, join, numbered};
use super::reader::DECLARATIONS;
use super::sinks::{bare, shown};
use super::suspects::{file_name, parameters_of};
use super::syntax::{Word, split_name};
use crate::manifest::schema::value_shape::{Beginning, Shape};

/// Programs and builtins whose output is made of their arguments.
pub(super) const REPEAT: [&str; 9] =
    ["basename", "cat", "dirname", "echo", "envsubst", "print", "printf", "readlink", "realpath"];

/// Programs whose output is made of what they read on standard input.
pub(super) const FILTERS: [&str; 25] = [
    "awk", "base64", "cat", "column", "cut", "envsubst", "expand", "fold", "grep", "head", "iconv",
    "jq", "nl", "paste", "rev", "sed", "sort", "tac", "tail", "tee", "tr", "uniq", "xargs", "xxd",
    "yq",
];

/// Builtins and programs that write the values of variables.
pub(super) const TELLS_VARIABLES: [&str; 6] =
    ["declare", "env", "export", "printenv", "set", "typeset"];

/// Options of builtins whose value is run, loaded, or kept to be run.
pub(super) const RUN_OPTIONS: [(&str, &[&str]); 7] = [
    ("bind", &["-x"]),
    ("compgen", &["-C", "-F", "-W"]),
    ("complete", &["-C", "-F", "-W"]),
    ("enable", &["-f"]),
    ("fc", &["-e"]),
    ("hash", &["-p"]),
    ("mapfile", &["-C"]),
];

/// Builtins that run all of their arguments, as one line.
pub(super) const RUN_ALL: [&str; 2] = ["eval", "alias"];

/// Builtins that keep their arguments to run them, or read them in a way of their own.
pub(super) const KEEP_OR_RUN: [&str; 8] =
    ["bind", "compgen", "complete", "compopt", "enable", "fc", "history", "shopt"];

/// Builtins that take names of variables, with the options that take a value of another kind.
pub(super) const NAME_VARIABLES: [(&str, &[&str]); 6] = [
    ("getopts", &[]),
    ("mapfile", &["-C", "-c", "-d", "-n", "-O", "-s", "-u"]),
    ("read", &["-d", "-i", "-N", "-n", "-p", "-t", "-u"]),
    ("readarray", &["-C", "-c", "-d", "-n", "-O", "-s", "-u"]),
    ("unset", &[]),
    ("wait", &[]),
];

/// Operators of `[[` that evaluate both sides as expressions.
pub(super) const COMPARISONS: [&str; 6] = ["-eq", "-ge", "-gt", "-le", "-lt", "-ne"];

impl Flow<'_> {
    /// Reads the arguments of a builtin, which may read `read` on its standard input.
    pub(super) fn builtin(
        &mut self,
        name: &str,
        words: &[Word],
        read: Option<Taint>,
        function: Option<&str>,
    ) {
        if RUN_ALL.contains(&name) {
            return self.run_all(name, words, function);
        }
        if let Some((_, options)) = RUN_OPTIONS.iter().find(|(known, _)| *known == name) {
            for pair in words.windows(2) {
                let option = pair[0].literal().unwrap_or_default();
                if options.contains(&option.as_str()) {
                    self.code(&pair[1], "write what is run as a literal", function);
                }
            }
        }
        if KEEP_OR_RUN.contains(&name) {
            for word in words {
                if let Some(taint) = self.taint(word, function).filter(|taint| !taint.is_fixed()) {
                    self.kept(name, word, taint);
                }
            }
        }
        if self.evaluates_numbers {
            self.numbers(name, words, function);
        }
        match name {
            "cd" | "pushd" => {
                self.has_moved = true;
                self.changes_folder(words, function);
                self.moves(words, function);
            }
            "." | "source" => self.sourced(words, read, function),
            "trap" => {
                let words = match words.first().and_then(Word::literal).as_deref() {
                    Some("--") => &words[1..],
                    _ => words,
                };
                let help = "write it between single quotes: a trap reads the variable later";
                if let Some(word) = words.first().filter(|word| !self.code(word, help, function))
                    && let Some(text) = word.literal()
                {
                    self.text(&text, &word.range, None, function);
                }
            }
            "let" => {
                for word in words {
                    self.let_word(word, function);
                }
            }
            "set" => self.parameters_set(words, function),
            "shift" => self.shift(function),
            "printf" => {
                if words.first().and_then(Word::literal).as_deref() == Some("-v")
                    && let Some(target) = words.get(1)
                {
                    let values = words.get(3..).unwrap_or_default();
                    let taint = values.iter().filter_map(|word| self.taint(word, function));
                    let taint = taint.reduce(Taint::joined).map(Taint::changed);
                    self.variable_named(target, taint, function);
                }
                self.printf(words, function);
            }
            "test" | "[" => {
                for pair in words.windows(2) {
                    let taint = self.taint(&pair[1], function);
                    let is_name = pair[0].literal().as_deref() == Some("-v");
                    // A value that begins with `-` is an operator there, and `-v` names a variable.
                    let may_be_operator = |word: &Word| {
                        word.begins().is_empty()
                            && self.taint(word, function).is_some_and(|taint| {
                                taint.shape == Shape::Free && taint.beginning == Beginning::Dash
                            })
                    };
                    let is_value = pair[1].literal().is_none();
                    let is_operator = is_value && may_be_operator(&pair[0]);
                    if let Some(taint) = taint.filter(|_| is_name || is_operator) {
                        self.named(&pair[1].range, taint);
                    }
                }
            }
            _ if DECLARATIONS.contains(&name) => self.declares(words, function),
            _ => self.reads(name, words, read, function),
        }
    }

    /// Numbers of a builtin, in a shell that evaluates them as expressions.
    fn numbers(&mut self, name: &str, words: &[Word], function: Option<&str>) {
        let literals: Vec<String> =
            words.iter().map(|word| word.literal().unwrap_or_default()).collect();
        let is_compared = |at: usize| {
            let is = |at: usize| {
                literals.get(at).is_some_and(|text| COMPARISONS.contains(&text.as_str()))
            };
            is(at + 1) || at > 0 && is(at - 1)
        };
        let format = literals.first().map(String::as_str).unwrap_or_default();
        let has_number = format.is_empty()
            || format.split('%').skip(1).any(|rest| {
                let kind = rest.trim_start_matches(|c: char| "-+ #0123456789.*'".contains(c));
                kind.starts_with(|c: char| "diouxXeEfFgGaA".contains(c))
            });
        for (at, word) in words.iter().enumerate() {
            let is_number = match name {
                "test" | "[" => is_compared(at),
                "exit" | "return" | "shift" | "break" | "continue" | "integer" | "float" => true,
                "printf" => at > 0 && has_number,
                _ => false,
            };
            if let Some(taint) = self.taint(word, function).filter(|_| is_number) {
                self.expression(&word.range, &bare(word), taint);
            }
        }
    }

    /// Reports a word that is run as code, if a value decides it. Returns whether it does.
    fn code(&mut self, word: &Word, help: &str, function: Option<&str>) -> bool {
        let taint = self.suspected(word, function).filter(|taint| !taint.is_fixed());
        if let Some(taint) = taint {
            let message = format!("the value of `{}` is run as code here", bare(word));
            self.report(&word.range, "evaluated-variable", message, help, taint);
        }
        taint.is_some()
    }

    fn run_all(&mut self, name: &str, words: &[Word], function: Option<&str>) {
        for word in words {
            self.code(word, "pass it as a separate argument, which is not code", function);
        }
        let texts: Option<Vec<String>> = words.iter().map(Word::literal).collect();
        if let (Some(texts), Some(first)) = (texts.filter(|_| name == "eval"), words.first()) {
            self.text(&texts.join(" "), &first.range, None, function);
        }
    }

    fn sourced(&mut self, words: &[Word], read: Option<Taint>, function: Option<&str>) {
        let Some(word) = words.first() else { return };
        let read = join(read, self.files.get(&file_name(word)).copied());
        let is_written = self.files.contains_key(&file_name(word));
        if let Some(taint) =
            read.filter(|taint| !taint.is_fixed() && (is_written || is_descriptor(word)))
        {
            let message = format!("what `{}` leads to is run as code here", shown(word));
            let help = "write what is run as a literal, with the value in a variable";
            self.report(&word.range, "evaluated-variable", message, help, taint);
        }
        if let Some(taint) = self.taint(word, function).filter(|taint| !taint.is_fixed()) {
            let message = format!("`{}` would choose the file that is run here", shown(word));
            let help = "write the name of the file; for a choice among several, use `case`";
            self.report(&word.range, "model-chosen-program", message, help, taint);
        }
    }

    fn parameters_set(&mut self, words: &[Word], function: Option<&str>) {
        let start = words.iter().position(|word| word.literal().as_deref() == Some("--"));
        let values = &words[start.map_or(0, |start| start + 1)..];
        let outer = self.function_of(function).unwrap_or_default().to_owned();
        self.passes_unknown(&outer, values, function);
        let key = parameters_of(&outer);
        values.iter().filter_map(Word::literal).for_each(|text| self.add_text(&key, &text));
        let function = self.function_of(function).map(str::to_owned);
        let function = function.as_deref();
        let values = values.iter().map(|word| self.taint(word, function));
        let parameters = numbered(&std::iter::once(None).chain(values).collect::<Vec<_>>());
        let known = match function {
            Some(function) => Some(self.functions.entry(function.to_owned()).or_default()),
            None => self.frames.last_mut(),
        };
        if let Some(known) = known {
            known.extend(parameters);
        }
    }

    fn declares(&mut self, words: &[Word], function: Option<&str>) {
        let literal = |word: &Word| word.literal().unwrap_or_default();
        let letters: String =
            words.iter().map(literal).filter(|word| word.starts_with('-')).collect();
        for word in words.iter().filter(|word| !word.begins().starts_with('-')) {
            if letters.contains('i') {
                self.integers.extend(word.literal());
            }
            if letters.contains('A') {
                self.maps.extend(word.literal());
            }
            if !letters.contains(['f', 'p'])
                && let Some(taint) = self.taint(word, function)
            {
                self.declared(word, taint);
            }
        }
    }

    /// A word of `declare` or `export` that a value begins: it names the variable, and may set it.
    fn declared(&mut self, word: &Word, taint: Taint) {
        if taint.shape == Shape::Free {
            let message = format!("`{}` would choose the variable that is set here", shown(word));
            let help = "write the name: `export NAME=\"$VALUE\"`";
            self.report(&word.range, "dangerous-env", message, help, taint);
        }
    }

    fn reads(&mut self, name: &str, words: &[Word], read: Option<Taint>, function: Option<&str>) {
        let Some((_, valued)) = NAME_VARIABLES.iter().find(|(known, _)| *known == name) else {
            return;
        };
        let mut words = words.iter();
        if name == "getopts" {
            words.next();
            let all = words.clone().filter_map(|word| self.taint(word, function));
            let all = all.reduce(Taint::joined);
            self.set("OPTARG", join(all, self.value_of("@", function)), None);
        }
        let fills = matches!(name, "read" | "mapfile" | "readarray");
        let mut names = 0;
        while let Some(word) = words.next() {
            let literal = word.literal().unwrap_or_default();
            if literal.starts_with('-') && literal.len() > 1 {
                let last = literal.chars().next_back().map(|letter| format!("-{letter}"));
                let called = words.clone().next().and_then(Word::literal);
                if last.as_deref() == Some("-C")
                    && let (Some(called), Some(read)) = (called, read)
                    && let Some(parameters) = self.functions.get_mut(&called)
                {
                    parameters.extend(["2", "@"].map(|name| (name.to_owned(), read.changed())));
                }
                if last.is_some_and(|last| valued.contains(&last.as_str())) {
                    words.next();
                }
                continue;
            }
            names += 1;
            self.variable_named(word, read.filter(|_| fills).map(Taint::changed), function);
        }
        if names == 0 && fills {
            let name = if name == "read" { "REPLY" } else { "MAPFILE" };
            self.file_names.unnamed.insert(name.to_owned());
            self.set(name, read, None);
        }
    }

    /// A word that names a variable, which is set to a value.
    fn variable_named(&mut self, word: &Word, value: Option<Taint>, function: Option<&str>) {
        if let Some(taint) = self.taint(word, function) {
            self.named(&word.range, taint);
        }
        let literal = word.literal().unwrap_or_default();
        let name = split_name(&literal).0;
        if name.is_empty() {
            if word.literal().is_none() {
                self.anywhere = join(self.anywhere, value);
            }
            return;
        }
        if let Some(taint) = value.filter(|_| self.integers.contains(name)) {
            self.expression(&word.range, name, taint);
        }
        self.steers(&word.range, name, value);
        self.file_names.unnamed.insert(name.to_owned());
        self.set(name, value, None);
    }

    fn shift(&mut self, function: Option<&str>) {
        let parameters = match function {
            Some(function) => self.functions.get_mut(function),
            None => self.frames.last_mut(),
        };
        if let Some(parameters) = parameters
            && let Some(all) = parameters.get("@").copied()
        {
            for nth in 1..10 {
                parameters.insert(nth.to_string(), all);
            }
        }
    }

    /// A word of `let`, which is an expression.
    fn let_word(&mut self, word: &Word, function: Option<&str>) {
        if let Some(taint) = self.arithmetic(word, function) {
            self.expression(&word.range, &shown(word), taint);
        }
    }

    /// A builtin that keeps or runs its arguments in its own way.
    fn kept(&mut self, name: &str, word: &Word, taint: Taint) {
        if name == "history" {
            let message = "the value becomes a command of the history here, and `fc` runs it";
            let help = "remove it: a text needs no history";
            self.report(&word.range, "evaluated-variable", message.to_owned(), help, taint);
        } else {
            let message = format!("`{name}` is not known to take a value as data");
            self.doubt(&word.range, message, "pass the value to a program, between double quotes");
        }
    }

    /// The format of `printf`, which may name variables to be set: `%n`.
    fn printf(&mut self, words: &[Word], function: Option<&str>) {
        let is_option = |word: &&Word| word.literal().is_some_and(|text| text == "--");
        let skipped = match words.first().and_then(Word::literal).as_deref() {
            Some("-v") => 2,
            _ => 0,
        };
        let mut words = words.iter().skip(skipped).skip_while(is_option);
        let Some(format) = words.next() else { return };
        let given: Vec<&Word> = words.collect();
        if format.literal().is_some_and(|text| text.contains("%n")) {
            for word in given {
                if let Some(taint) = self.taint(word, function) {
                    self.named(&word.range, taint);
                }
            }
        } else if self.taint(format, function).is_some_and(|taint| taint.shape == Shape::Free) {
            let message =
                "the value is the format of `printf`, in which `%n` and `\\` have a meaning"
                    .to_owned();
            self.doubt(&format.range, message, "write the format: `printf '%s\\n' \"$VALUE\"`");
        }
    }
}

/// Whether a word is the path of something that the shell has opened.
pub(super) fn is_descriptor(word: &Word) -> bool {
    let begins = word.begins();
    ["/dev/stdin", "/dev/fd/", "/proc/self/fd/"].iter().any(|place| begins.starts_with(place))
}
