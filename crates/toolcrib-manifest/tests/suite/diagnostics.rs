//! Every diagnostic, as people see it: a small broken manifest each, and one snapshot each.

use toolcrib_manifest::load_str;

/// A manifest with one tool that has these lines beside its name and description.
pub(crate) fn tool(lines: &str) -> String {
    let mut text =
        "toolcrib: 1\ntools:\n  - name: tail\n    description: Read a file.\n".to_owned();
    for line in lines.lines() {
        text.push_str("    ");
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// Like [`tool`], with a command that uses the argument `path`.
fn tail(lines: &str) -> String {
    tool(&format!(
        "input: {{properties: {{path: {{type: string}}}}, required: [path]}}\n\
         run: {{argv: [tail, \"${{args.path}}\"]}}\n{lines}"
    ))
}

/// Like [`tool`], with these lines inside `run`.
fn run(lines: &str) -> String {
    let lines = lines.replace('\n', "\n  ");
    tool(&format!(
        "input:\n  properties:\n    path: {{type: string}}\n    names: {{type: array}}\nrun:\n  {lines}"
    ))
}

/// Checks the codes and the picture of a broken file.
#[track_caller]
pub(crate) fn shows(case: &str, file: &str, text: &str, codes: &[&str]) {
    let loaded = load_str(file, text);
    let found: Vec<&str> = loaded.diagnostics.iter().map(|found| found.code).collect();
    let pictures: Vec<String> =
        loaded.diagnostics.iter().map(|found| found.render(file, text, false)).collect();
    let pictures = pictures.join("\n\n");
    assert_eq!(found, codes, "{case}\n{pictures}");
    let nothing = loaded.declarations.is_empty() && loaded.upstreams.is_empty();
    assert_eq!(nothing, loaded.has_errors(), "{case}");
    crate::schemas::agrees(file, text, &loaded);
    insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::assert_snapshot!(case, pictures);
    });
}

#[track_caller]
fn yaml(case: &str, text: &str, codes: &[&str]) {
    shows(case, "tail.yaml", text, codes);
}

#[test]
fn yaml_that_cannot_be_read() {
    yaml("syntax_tab", "toolcrib: 1\ntools:\n\t- name: x\n", &["syntax"]);
    yaml("syntax_quote", "toolcrib: 1\nowner: \"team\ntools: []\n", &["syntax"]);
    yaml("syntax_bracket", "toolcrib: 1\ntools: [{name: x]\n", &["syntax"]);
    yaml("syntax_colon", "toolcrib: 1\nowner: team: ops\n", &["syntax"]);
    yaml("syntax_indent", "toolcrib: 1\n  owner: x\ntools: []\n", &["syntax"]);
    yaml("syntax_backtick", "toolcrib: 1\nowner: `x`\n", &["syntax"]);
    yaml("syntax_second_document", "toolcrib: 1\ntools: []\n---\na: 1\n", &["syntax"]);
    yaml("unknown_anchor", "toolcrib: 1\nowner: *team\ntools: []\n", &["unknown-anchor"]);
    yaml("unknown_tag", "toolcrib: !!int 1\ntools: []\n", &["unknown-tag"]);
    yaml("bad_key", "toolcrib: 1\n[a, b]: 2\ntools: []\n", &["bad-key"]);
    let deep = format!("toolcrib: 1\nx-a: {}{}\n", "[".repeat(40), "]".repeat(40));
    yaml("too_complex", &deep, &["too-complex"]);
}

#[test]
fn toml_that_cannot_be_read() {
    shows("toml_syntax", "t.toml", "toolcrib = 1\nowner = team\ntools = []\n", &["syntax"]);
    shows(
        "toml_duplicate",
        "t.toml",
        "toolcrib = 1\ntoolcrib = 1\ntools = []\n",
        &["duplicate-key"],
    );
    let text = "toolcrib = 1\ntools = []\nx-date = 2024-01-02\n";
    shows("toml_date", "t.toml", text, &["ambiguous-scalar"]);
}

#[test]
fn keys_and_types() {
    yaml(
        "duplicate_keys_all_at_once",
        "toolcrib: 1\nowner: a\nowner: b\ntools: []\nowner: c\ntools: []\n",
        &["duplicate-key", "duplicate-key", "duplicate-key"],
    );
    yaml("unknown_key", &tail("anotations: {read_only: true}"), &["unknown-key"]);
    yaml("unknown_key_instead", &tail("timeout: 5s"), &["unknown-key"]);
    yaml(
        "missing_keys",
        "tools:\n  - title: x\n",
        &["missing-key", "missing-key", "missing-key", "missing-key"],
    );
    yaml("wrong_type_boolean", &tail("annotations: {read_only: yes}"), &["wrong-type"]);
    yaml("wrong_type_text", &tail("version: 1.10"), &["wrong-type"]);
    yaml("wrong_type_duration", &tail("limits: {timeout: 30}"), &["wrong-type"]);
    yaml("wrong_type_size", &tail("limits: {output: 64K}"), &["wrong-type"]);
    yaml("wrong_type_choice", &tail("output: {format: jsn}"), &["wrong-type"]);
    yaml("wrong_type_list", &tail("tags: prod"), &["wrong-type"]);
    yaml("wrong_type_empty", "toolcrib: 1\ntools:\n", &["wrong-type"]);
    yaml("wrong_type_root", "just text\n", &["wrong-type"]);
    yaml(
        "out_of_range_timeout",
        &tail("limits: {timeout: none, output: 2MiB}"),
        &["out-of-range", "out-of-range"],
    );
    yaml(
        "out_of_range_exit",
        &run("argv: [tail, \"${args.path}\", {each: names}]\nok_exit: [0, 256]"),
        &["out-of-range"],
    );
}

#[test]
fn versions() {
    yaml("newer_format", "toolcrib: 2\ntools:\n  - nonsense: 1\n", &["newer-format"]);
    yaml("requires_newer", "toolcrib: 1\nrequires: '>=99.1'\ntools: []\n", &["requires-newer"]);
    yaml("bad_requirement", "toolcrib: 1\nrequires: latest\ntools: []\n", &["bad-requirement"]);
}

#[test]
fn confinement() {
    for (case, sandbox, codes) in [
        ("sandbox_profile", "{profile: workspace-net}", vec!["wrong-type"]),
        ("sandbox_text", "pure", vec!["wrong-type"]),
        ("sandbox_require", "{require: yes}", vec!["wrong-type"]),
        ("sandbox_key", "{profile: pure, required: true}", vec!["unknown-key"]),
        (
            "sandbox_grants",
            "{read: [\"\", \"${args.path}\"], write: [\"*.log\"]}",
            vec!["bad-grant", "bad-grant", "bad-grant"],
        ),
        (
            "sandbox_required_of_trusted",
            "{profile: trusted, require: required}",
            vec!["nothing-required"],
        ),
        ("sandbox_grant_to_trusted", "{profile: trusted, read: [/srv]}", vec!["idle-grant"]),
    ] {
        yaml(case, &tail(&format!("sandbox: {sandbox}")), &codes);
    }
    let request = "http: {url: \"https://a.example/\"}\nsandbox: {profile: pure}";
    yaml("sandbox_of_request", &tool(request), &["not-for-http"]);
}

#[test]
fn names_and_descriptions() {
    yaml("bad_name", &tail("").replace("name: tail", "name: tail the log"), &["bad-name"]);
    yaml("bad_namespace", "toolcrib: 1\nnamespace: k8s/prod\ntools: []\n", &["bad-namespace"]);
    let long = tail("").replace("tools:", &format!("namespace: {}\ntools:", "n".repeat(60)));
    yaml("name_too_long", &long, &["name-too-long"]);
    yaml("bad_description", &tail("").replace("Read a file.", "'  '"), &["bad-description"]);
    let twice = tail("") + "  - name: tail\n    description: Again.\n    run: {argv: [ls]}\n";
    yaml("duplicate_tool", &twice, &["duplicate-tool"]);
}

#[test]
fn literals_that_look_like_something_else() {
    let text = "input:
  properties:
    answer: {enum: [yes, no, maybe]}
    code: {type: string, default: 012}
    id: {type: string, default: 1234567890123456789012}
    big: {const: 1e999}
    time: {type: string, default: 12:30:45}
    nothing: {default: ~}
run: {argv: [x, \"${args.answer}${args.code}${args.id}${args.big}${args.time}${args.nothing}\"]}
";
    yaml("ambiguous_scalar", &tool(text), &["ambiguous-scalar"; 7]);
    let text = "tests:\n  - {name: t, args: {path: off}, expect: {}}";
    yaml("ambiguous_scalar_in_a_test", &tail(text), &["ambiguous-scalar"]);
}

#[test]
fn schemas() {
    let input = |schema: &str| {
        tool(&format!(
            "input:\n  properties:\n    path: {schema}\nrun: {{argv: [x, \"${{args.path}}\"]}}"
        ))
    };
    yaml("bad_schema_type", &input("{type: str}"), &["bad-schema"]);
    yaml("bad_schema_required", &input("{type: string, required: true}"), &["bad-schema"]);
    yaml("bad_schema_value", &input("{type: string, maxLength: many}"), &["bad-schema"]);
    yaml("bad_schema_ref", &input("{$ref: '#/$defs/pth'}"), &["bad-schema"]);
    yaml("bad_schema_remote", &input("{$ref: 'https://example.com/s.json'}"), &["bad-schema"]);
    yaml("bad_schema_root", &tool("input: {type: array}\nrun: {argv: [x]}"), &["bad-schema"]);
    yaml("bad_pattern", &input("{type: string, pattern: '^(?!-)[a-z'}"), &["bad-pattern"]);
    yaml("bad_default", &input("{type: integer, maximum: 5, default: 9}"), &["bad-default"]);
    yaml("unknown_keyword", &input("{type: string, maxlength: 5}"), &["unknown-keyword"]);
    yaml(
        "misplaced_argument",
        &tool("input:\n  path: {type: string}\n  lines: {type: integer}\nrun: {argv: [x]}"),
        &["misplaced-argument", "misplaced-argument"],
    );
    yaml("bad_pattern_redact", &tail("output: {redact: ['(']}"), &["bad-pattern"]);
}

#[test]
fn references() {
    yaml(
        "undeclared_argument",
        &run("argv: [tail, \"${args.pth}\", {each: name}]"),
        &["undeclared-argument", "undeclared-argument"],
    );
    yaml(
        "undeclared_context",
        &tail("").replace("${args.path}", "${args.path}${ctx.tennant}${ctx.cluster}"),
        &["undeclared-context", "undeclared-context"],
    );
    yaml(
        "bad_reference",
        &run("argv: [tail, \"${path} ${args.} ${args.path\"]"),
        &["bad-reference", "bad-reference", "bad-reference"],
    );
    yaml(
        "bad_reference_bare",
        &run("argv: [tail, \"${args.path}\", {each: \"${args.names}\"}]"),
        &["bad-reference"],
    );
    yaml("unused_argument", &run("argv: [tail, \"${args.path}\"]"), &["unused-argument"]);
    yaml("empty_as_absent", &tail("empty_as_absent: [paht]"), &["undeclared-argument"]);
    let by_day = |lines: &str| {
        tool(&format!(
            "input: {{properties: {{day: {{type: string, format: date}}}}}}\n\
             run: {{argv: [tail, \"${{args.day}}\"]}}\nexamples: [{{day: tomorrow}}]\n{lines}"
        ))
    };
    yaml("asserted_format", &by_day("assert_formats: true"), &["bad-example"]);
    assert!(load_str("tail.yaml", &by_day("")).diagnostics.is_empty(), "a format annotates");
    yaml("shadowed_argument", &tail("context: {path: {from: ctx.path}}"), &["shadowed-argument"]);
    yaml("context_without_from", &tail("context: {cluster: {enum: [dev]}}"), &["missing-key"]);
    yaml("context_from_args", &tail("context: {cluster: {from: args.path}}"), &["bad-reference"]);
}

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
fn tests_and_examples() {
    yaml(
        "bad_example",
        &tail("examples: [{path: 5}, {pth: x}]"),
        &["bad-example", "bad-example", "bad-example"],
    );
    yaml(
        "test_arguments",
        &tail("tests: [{name: t, args: {path: 5}, expect: {}}]"),
        &["test-arguments"],
    );
    yaml("test_not_an_object", &tail("tests: [{name: t, args: [x], expect: {}}]"), &["wrong-type"]);
    yaml(
        "test_error_kind",
        &tail("tests: [{name: t, expect: {error: invalid_arg}}]"),
        &["wrong-type"],
    );
    let twice = "tests:\n  - {name: t, args: {path: a}, expect: {}}\n  - {name: t, args: {path: b}, expect: {}}";
    yaml("duplicate_test", &tail(twice), &["duplicate-test"]);
}

#[test]
fn a_test_that_expects_a_refusal_may_have_wrong_arguments() {
    let text = tail("tests: [{name: t, args: {path: 5}, expect: {error: invalid_args}}]");
    assert_eq!(load_str("t.yaml", &text).diagnostics, []);
}

#[test]
fn the_machine_readable_form_has_both_ends_of_the_place() {
    let text = "toolcrib: 1\ntöols: []\ntools: []\n";
    let loaded = load_str("t.yaml", text);
    assert_eq!(
        loaded.diagnostics[0].to_value("t.yaml", text),
        serde_json::json!({
            "file": "t.yaml",
            "line": 2,
            "column": 1,
            "end_line": 2,
            "end_column": 6,
            "severity": "error",
            "code": "unknown-key",
            "message": "a manifest has no key `töols`",
            "help": "did you mean `tools`?",
        })
    );
}

#[test]
fn answers_that_must_not_be_kept_and_calls_that_must_not_be_repeated() {
    yaml("uncacheable", &tail("cache: {ttl: 5s}"), &["uncacheable-tool"]);
    yaml(
        "uncacheable_said",
        &tail("annotations: {read_only: true}\ncache: {ttl: 5s}"),
        &["uncacheable-tool"],
    );
    yaml("session_replay_of_a_writer", &tail("dedupe: session"), &["uncacheable-tool"]);
    yaml(
        "unrepeatable",
        &tail("annotations: {idempotent: false}\nretry: {max: 2}"),
        &["unrepeatable-tool"],
    );
    yaml(
        "read_only_writes",
        &tail("annotations: {read_only: true}\nresources: {reads: [logs], writes: [logs]}"),
        &["read-only-writes"],
    );
    yaml("bad_resource", &tail("resources: {reads: ['']}"), &["bad-resource"]);
    yaml(
        "idle_approval",
        &tail("annotations: {destructive: false}\napproval: destructive"),
        &["idle-approval"],
    );
    yaml(
        "retried_success",
        &run("argv: [tail, \"${args.path}\", {each: names}]\nretry_exit: [7, 0]"),
        &["retried-success"],
    );
}

#[test]
fn policies_and_limits_of_the_wrong_shape() {
    const REPEATABLE: &str = "annotations: {read_only: true, idempotent: true}";
    let tail = |lines: &str| tail(&format!("{REPEATABLE}\n{lines}"));
    yaml("wrong_type_cache", &tail("cache: 5s"), &["wrong-type"]);
    yaml("wrong_type_ttl", &tail("cache: {ttl: 5}"), &["wrong-type"]);
    yaml(
        "out_of_range_ttl",
        &tail("cache: {ttl: none}\nretry: {max: 0}"),
        &["out-of-range", "out-of-range"],
    );
    yaml("out_of_range_backoff", &tail("retry: {max: 2, backoff: 5m}"), &["out-of-range"]);
    yaml("retry_without_max", &tail("retry: {backoff: 1s}"), &["missing-key"]);
    yaml("unknown_key_retry", &tail("retry: {max: 2, exit: [7]}"), &["unknown-key"]);
    yaml("unknown_key_cache", &tail("cache: {tll: 5s}"), &["unknown-key"]);
    yaml("unknown_key_concurrent", &tail("max_concurrent: 2"), &["unknown-key"]);
    yaml("wrong_type_dedupe", &tail("dedupe: sesion"), &["wrong-type"]);
    yaml("wrong_type_approval", &tail("approval: true"), &["wrong-type"]);
    yaml("wrong_type_resources", &tail("resources: [logs]"), &["wrong-type"]);
    yaml("wrong_type_rate", &tail("limits: {rate: 30/minute}"), &["wrong-type"]);
    yaml("out_of_range_concurrent", &tail("limits: {concurrent: 0}"), &["out-of-range"]);
}

#[test]
fn defaults_are_checked_though_no_tool_uses_them() {
    let text = "toolcrib: 1
defaults: {concurrent: 0, cache: {ttl: 0s}, limits: {rate: 1/s}, aproval: always}
tools: []
";
    yaml("defaults", text, &["out-of-range", "out-of-range", "unknown-key", "unknown-key"]);
}

#[test]
fn tools_that_the_client_runs() {
    let ask = "input: {properties: {filter: {type: string}}}\nclient: true";
    yaml("client_and_run", &tail("client: true"), &["client-and-run"]);
    yaml(
        "not_for_client",
        &tool(&format!("{ask}\ncache: {{}}\ncwd: /\nlimits: {{timeout: 5m, rate: 1/s}}")),
        &["not-for-client", "not-for-client", "not-for-client"],
    );
    yaml(
        "test_of_client",
        &tool(&format!(
            "{ask}\ntests:\n  - {{name: a, expect: {{}}}}\n  - {{name: b, expect: {{error: invalid_args, argv: []}}}}"
        )),
        &["test-of-client", "test-of-client"],
    );
    yaml("out_of_range_client", &tool("client: true\nlimits: {timeout: 0s}"), &["out-of-range"]);
    yaml("wrong_type_client", &tool("client: yes"), &["wrong-type"]);
    yaml("client_false", &tool("client: false"), &["missing-key"]);
    yaml("bad_client", &tool("client: {kind: regex}"), &["bad-client"]);
    yaml(
        "bad_client_input",
        &tool("input: {properties: {filter: {type: string}}}\nclient: {kind: text, pattern: a}"),
        &["bad-client", "bad-client"],
    );
}

#[test]
fn ways_to_run_that_do_not_go_together() {
    yaml(
        "two_ways_to_run",
        &tool("run: {argv: [df], script: ./df.sh, text: 'df', idle: 5m}"),
        &["two-ways-to-run", "not-for-this-run", "not-for-this-run"],
    );
    yaml("no_way_to_run", &tool("run: {env: {A: b}}"), &["missing-key"]);
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
        &["evaluated-variable", "evaluated-variable", "evaluated-variable"],
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

#[test]
fn a_problem_is_folded_to_the_width_of_the_screen() {
    let text = "toolcrib: 1\ntools:\n  - name: pods\n    description: List the pods of a namespace. Read-only.\n    \
                run: {argv: [kubectl, get, pods]}\n";
    let found = toolcrib_manifest::lint_str("pods.yaml", text, &|_| Vec::new()).diagnostics;
    let home = found.iter().find(|found| found.code == "needs-home").expect("it is found");
    let whole = home.render("pods.yaml", text, false);
    let folded = home.render_within("pods.yaml", text, false, 60);
    assert!(whole.lines().any(|line| line.chars().count() > 100), "{whole}");
    assert!(folded.lines().all(|line| line.chars().count() <= 60), "{folded}");
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&folded), words(&whole), "nothing is lost");
}
