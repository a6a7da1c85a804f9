//! What a check says about programs that may fail on this machine, or without a grant.

use toolcrib_manifest::{LintContext, Severity, lint_with};

/// What a check says about the `run` and the `sandbox` of a tool, hints left out.
pub(super) fn said(known: &LintContext, run: &str) -> Vec<String> {
    let text = format!(
        "toolcrib: 1\ntools:\n  - name: t\n    description: Do something that is useful. Read-only.\n    \
         annotations: {{read_only: true}}\n    {run}\n"
    );
    let found = lint_with("t.yaml", &text, known, &|_| Vec::new()).diagnostics.into_iter();
    let found = found.filter(|found| found.severity != Severity::Hint);
    found.map(|found| format!("{} {}", found.code, found.help.unwrap_or_default())).collect()
}

#[test]
fn a_file_that_an_interpreter_runs_is_looked_for_in_the_workspace() {
    let folder = std::env::temp_dir().join(format!("toolcrib-argv-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("sub")).unwrap();
    std::fs::write(folder.join("sub/report.py"), "").unwrap();
    let known = LintContext::default().workspace(&folder);
    for (run, wanted) in [
        ("run: {argv: [python3, ./sub/report.py]}", None),
        ("cwd: sub\n    run: {argv: [timeout, \"5\", python3, report.py]}", None),
        ("run: {argv: [python3, -m, http.server]}", None),
        ("run: {argv: [python3, ./sub/reprot.py]}", Some("did you mean `report.py`?")),
        ("run: {argv: [timeout, \"5\", python3, report.py]}", Some("put it into")),
    ] {
        let found = said(&known, run);
        assert_eq!(found.len(), usize::from(wanted.is_some()), "{run}: {found:?}");
        if let Some(wanted) = wanted {
            assert!(
                found[0].starts_with("missing-script") && found[0].contains(wanted),
                "{found:?}"
            );
        }
        assert_eq!(said(&LintContext::default(), run), Vec::<String>::new(), "{run}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_missing_program_file_of_an_upstream_is_reported_with_the_place_where_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().join("workspace");
    let manifests = folder.path().join("tools.d");
    std::fs::create_dir_all(&workspace).unwrap();
    std::fs::create_dir_all(&manifests).unwrap();
    std::fs::write(manifests.join("tickets.py"), "").unwrap();
    let file = manifests.join("t.yaml").display().to_string();
    let known = LintContext::default().workspace(&workspace);
    let found = |lines: &str| {
        let text = format!("toolcrib: 1\nupstream:\n  - name: tix\n{lines}");
        lint_with(&file, &text, &known, &|_| Vec::new()).diagnostics
    };
    let beside = found("    command: [python3, tickets.py]\n");
    assert_eq!(beside.len(), 1, "{beside:?}");
    assert_eq!(beside[0].code, "missing-script");
    assert!(beside[0].message.contains("workspace/tickets.py"), "{beside:?}");
    let help = beside[0].help.as_deref().unwrap_or_default();
    assert!(
        help.contains("tools.d/tickets.py` exists") && help.contains("cwd: ../tools.d"),
        "{help}"
    );
    // One finding with the right folder, also while the workspace does not exist yet.
    std::fs::remove_dir(&workspace).unwrap();
    let elsewhere = found("    command: [python3, tickets.py]\n    cwd: tools.d\n");
    assert_eq!(elsewhere.len(), 1, "{elsewhere:?}");
    let help = elsewhere[0].help.as_deref().unwrap_or_default();
    assert!(help.contains("cwd: ../tools.d"), "{help}");
    let right = found("    command: [python3, tickets.py]\n    cwd: ../tools.d\n");
    assert!(right.is_empty(), "the server makes the workspace: {right:?}");
    std::fs::create_dir(&workspace).unwrap();
    for fine in [
        "    command: [python3, tickets.py]\n    cwd: ../tools.d\n",
        "    command: [python3, tickets.py]\n    sandbox: {profile: trusted}\n",
        "    command: [python3, -m, tickets]\n",
    ] {
        let found = found(fine);
        assert!(found.iter().all(|found| found.code != "missing-script"), "{fine}: {found:?}");
    }
    let nowhere = found("    command: [python3, ./nope/tickets.py]\n");
    assert_eq!(nowhere.len(), 1, "{nowhere:?}");
    assert!(nowhere[0].help.as_deref().unwrap_or_default().contains("relative to `cwd`"));
}

#[test]
fn what_makes_a_tool_unavailable_on_this_machine_is_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("sub")).unwrap();
    std::fs::write(folder.path().join("right.sh"), "#!/bin/sh\n").unwrap();
    std::fs::write(folder.path().join("headless.py"), "print(1)\n").unwrap();
    std::fs::write(folder.path().join("program"), b"\x7fELF\0\0").unwrap();
    let script = |name: &str| format!("run: {{script: {}}}", folder.path().join(name).display());
    let known =
        LintContext::default().workspace(folder.path()).files(true).secrets(Vec::<String>::new());
    for (run, wanted) in [
        (script("right.sh"), ""),
        (script("program"), ""),
        (script("headless.py"), "unstartable-script|#!/usr/bin/env python3"),
        ("cwd: sub\n    run: {argv: [uptime]}".to_owned(), ""),
        ("cwd: nope\n    run: {argv: [uptime]}".to_owned(), "missing-folder|mkdir -p "),
        (
            "run: {argv: [uptime], env: {A: \"${secret.x}\"}}".to_owned(),
            "unknown-secret|declare it under `secrets` in config.yml",
        ),
    ] {
        let found = said(&known, &run);
        let Some((code, help)) = wanted.split_once('|') else {
            assert_eq!(found, Vec::<String>::new(), "{run}");
            continue;
        };
        assert!(
            found.len() == 1 && found[0].starts_with(code) && found[0].contains(help),
            "{run}: {found:?}"
        );
    }
}

#[test]
fn operators_behind_the_text_of_a_shell_are_arguments() {
    for run in
        ["run: {argv: [sh, -c, uptime, '&&', date]}", "run: {argv: [bash, -c, uptime, '|', wc]}"]
    {
        let found = said(&LintContext::default(), run);
        assert!(found.iter().any(|one| one.starts_with("shell-syntax")), "{run}: {found:?}");
    }
    let right = "run: {argv: [sh, -c, 'uptime && date', sh, '-c']}";
    assert_eq!(said(&LintContext::default(), right), Vec::<String>::new());
}

#[test]
fn the_repair_of_ps_is_a_profile_and_not_a_grant() {
    for (program, key) in [
        ("ps", "profile: trusted"),
        ("pkill, sh", "profile: trusted"),
        ("pgrep, sh", "read: [/proc]"),
    ] {
        let found = said(&LintContext::default(), &format!("run: {{argv: [{program}]}}"));
        let told = found.iter().any(|one| one.starts_with("needs-processes") && one.contains(key));
        assert!(told, "{program}: {found:?}");
    }
}

#[test]
fn a_program_that_looks_at_all_processes_needs_them() {
    for run in [
        "run: {argv: [ps, aux]}",
        "run: {argv: [timeout, \"5\", pgrep, -l, sh]}",
        "run: {shell: sh, text: 'ps aux | wc -l'}",
        "run: {shell: sh, text: 'uptime; ps aux'}",
    ] {
        let found = said(&LintContext::default(), run);
        assert!(found.len() == 1 && found[0].starts_with("needs-processes"), "{run}: {found:?}");
        let granted = format!("{run}\n    sandbox: {{read: [/proc]}}");
        let is_ps = !run.contains("pgrep");
        assert_eq!(said(&LintContext::default(), &granted).len(), usize::from(is_ps), "{run}");
    }
    let other = "run: {shell: sh, text: 'echo \"a; ps aux\"; free'}";
    assert_eq!(said(&LintContext::default(), other), Vec::<String>::new());
}

#[test]
fn a_line_for_a_shell_is_told_to_be_one() {
    let wanted = "write `run: {shell: sh, text: 'du -sh | sort'}`";
    for run in ["run: {argv: \"du -sh | sort\"}", "run: {argv: [\"du -sh | sort\"]}"] {
        let found = said(&LintContext::default(), run);
        assert!(found.len() == 1 && found[0].contains(wanted), "{found:?}");
    }
}

#[test]
fn words_of_input_that_xargs_passes_on_are_no_options() {
    let input =
        "input: {properties: {x: {type: string}, w: {type: string, pattern: '^[a-z]+$'}}}\n    ";
    let codes = |run: &str| {
        let found = said(&LintContext::default(), &format!("{input}run: {run}"));
        found.iter().filter(|found| found.starts_with("option-from-input")).count()
    };
    for run in [
        "{argv: [xargs, wc, -l], stdin: '${args.x}'}",
        "{argv: [xargs, wc, -l], stdin: '${args}'}",
        "{argv: [xargs, -d, ',', rm, -f], stdin: 'a,${args.x}'}",
        "{argv: [xargs, '-I{}', rm, '{}'], stdin: '${args.x}'}",
        "{argv: [xargs, -a, '${args.x}', wc]}",
        "{argv: [timeout, '5', xargs, wc], stdin: '${args.x}'}",
    ] {
        assert_eq!(codes(run), 1, "{run}");
    }
    for run in [
        "{argv: [xargs, wc, -l, '--'], stdin: '${args.x}'}",
        "{argv: [xargs, wc, -l], stdin: '${args.w}'}",
        "{argv: [xargs, wc, -l], stdin: 'a b'}",
        "{argv: [xargs, -a, list, wc]}",
        "{argv: [xargs, echo], stdin: '${args.x}'}",
        "{argv: [wc, -l], stdin: '${args.x}'}",
    ] {
        assert_eq!(codes(run), 0, "{run}");
    }
}

#[test]
fn pagers_and_editors_have_no_terminal() {
    let codes = |run: &str| {
        let found = said(&LintContext::default(), &format!("run: {run}"));
        found.iter().filter(|found| found.starts_with("no-terminal")).count()
    };
    for run in ["{argv: [less, a.txt]}", "{argv: [timeout, '5', vim, a.txt]}", "{argv: [nano, a]}"]
    {
        assert_eq!(codes(run), 1, "{run}");
    }
    for run in [
        "{argv: [less, --version]}",
        "{argv: [vim, -es, -c, 'wq', a.txt]}",
        "{argv: [ed, a.txt], stdin: 'w'}",
        "{argv: [cat, less]}",
    ] {
        assert_eq!(codes(run), 0, "{run}");
    }
}

/// The warnings of a check about an argument vector with a value `X`, which has this schema.
fn warnings(schema: &str, argv: &str, more: &str) -> Vec<&'static str> {
    let manifest = format!(
        "toolcrib: 1\ntools:\n  - name: t\n    description: Do something that is useful. Read-only.\n    \
         annotations: {{read_only: true}}\n    input: {{properties: {{x: {schema}}}, required: [x]}}\n    \
         sandbox: {{profile: workspace+net}}\n    run: {{argv: {}{more}}}\n",
        argv.replace('X', "${args.x}")
    );
    let linted = lint_with("t.yaml", &manifest, &LintContext::default(), &|_| Vec::new());
    let codes = linted.diagnostics.into_iter().map(|found| found.code);
    codes
        .filter(|code| ["chosen-target", "evaluated-variable", "idle-unsafe-argv"].contains(code))
        .collect()
}

#[test]
fn a_value_that_chooses_what_is_reached_is_warned_of_unless_the_author_gives_a_reason() {
    let vectors = [
        "[curl, -fsS, '--', 'X']",
        "[ssh, 'X', uptime]",
        "[ssh, 'ops@X', uptime]",
        "[git, clone, 'X', folder]",
        "[git, ls-remote, '--', 'X']",
        "[docker, run, --rm, -v, 'X:/data:ro', alpine, ls, /data]",
        "[docker, run, --mount, 'type=bind,source=X,target=/data', alpine, ls, /data]",
    ];
    for argv in vectors {
        assert_eq!(warnings("{type: string}", argv, ""), ["chosen-target"], "{argv}");
        assert_eq!(warnings("{enum: [a, b]}", argv, ""), [""; 0], "{argv}");
        let reason = ", unsafe_argv: any of them is meant";
        assert_eq!(warnings("{type: string}", argv, reason), [""; 0], "{argv}");
    }
    for argv in ["[curl, -fsS, '--', 'X']", "[git, clone, '--', 'X']"] {
        let named = r"{type: string, pattern: '^https://git\.example\.com/'}";
        assert_eq!(warnings(named, argv, ""), [""; 0], "{argv}");
        for open in ["^https?://", "^https://.+$", r"^https://git\.example\.com"] {
            let open = format!("{{type: string, pattern: '{open}'}}");
            assert_eq!(warnings(&open, argv, ""), ["chosen-target"], "{argv} {open}");
        }
    }
    for argv in ["[git, clone, 'https://git.example.com/X', folder]", "[git, log, '--', 'X']"] {
        assert_eq!(warnings("{type: string}", argv, ""), [""; 0], "{argv}");
    }
    let idle = ", unsafe_argv: any of them is meant";
    assert_eq!(warnings("{type: string}", "[ls, '--', 'X']", idle), ["idle-unsafe-argv"]);
}

#[test]
fn names_of_files_in_the_text_of_a_shell_are_warned_of() {
    let spliced = "[find, '.', -name, 'X', -exec, sh, -c, 'wc -l {}', ';']";
    assert_eq!(
        warnings("{type: string, pattern: '^[a-z]+$'}", spliced, ""),
        ["evaluated-variable"]
    );
    let passed = "[find, '.', -name, 'X', -exec, sh, -c, 'wc -l \"$1\"', sh, '{}', ';']";
    assert_eq!(warnings("{type: string, pattern: '^[a-z]+$'}", passed, ""), [""; 0]);
}

#[test]
fn exit_codes_that_are_texts_are_told_to_be_numbers() {
    for (run, help) in [
        ("run: {argv: [date], ok_exit: \"0\"}", "write a list: ok_exit: [0]"),
        ("run: {argv: [date], ok_exit: '0, 2'}", "write a list: ok_exit: [0, 2]"),
        ("run: {argv: [date], ok_exit: [\"0\"]}", "write 0 without quotation marks"),
    ] {
        let found = said(&LintContext::default(), run);
        assert!(found.len() == 1 && found[0].contains(help), "{run}: {found:?}");
    }
}

#[test]
fn no_profile_is_answered_with_what_each_profile_allows() {
    for profile in ["none", "off", "false"] {
        let run = format!("run: {{argv: [date]}}\n    sandbox: {{profile: {profile}}}");
        let found = said(&LintContext::default(), &run);
        assert_eq!(found.len(), 1, "{found:?}");
        let place = |name: &str| found[0].find(&format!("`{name}`")).expect("it is named");
        let places = ["pure", "workspace", "workspace+net", "trusted"].map(place);
        assert!(places.is_sorted() && found[0].contains("no confinement"), "{found:?}");
    }
}

#[test]
fn the_part_of_a_schema_that_lets_a_model_write_any_text_is_named() {
    let found = |vars: &str| {
        let run = format!(
            "input: {{properties: {{vars: {{type: object, {vars}}}}}, required: [vars]}}\n    \
             run: {{argv: [ansible-playbook, '--extra-vars=${{args.vars}}', site.yml]}}"
        );
        let found = said(&LintContext::default(), &run);
        found.into_iter().filter(|found| found.starts_with("spliced-script")).collect::<Vec<_>>()
    };
    let keys = "`vars` takes keys of any name: name them under `properties`, and add \
                `additionalProperties: false`";
    for (vars, part) in [
        ("additionalProperties: {type: string, pattern: '^[a-z0-9.]+$'}", keys),
        ("properties: {version: {type: string, pattern: '^[a-z0-9.]+$'}}", keys),
        (
            "additionalProperties: false, properties: {version: {type: string}}",
            "`vars.version` takes any text",
        ),
        (
            "additionalProperties: false, properties: {version: {type: string, pattern: '^[a-z ]+$'}}",
            "the pattern of `vars.version` allows more",
        ),
    ] {
        let found = found(vars);
        assert!(found.len() == 1 && found[0].contains(part), "{vars}: {found:?}");
    }
    // Inside the JSON of an object, a `-` at the beginning is no option.
    let plain = "additionalProperties: false, properties: {version: {type: string, pattern: '^[A-Za-z0-9._-]+$'}}";
    assert_eq!(found(plain), Vec::<String>::new());
}
