//! Code of an author that evaluates or starts what it is given as an argument.

use super::text_run;
use crate::diagnostic::Diagnostic;
use crate::manifest::program::argv::Word;
use crate::manifest::program::known::{self, Read, tainted};
use crate::manifest::schema::value_shape::Shape;
use crate::manifest::tool::references::Scope;

/// Calls that run a text or a program.
const RUNNING: [&str; 19] = [
    "eval(",
    "eval ",
    "exec(",
    "exec ",
    "system(",
    "system ",
    "popen(",
    "spawn(",
    "Function(",
    "execSync(",
    "run(",
    "__import__(",
    "getoutput(",
    "import_module(",
    "pickle.load",
    "require(",
    "import(",
    "run_module(",
    "run_path(",
];

/// Those of some interpreters only: a name that `open` is given may begin with `|` and a command.
const RUNNING_IN: [(&str, &[&str]); 15] = [
    ("assert(", &["php"]),
    ("call_user_func(", &["php"]),
    ("do $", &["perl"]),
    ("include ", &["php"]),
    ("include(", &["php"]),
    ("include_once ", &["php"]),
    ("include_once(", &["php"]),
    ("load ", &["ruby"]),
    ("require ", &["perl", "php", "ruby"]),
    ("require_once ", &["php"]),
    ("open(", &["perl", "ruby"]),
    ("open ", &["perl", "ruby"]),
    ("`", &["perl", "ruby", "php"]),
    ("qx", &["perl"]),
    ("%x", &["ruby"]),
];

/// How an interpreter's code names its arguments.
const ARGUMENTS: [&str; 3] = ["argv", "ARGV", "Deno.args"];

/// A warning about code that evaluates or starts what a value of the model says, as far as the text
/// shows it: a call that runs something, and the arguments in the same statement.
pub(in crate::manifest) fn evaluated(
    words: &[Word<'_>],
    read: &Read<'_>,
    scope: &Scope,
) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for (at, program) in &read.started {
        let after = &words[at + 1..];
        let Some((is_shell, code)) = text_run(program, after) else { continue };
        let is_found =
            |(other, name): &(usize, &str)| other < at && known::base_name(name) == "find";
        if read.started.iter().any(is_found)
            && code.literal().is_some_and(|text| text.contains("{}"))
        {
            let message =
                "`find` puts the names of files into this text, and a name such as `$(id)` is run";
            let help =
                "pass the name behind the text: `-exec`, sh, -c, 'wc -l \"$1\"', sh, \"{}\", \";\"";
            found.push(
                Diagnostic::warning("evaluated-variable", &code.node.span, message).help(help),
            );
        }
        if is_shell {
            continue;
        }
        let place = after.iter().position(|word| std::ptr::eq(word, code)).unwrap_or_default();
        let is_given = after[place + 1..].iter().any(|word| tainted(word, scope, Shape::Fixed));
        let text = code.literal().unwrap_or_default();
        if is_given && text.split([';', '\n']).any(|part| runs_arguments(program, part)) {
            let message = format!(
                "this code of `{}` seems to run what it is given as an argument",
                known::base_name(program)
            );
            found.push(
                Diagnostic::warning("evaluated-variable", &code.node.span, message)
                    .help("write what is run into the code, and use the argument as data only"),
            );
        }
    }
    found
}

/// Whether a statement calls something that runs, with the arguments behind it.
fn runs_arguments(program: &str, statement: &str) -> bool {
    let plain = known::base_name(program);
    let own = RUNNING_IN.iter().filter(|(_, programs)| programs.contains(&plain));
    RUNNING.iter().chain(own.map(|(call, _)| call)).any(|call| {
        // Perl's open with three arguments runs nothing, nor does `File.open`.
        statement.split_once(call).is_some_and(|(before, rest)| {
            let is_open = call.starts_with("open");
            let safe = is_open && (before.ends_with('.') || rest.matches(',').count() > 1);
            !safe && ARGUMENTS.iter().any(|name| rest.contains(name))
        })
    })
}
