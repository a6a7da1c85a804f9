//! Texts of shells: values that become code are refused, and texts that keep them values load without a
//! warning about them. Each line of the two files is a text that gets a free string in `X`.

use std::fmt::Write as _;

use toolcrib_manifest::{LintContext, Severity, lint_with};

use super::programs::errors;

/// Texts in which the value is run, chooses what is run, or is evaluated.
const RUN: &str = include_str!("../../shell_texts/run.txt");

/// Texts in which nobody knows what becomes of it.
const DOUBTFUL: &str = include_str!("../../shell_texts/doubtful.txt");

/// Texts in which a program with options that run something may take it for one.
const OPTIONS: &str = include_str!("../../shell_texts/options.txt");

/// Texts in which it stays a value.
const PLAIN: &str = include_str!("../../shell_texts/plain.txt");

/// Argument vectors in which the value X becomes a program or code, one for each name or option.
const RUN_ARGV: &str = include_str!("../../shell_texts/run_argv.txt");

/// Argument vectors in which it stays a value.
const PLAIN_ARGV: &str = include_str!("../../shell_texts/plain_argv.txt");

const FREE: &str = "{type: string}";

/// The severities and codes of what is said about a text, other than hints.
fn said(schema: &str, text: &str) -> Vec<(Severity, String)> {
    said_in("bash", schema, text)
}

fn said_in(shell: &str, schema: &str, text: &str) -> Vec<(Severity, String)> {
    let text = serde_json::Value::String(text.replace("\\n", "\n"));
    said_of(schema, &format!("{{shell: {shell}, text: {text}, vars: {{X: \"${{args.x}}\"}}}}"))
}

/// The same for a text in an argument vector, with the value in a variable of `env`.
fn said_in_argv(shell: &str, schema: &str, text: &str) -> Vec<(Severity, String)> {
    let text = serde_json::Value::String(text.replace("\\n", "\n"));
    said_of(schema, &format!("{{argv: [{shell}, -c, {text}], env: {{X: \"${{args.x}}\"}}}}"))
}

fn said_of(schema: &str, run: &str) -> Vec<(Severity, String)> {
    let manifest = format!(
        "toolcrib: 1\ntools:\n  - name: t\n    description: Do something that is useful. Read-only.\n    \
         annotations: {{read_only: true}}\n    input: {{properties: {{x: {schema}}}, required: [x]}}\n    \
         run: {run}\n"
    );
    let linted = lint_with("t.yaml", &manifest, &LintContext::default(), &|_| Vec::new());
    let found = linted.diagnostics.into_iter().filter(|found| found.severity != Severity::Hint);
    found.map(|found| (found.severity, found.code.to_owned())).collect()
}

/// Findings about the value itself. What a program needs is another matter.
fn about_values(schema: &str, text: &str) -> Vec<String> {
    let about = [
        "dangerous-env",
        "evaluated-variable",
        "loaded-code",
        "model-chosen-program",
        "not-understood",
        "option-from-value",
        "runs-written-file",
        "spliced-script",
        "unquoted-variable",
        "unsafe-argument",
        "unused-variable",
    ];
    let codes = said(schema, text).into_iter().map(|(_, code)| code);
    codes.filter(|code| about.contains(&code.as_str())).collect()
}

/// Both forms of a text say the same of its value.
#[test]
fn a_text_in_a_vector_gets_the_findings_of_a_shells_text() {
    let mut wrong = String::new();
    // `${…}` is a reference in a vector.
    let is_reference = |text: &&str| text.contains("${(") || text.contains("${ ");
    let texts = [RUN, DOUBTFUL, OPTIONS].into_iter().flat_map(str::lines);
    for text in texts.filter(|text| !is_reference(text)) {
        let worst = |found: &[(Severity, String)]| {
            let is_error = |(severity, _): &(Severity, String)| *severity == Severity::Error;
            (found.iter().any(is_error), found.is_empty())
        };
        let as_text = said(FREE, text);
        let in_vector = said_in_argv("bash", FREE, text);
        if worst(&as_text) != worst(&in_vector) {
            writeln!(wrong, "{text}    {as_text:?} {in_vector:?}").unwrap();
        }
    }
    for text in PLAIN.lines() {
        let about =
            ["evaluated-variable", "not-understood", "option-from-value", "unquoted-variable"];
        let found = said_in_argv("bash", FREE, text);
        if found.iter().any(|(_, code)| about.contains(&code.as_str())) {
            writeln!(wrong, "{text}    {found:?}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "these differ:\n{wrong}");
}

#[test]
fn a_reason_silences_doubts_about_a_text_in_a_vector_and_the_authors_own_words_are_split() {
    let codes =
        |run: &str| said_of(FREE, run).into_iter().map(|(_, code)| code).collect::<Vec<_>>();
    let run = r#"argv: [sh, -c, 'printf "$X"'], env: {X: "${args.x}"}"#;
    assert_eq!(codes(&format!("{{{run}}}")), ["evaluated-variable"]);
    let none: [&str; 0] = [];
    assert_eq!(codes(&format!("{{{run}, unsafe_argv: only our own jobs send it}}")), none);
    let run = r#"{argv: [sh, -c, 'ls $OPTIONS -- "$X"'], env: {OPTIONS: -l -a, X: "${args.x}"}}"#;
    assert_eq!(codes(run), none);
}

#[test]
fn no_value_is_run_by_the_text_of_a_shell() {
    let mut missed = String::new();
    for (shell, text) in
        ["bash", "sh"].iter().flat_map(|shell| RUN.lines().map(move |text| (shell, text)))
    {
        let found = said_in(shell, "{type: string}", text);
        if !found.iter().any(|(severity, _)| *severity == Severity::Error) {
            writeln!(missed, "{shell}: {text}    {found:?}").unwrap();
        }
    }
    assert!(missed.is_empty(), "these should be refused:\n{missed}");
}

#[test]
fn values_of_which_nobody_knows_what_becomes_are_warned_of() {
    let mut missed = String::new();
    for text in DOUBTFUL.lines() {
        let found = about_values("{type: string}", text);
        if found.is_empty() {
            writeln!(missed, "{text}").unwrap();
        }
    }
    assert!(missed.is_empty(), "these should be warned of:\n{missed}");
}

#[test]
fn a_value_behind_an_option_without_a_value_may_be_an_option() {
    let mut missed = String::new();
    for (shell, text) in
        ["bash", "sh"].iter().flat_map(|shell| OPTIONS.lines().map(move |text| (shell, text)))
    {
        let found = said_in(shell, "{type: string}", text);
        let is_option = |code: &String| code == "option-from-value";
        if !found.iter().any(|(severity, code)| *severity == Severity::Error || is_option(code)) {
            writeln!(missed, "{shell}: {text}    {found:?}").unwrap();
        }
    }
    assert!(missed.is_empty(), "these should be warned of:\n{missed}");
}

#[test]
fn values_that_stay_values_are_told_from_those_that_do_not() {
    let mut wrong = String::new();
    for text in PLAIN.lines() {
        let found = about_values("{type: string}", text);
        if !found.is_empty() {
            writeln!(wrong, "{text}    {found:?}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "these should load:\n{wrong}");
}

#[test]
fn no_value_is_run_whatever_the_program_is_called() {
    let missed: Vec<&str> = RUN_ARGV.lines().filter(|argv| errors(argv).is_empty()).collect();
    assert!(missed.is_empty(), "these should be refused:\n{}", missed.join("\n"));
}

#[test]
fn honest_vectors_of_known_programs_load() {
    let mut wrong = String::new();
    for argv in PLAIN_ARGV.lines() {
        let found = errors(argv);
        if !found.is_empty() {
            writeln!(wrong, "{argv}    {found:?}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "these should load:\n{wrong}");
}

#[test]
fn awk_that_runs_what_it_reads_gets_no_value_on_standard_input() {
    let errors = |run: &str| {
        let found = said_of("{type: string}", run);
        found.into_iter().filter(|(severity, _)| *severity == Severity::Error).count()
    };
    for program in ["{system($0)}", "{print | $1}", "{$1 | getline x; print x}", "{print | \"sh\"}"]
    {
        assert_eq!(
            errors(&format!("{{argv: [awk, '{program}'], stdin: \"${{args.x}}\"}}")),
            1,
            "{program}"
        );
    }
    for program in ["{print $1}", "/a|b/ {print $1 | \"sort\"}"] {
        assert_eq!(
            errors(&format!("{{argv: [awk, '{program}'], stdin: \"${{args.x}}\"}}")),
            0,
            "{program}"
        );
    }
    assert_eq!(errors(r#"{argv: [awk, 'BEGIN{system(ENVIRON["A"])}'], env: {A: "${args.x}"}}"#), 1);
    assert_eq!(errors(r#"{argv: [awk, 'BEGIN{print ENVIRON["A"]}'], env: {A: "${args.x}"}}"#), 0);
}

#[test]
fn a_program_gets_a_value_on_standard_input_only_if_it_is_known_to_treat_it_as_data() {
    let said = |argv: &str, more: &str| {
        said_of("{type: string}", &format!("{{argv: {argv}, stdin: \"${{args.x}}\"{more}}}"))
            .into_iter()
            .map(|(severity, code)| format!("{severity:?} {code}"))
            .filter(|it| {
                it.starts_with("Error") || it.contains("not-understood") || it.contains("idle")
            })
            .collect::<Vec<_>>()
    };
    for argv in [
        "[docker, run, -i, --entrypoint, sh, alpine]",
        "[docker, run, -i, --entrypoint=sh, alpine]",
        "[pwsh, -Command, '-']",
        "[deno]",
        "[bun, run, '-']",
        "[uv, run, '-']",
        "[sg, staff]",
        "[newgrp, staff]",
        "[schroot, -c, sid]",
        "[machinectl, shell, m]",
        "[plink, host]",
        "[rsh, host]",
        "[mosh, host]",
        "[oc, rsh, pod]",
        "[vagrant, ssh]",
        "[dbclient, host]",
        "[smbclient, //h/s]",
        "[ssh, host, psql]",
    ] {
        assert_eq!(said(argv, ""), ["Error spliced-script"], "{argv}");
    }
    for argv in ["[salt, '*', test.ping]", "[timeout, '5', redis-cli]", "[docker, run, -i, alpine]"]
    {
        assert_eq!(said(argv, ""), ["Warning not-understood"], "{argv}");
        let reason = ", unsafe_argv: it reads a list of names";
        assert_eq!(said(argv, reason), Vec::<String>::new(), "{argv}");
    }
    for argv in [
        "[jq, .]",
        "[/opt/acme/bin/report]",
        "[./report.sh]",
        "[python3, report.py]",
        "[kubectl, create, secret, generic, a]",
        "[docker, login, --password-stdin, h]",
        "[docker, run, -i, --entrypoint, cat, alpine]",
        "[docker, run, -i, alpine, cat]",
        "[oc, rsh, pod, cat]",
        "[machinectl, shell, m, /bin/cat]",
        "[ssh, host, 'tee -a notes.txt']",
        "[openssl, dgst, -sha256]",
        "[frobnicate, --batch]",
    ] {
        assert_eq!(said(argv, ""), Vec::<String>::new(), "{argv}");
    }
}

#[test]
fn a_reason_is_enough_for_a_text_of_which_nobody_knows_what_it_does_with_a_value() {
    let said = |more: &str| {
        let text = "printf %s \\\"$X\\\" | redis-cli";
        let run = format!("{{shell: sh, text: \"{text}\", vars: {{X: \"${{args.x}}\"}}{more}}}");
        said_of("{type: string}", &run).into_iter().map(|(_, code)| code).collect::<Vec<_>>()
    };
    assert_eq!(said(""), ["not-understood"]);
    assert_eq!(said(", unsafe_argv: it reads a list of names"), Vec::<String>::new());
}

#[test]
fn options_in_a_file_are_the_authors_to_choose() {
    for argv in ["[gcc, '@X']", "[gcc, a.c, '@./X']", "[javac, '@X']", "[csc, '@X']", "[ld, '@X']"]
    {
        assert!(!errors(&argv.replace('X', "${args.x}")).is_empty(), "{argv}");
    }
    for argv in ["[gcc, '@options', '-oX']", "[curl, -d, '@X', 'https://h']"] {
        assert!(errors(&argv.replace('X', "${args.x}")).is_empty(), "{argv}");
    }
}

#[test]
fn a_variable_of_psql_is_quoted_in_the_statements_that_get_a_value_by_it() {
    let errors = |statements: &str| {
        let run = format!("{{argv: [psql, \"--set=id=${{args.x}}\"], stdin: {statements:?}}}");
        let found = said_of("{type: string}", &run);
        found.into_iter().filter(|(severity, _)| *severity == Severity::Error).count()
    };
    for statements in ["select :id;", "select * from t where id = :id"] {
        assert_eq!(errors(statements), 1, "{statements}");
    }
    for statements in ["select :'id';", "select * from :\"id\"", "select 1::id, :identity"] {
        assert_eq!(errors(statements), 0, "{statements}");
    }
}

#[test]
fn shells_that_evaluate_numbers_get_no_value_in_the_place_of_one() {
    let refused = |shell: &str, schema: &str, text: &str| {
        let text = serde_json::Value::String(text.to_owned());
        let found =
            said_of(schema, &format!("{{argv: [{shell}, -c, {text}, x, \"${{args.x}}\"]}}"));
        found.iter().any(|(severity, _)| *severity == Severity::Error)
    };
    let texts = ["[ \"$1\" -eq 1 ]", "test 1 -lt \"$1\"", "exit \"$1\"", "printf %d \"$1\""];
    for text in texts {
        for shell in ["ksh", "mksh", "zsh"] {
            assert!(refused(shell, "{type: string}", text), "{shell}: {text}");
            assert!(!refused(shell, "{type: integer}", text), "{shell}: {text}");
        }
        for shell in ["sh", "bash", "dash"] {
            assert!(!refused(shell, "{type: string}", text), "{shell}: {text}");
        }
    }
    for text in ["[ \"$1\" = a ]", "printf '%s\\n' \"$1\"", "echo \"$1\""] {
        assert!(!refused("zsh", "{type: string}", text), "{text}");
    }
}

#[test]
fn numbers_and_listed_values_may_be_compared_and_chosen() {
    for schema in ["{type: integer}", "{type: number}", "{enum: [a, b]}"] {
        for text in [
            "[[ \"$X\" -gt 1 ]] && echo more",
            "echo $((X + 1))",
            "declare -i n=\"$X\"; echo \"$n\"",
            "\"./jobs/$X.sh\"",
            "eval \"echo $X\"",
        ] {
            assert_eq!(about_values(schema, text), Vec::<String>::new(), "{schema} {text}");
        }
    }
    let digits = "{type: string, pattern: '^[0-9]+$'}";
    assert_eq!(about_values(digits, "[[ \"$X\" -gt 1 ]]"), Vec::<String>::new());
    assert!(!about_values(digits, "\"$X\"").is_empty());
}

#[test]
fn variables_of_env_are_values_of_the_text_too() {
    let errors = |run: &str| {
        let found = said_of("{type: string}", run);
        found.into_iter().filter(|(severity, _)| *severity == Severity::Error).count()
    };
    for run in [
        r#"{argv: [bash, -c, "$A"], env: {A: "${args.x}"}}"#,
        r#"{argv: [bash, -c, 'eval "$A"'], env: {A: "${args.x}"}}"#,
        r#"{argv: [timeout, "5", sh, -c, '[[ $A -gt 1 ]]'], env: {A: "${args.x}"}}"#,
        r#"{shell: sh, text: 'eval "$A"', env: {A: "${args.x}"}}"#,
    ] {
        assert_eq!(errors(run), 1, "{run}");
    }
    for run in [
        r#"{argv: [bash, -c, 'tail "$A"'], env: {A: "${args.x}"}}"#,
        r#"{shell: sh, text: 'tail "$A"', env: {A: "${args.x}"}}"#,
        r#"{shell: sh, text: 'eval "$A"', vars: {A: "${args.x}"}, unsafe_argv: only our own jobs send it}"#,
    ] {
        assert_eq!(errors(run), 0, "{run}");
    }
}

#[test]
fn the_reader_accepts_any_text() {
    for text in [
        "$",
        "${",
        "\"",
        "'",
        "`",
        "$((",
        "$(",
        "<<",
        "<<E",
        "\\",
        "${X",
        "é$X€",
        ")}))",
        "[[",
        "case",
        "case $X in",
        "f() {",
        "((",
        "a=(",
        "a[",
        "<(",
        "$(<<E\n)",
        "[[ `",
        "{ ( } )",
        "esac",
        "${X[",
        "${X:",
        "for",
        "function",
        "<<<é",
        "2>",
        ">&",
        "$[",
        "$'\\",
        "a[$X",
        "`$(`",
        "\"$(\"",
        "${X@",
    ] {
        let _ = said("{type: string}", text);
        let _ = said("{type: string}", &format!("echo \"$X\"; {text}"));
    }
    let nested = "$(".repeat(3000);
    let _ = said("{type: string}", &format!("echo {nested}"));
    let nested = "${a:-".repeat(3000);
    let _ = said("{type: string}", &format!("echo {nested}"));
    let nested = "((".repeat(3000);
    let _ = said("{type: string}", &format!("echo $(({nested}"));
}

/// What is said about slips in a text, each with the text that it is about.
fn slips(shell: &str, text: &str) -> Vec<String> {
    let quoted = serde_json::Value::String(text.to_owned());
    let manifest = format!(
        "toolcrib: 1\ntools:\n  - name: t\n    description: Do something that is useful. Read-only.\n    \
         annotations: {{read_only: true}}\n    run: {{shell: {shell}, text: {quoted}}}\n"
    );
    let linted = lint_with("t.yaml", &manifest, &LintContext::default(), &|_| Vec::new());
    let found = linted.diagnostics.into_iter().filter(|found| found.code == "shell-mistake");
    found.map(|found| manifest[found.span].to_owned()).collect()
}

#[test]
fn slips_in_a_text_are_reported_where_they_are() {
    for (text, place) in [
        ("n = 5; echo \"$n\"", "n ="),
        ("[ 1 > 5 ] && echo big", "5"),
        ("echo \"$1\"", "$1"),
        ("if [ -f a ]; then cat a", "if"),
        ("for i in a b; do echo $i", "do"),
        ("f() { echo a", "{"),
        ("case a in a) ls;;", "case"),
        ("echo 'a b", "'a"),
        ("set -o pipefail; ls", "set -o pipefail"),
        ("[[ a == b ]] || ls", "[["),
        ("a=(1 2); ls", "1"),
        ("source ./env.sh", "source"),
        ("cat <<< abc", "abc"),
        ("diff <(ls a) b", "<(ls a)"),
        ("echo ${HOME^^}", "${HOME^^}"),
        ("((n > 3)) && ls", "(("),
        ("read answer; echo \"$answer\"", "read"),
        ("rm -f '*.log'", "'*.log'"),
        ("wc -l '/var/log/*.log' a", "'/var/log/*.log'"),
    ] {
        assert_eq!(slips("sh", text), [place], "{text}");
    }
    for text in [
        "set -o pipefail; ls",
        "[[ a == b ]] || ls",
        "a=(1 2); echo \"${a[0]}\"",
        "diff <(ls a) b <<< x",
        "if a; then b; elif c; then d; else e; fi; for i in 1 2; do ls; done; case a in b) ls;; esac",
        "f() { ls \"$1\"; }; f a; { ls; }",
        "set -- a b; echo \"$1\"",
        "echo $((1 + 2)) \"$(echo \"it's\")\" `date`",
        "cat <<E\nit's \"a\nE\nls",
        "while read -r l; do echo \"$l\"; done < f",
        "expr 1 = 2; test a = b; [ a = b ]",
        "echo a | while read -r l; do echo \"$l\"; done",
        "read -r first < f; echo \"$first\"",
        "ls -I \"*.bak\"; grep \"a*b\" f; find . -name '*.log'",
        "ls \"$HOME\"/*.log; echo \"*\"",
    ] {
        assert_eq!(slips("bash", text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn commands_of_shells_are_no_programs() {
    let codes = |run: &str| {
        said_of("{type: string}", run).into_iter().map(|(_, code)| code).collect::<Vec<_>>()
    };
    for run in ["{argv: [cd, /srv]}", "{argv: [export, A=b]}", "{argv: [LANG=C, sort, f]}"] {
        assert!(codes(run).iter().any(|code| code == "shell-mistake"), "{run}");
    }
    assert!(!codes("{argv: [sort, a=b]}").iter().any(|code| code == "shell-mistake"));
}
