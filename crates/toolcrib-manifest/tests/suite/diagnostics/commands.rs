//! Commands, scripts and workers whose meaning a model could change.

use toolcrib_manifest::load_str;

use super::{run, tail, tool, yaml};

#[test]
fn commands_a_model_could_turn() {
    yaml(
        "secret_in_argv",
        &tail("").replace("${args.path}", "${args.path}${secret.token}"),
        &["secret-in-argv"],
    );
    yaml(
        "model_chosen_program",
        &run("argv: [\"${args.path}\", {each: names}]"),
        &["model-chosen-program"],
    );
    yaml("empty_argv", &tool("run: {argv: []}"), &["empty-argv"]);
    yaml(
        "list_as_argument",
        &run("argv: [tail, \"${args.names}\", \"${args.path}\"]"),
        &["list-as-argument"],
    );
    yaml("each_of_one", &run("argv: [tail, {each: path}, {each: names}]"), &["each-of-one"]);
    yaml(
        "bad_argv",
        &run("argv: [tail, \"${args.path}\", {each: names}, {if: path}]"),
        &["bad-argv"],
    );
    yaml(
        "number_in_argv",
        &run("argv: [tail, -n, 5, \"${args.path}\", {each: names}]"),
        &["wrong-type"],
    );
    yaml(
        "spliced_script",
        &run("argv: [sh, -ec, \"tail ${args.path}\", sh, {each: names}]"),
        &["spliced-script"],
    );
    yaml(
        "spliced_script_behind_a_wrapper",
        &run(
            "argv: [timeout, '5', /usr/bin/python3.12, -c, \"print('${args.path}')\", {each: names}]",
        ),
        &["spliced-script"],
    );
    let argv = "argv: [tail, {each: names}]\n";
    yaml(
        "reference_in_env_name",
        &run(&format!("{argv}env: {{\"${{args.path}}\": x}}\nstdin: \"${{args.path}}\"")),
        &["reference-in-env-name"],
    );
    yaml(
        "dangerous_env",
        &run(&format!("{argv}env: {{LD_PRELOAD: \"${{args.path}}\"}}")),
        &["dangerous-env"],
    );
    yaml(
        "bad_env_name",
        &run(&format!("{argv}stdin: \"${{args.path}}\"\nenv: {{A-B: x}}")),
        &["bad-env-name"],
    );
}

#[test]
fn no_value_reaches_a_programs_text_by_any_door() {
    let code = |run_lines: &str| {
        let loaded = load_str("t.yaml", &run(run_lines));
        loaded.diagnostics.iter().any(|found| found.code == "spliced-script")
    };
    let path = "\"${args.path}\"";
    for argv in [
        "sh, -c, P",
        "bash, -o, pipefail, -c, P",
        "bash, -euo, pipefail, -c, P",
        "bash, -c, --, P",
        "env, bash, -lc, P",
        "busybox, sh, -c, P",
        "su, root, -c, P",
        "su, '-', root, -c, P",
        "python3, -W, ignore, -c, P",
        "perl, -ne, P",
        "node, --eval, P",
        "node, \"--eval=${args.path}\"",
        "python3, \"-cprint(${args.path})\"",
        "find, ., -exec, sh, -c, P, ;",
        "/bin/sh, -c, \"x ${ctx.user}\"",
        "sh, {if: path, then: [-c, P]}",
        "python3, -O, -c, P",
        "pwsh, -Command, P",
    ] {
        let argv = argv.replace('P', path).replace(", ;", ", ';'");
        assert!(code(&format!("argv: [{argv}]")), "{argv} should be refused");
    }
    for argv in ["sh", "bash, '-'", "sh, -s", "python3", "sh, -e"] {
        assert!(code(&format!("argv: [{argv}]\nstdin: {path}")), "{argv} reads a program");
    }
    for argv in [
        "sh, -c, 'cat \"$1\"', sh, P",
        "sh, script.sh, -c, P",
        "python3, tool.py, -c, P",
        "grep, -c, P",
        "bash, -o, pipefail, x.sh, P",
    ] {
        let argv = argv.replace('P', path);
        assert!(!code(&format!("argv: [{argv}]\nstdin: {path}")), "{argv} is safe");
    }
}

#[test]
fn scripts_that_a_model_could_choose() {
    yaml(
        "script_chosen",
        &run("script: ./${args.path}\nargs: [\"${args.path}\", {each: names}]"),
        &["model-chosen-program"],
    );
    yaml(
        "script_argument",
        &run("script: ./rotate.sh\nargs: [\"${secret.key}\", \"${args.names}\", {each: path}]"),
        &["secret-in-argv", "list-as-argument", "each-of-one"],
    );
}

#[test]
fn values_in_a_shells_text() {
    yaml(
        "shell_spliced",
        &run(
            "shell: bash\ntext: |\n  set -eu\n  tail ${args.path} > ${ctx.user}.log\nvars: {NAMES: \"${args.names}\"}",
        ),
        &["spliced-script", "spliced-script", "unused-variable"],
    );
    yaml(
        "shell_variables",
        &run(
            "shell: sh\ntext: 'tail \"$FILE\"'\nenv: {FILE: a}\nvars: {FILE: \"${args.path}\", IFS: x, 1ST: x}",
        ),
        &["unused-argument", "duplicate-variable", "dangerous-env", "bad-env-name"],
    );
    yaml(
        "shell_unquoted",
        &run(
            "shell: bash\ntext: |\n  # $FILE is quoted in comments only\n  grep -- \"$PATTERN\" $FILE ${FILE%.gz}.1\n  echo \"$(wc -l < $FILE) lines\"\nvars: {FILE: \"${args.path}\", PATTERN: \"${args.names}\"}",
        ),
        &["unquoted-variable", "unquoted-variable", "unquoted-variable"],
    );
    yaml(
        "shell_evaluated",
        &run(
            "shell: bash\ntext: |\n  eval \"$CODE\"\n  echo $((COUNT + 1))\n  sh -c \"$USER_CODE\"\nvars: {CODE: \"${args.path}\", COUNT: \"${args.names}\", USER_CODE: \"${ctx.user}\"}",
        ),
        &["evaluated-variable", "evaluated-variable", "spliced-script"],
    );
    yaml("shell_unknown", &tool("run: {shell: fish, text: df}"), &["wrong-type"]);
    yaml("shell_without_text", &tool("run: {shell: bash}"), &["missing-key"]);
    yaml("shell_empty", &tool("run: {shell: bash, text: ' '}"), &["bad-script"]);
}

#[test]
fn workers_that_depend_on_a_call() {
    yaml(
        "worker_of_a_call",
        &run(
            "worker: [python3, \"${args.path}\"]\nenv: {A: \"${ctx.user}\", B: \"${secret.b}\"}\nprotocol: xml\nidle: 0s\nmax_calls: 0",
        ),
        &[
            "reference-in-worker",
            "reference-in-worker",
            "wrong-type",
            "out-of-range",
            "out-of-range",
        ],
    );
    yaml(
        "worker_of_nothing",
        &tool("run: {worker: []}\ncwd: /tmp\noutput: {format: json, redact: [x]}"),
        &["empty-argv", "not-for-this-run"],
    );
    yaml(
        "worker_output",
        &tool("run: {worker: [cat], ok_exit: [1], stdin: x}\noutput: {keep: head}"),
        &["not-for-this-run", "not-for-this-run", "not-for-this-run"],
    );
}
