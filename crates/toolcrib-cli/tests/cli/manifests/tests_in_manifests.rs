//! `toolcrib test`: the tests in manifests, for people and build servers.

use crate::harness::crib::Crib;

const HELLO: &str = r#"toolcrib: 1
tools:
  - name: hello
    description: Say hello to somebody, as JSON.
    input: {properties: {name: {type: string}}, required: [name]}
    run: {argv: [printf, "--", '{"hello": "%s", "n": 1}', "${args.name}"]}
    output: {format: json}
    tests:
      - {name: the right words, args: {name: Ada}, expect: {argv_contains: [Ada], data: {hello: Ada, n: 1}}}
      - {name: nobody, args: {}, expect: {error: invalid_args}}
"#;

const WRONG: &str = r#"toolcrib: 1
tools:
  - name: goodbye
    description: Say goodbye to somebody, as JSON.
    input: {properties: {name: {type: string}}, required: [name]}
    run: {argv: [printf, "--", '{"bye": "%s"}', "${args.name}"]}
    output: {format: json}
    tests:
      - {name: <argv>, args: {name: Ada}, expect: {argv: [printf, "--", "bye %s", Ada]}}
      - {name: data, args: {name: Ada}, expect: {data: {bye: Eve}}}
      - {name: text, args: {name: Ada}, expect: {text_contains: [Eve], text_matches: '^bye'}}
      - {name: refused, args: {nme: Ada}, expect: {}}
      - {name: not refused, args: {name: Ada}, expect: {error: invalid_args}}
  - name: gone
    description: Needs a program that is not there.
    run: {argv: [no-such-program-here]}
    tests: [{name: plain, expect: {}}]
  - name: hello
    description: Has a name that another file had first.
    run: {argv: [printf, hello]}
    tests: [{name: plain, expect: {text_contains: [hello]}}]
"#;

/// The output without the times, which differ between runs.
fn timeless(text: &str) -> String {
    let mut shown = String::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let is_time = |at: usize| {
            words.get(at + 1) == Some(&"ms") && words[at].parse::<u64>().is_ok()
                || words.get(at + 1) == Some(&"s") && words[at].parse::<f64>().is_ok()
        };
        let masked: Vec<&str> =
            (0..words.len()).map(|at| if is_time(at) { "_" } else { words[at] }).collect();
        shown.push_str(&masked.join(" "));
        shown.push('\n');
    }
    shown
}

#[test]
fn passing_tests_are_counted_and_the_command_succeeds() {
    let crib = Crib::new(&[("a.yaml", HELLO)]);
    let run = crib.run(&["test"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    insta::assert_snapshot!(timeless(&run.stdout), @"
    hello
      ok       the right words _ ms
      ok       nobody _ ms

    2 tests: 2 passed, 0 failed, 0 skipped in _ s
    ");
}

#[test]
fn failed_expectations_show_expected_and_actual_values() {
    let crib = Crib::new(&[("a.yaml", HELLO), ("b.yaml", WRONG)]);
    let run = crib.run(&["test"]);
    assert_eq!(run.code, Some(1));
    insta::assert_snapshot!(timeless(&run.stdout), @r#"
    hello
      ok       the right words _ ms
      ok       nobody _ ms
    goodbye
      FAILED   <argv> _ ms  tools.d/b.yaml:9:16
               argv
                 "printf"
                 "--"
               - "bye %s"
               + "{\"bye\": \"%s\"}"
                 "Ada"
      FAILED   data _ ms  tools.d/b.yaml:10:16
               data
                 {
               -   "bye": "Eve"
               +   "bye": "Ada"
                 }
      FAILED   text _ ms  tools.d/b.yaml:11:16
               text_contains
               - Eve
               + {"bye":"Ada"}
               text_matches
               - ^bye
               + {"bye":"Ada"}
      FAILED   refused _ ms  tools.d/b.yaml:12:16
               success
               - success
               + invalid_args: the arguments do not fit the tool's schema in 2 places
               + - /name: required and missing (expected a string)
               + - /nme: there is no such property, got "Ada"; did you mean `name`?
               + Nothing was run. Correct the arguments and call again.
      FAILED   not refused _ ms  tools.d/b.yaml:13:16
               error
               - invalid_args
               + success
    gone
      skipped  plain: the tool is unavailable: needs the program `no-such-program-here`, which is not on PATH
    hello
      skipped  plain: the name `hello` belongs to manifest tools.d/a.yaml:3:11

    9 tests: 2 passed, 5 failed, 2 skipped in _ s
    "#);
}

#[test]
fn mock_starts_nothing_and_skips_tests_that_need_a_run() {
    let leaves_a_trace = HELLO.replace("[printf, \"--\", ", "[sh, -c, 'touch ran', ");
    let crib = Crib::new(&[("a.yaml", &leaves_a_trace), ("b.yaml", WRONG)]);
    let run = crib.run(&["test", "--mock"]);
    assert!(!crib.path().join("ran").exists(), "nothing ran");
    insta::assert_snapshot!(timeless(&run.stdout), @r#"
    hello
      skipped  the right words: only a run can tell
      ok       nobody _ ms
    goodbye
      FAILED   <argv> _ ms  tools.d/b.yaml:9:16
               argv
                 "printf"
                 "--"
               - "bye %s"
               + "{\"bye\": \"%s\"}"
                 "Ada"
      skipped  data: only a run can tell
      skipped  text: only a run can tell
      FAILED   refused _ ms  tools.d/b.yaml:12:16
               success
               - success
               + invalid_args: the arguments do not fit the tool's schema in 2 places
               + - /name: required and missing (expected a string)
               + - /nme: there is no such property, got "Ada"; did you mean `name`?
               + Nothing was run. Correct the arguments and call again.
      FAILED   not refused _ ms  tools.d/b.yaml:13:16
               error
               - invalid_args
               + a call that passes every check
    gone
      skipped  plain: only a run can tell
    hello
      skipped  plain: the name `hello` belongs to manifest tools.d/a.yaml:3:11

    9 tests: 1 passed, 3 failed, 5 skipped in _ s
    "#);
    assert_eq!(crib.run(&["test", "--tool", "hello"]).code, Some(1));
    assert!(crib.path().join("ran").exists(), "without it something does");
}

#[test]
fn strict_fails_skipped_tests() {
    let crib = Crib::new(&[("b.yaml", WRONG)]);
    assert_eq!(crib.run(&["test", "--tool", "gone"]).code, Some(0));
    for strict in ["--strict", "--no-skip"] {
        let run = crib.run(&["test", "--tool", "gone", strict]);
        assert_eq!(run.code, Some(1));
        assert!(run.stderr.contains("--strict allows none"), "{run:?}");
    }
}

#[test]
fn the_json_report_is_in_the_order_of_the_files() {
    let crib = Crib::new(&[("a.yaml", HELLO), ("b.yaml", WRONG)]);
    let json = crib.run(&["test", "--json", "--jobs", "8"]).json();
    assert_eq!((&json["ok"], &json["passed"]), (&false.into(), &2.into()));
    assert_eq!((&json["failed"], &json["skipped"]), (&5.into(), &2.into()));
    let tests = json["tests"].as_array().expect("a list");
    let names: Vec<&str> = tests.iter().filter_map(|test| test["test"].as_str()).collect();
    assert_eq!(
        names,
        [
            "the right words",
            "nobody",
            "<argv>",
            "data",
            "text",
            "refused",
            "not refused",
            "plain",
            "plain"
        ]
    );
    let data = &tests[3];
    assert_eq!((&data["file"], &data["line"]), (&"tools.d/b.yaml".into(), &10.into()));
    assert_eq!(data["failures"][0]["expected"], "{\n  \"bye\": \"Eve\"\n}");
}

#[test]
fn the_junit_report_is_xml_with_a_suite_per_file_and_a_case_per_test() {
    let crib = Crib::new(&[("a.yaml", HELLO), ("b.yaml", WRONG)]);
    crib.run(&["test", "--junit", "report.xml"]);
    let xml = std::fs::read_to_string(crib.path().join("report.xml")).expect("a report");
    let document = roxmltree::Document::parse(&xml).expect("XML");
    let root = document.root_element();
    assert_eq!(root.tag_name().name(), "testsuites");
    let number = |node: &roxmltree::Node<'_, '_>, name: &str| {
        node.attribute(name).and_then(|text| text.parse::<usize>().ok()).expect("a number")
    };
    let suites: Vec<_> = root.children().filter(roxmltree::Node::is_element).collect();
    assert_eq!(suites.len(), 2);
    let mut sums = [0; 3];
    for suite in &suites {
        let cases: Vec<_> = suite.children().filter(roxmltree::Node::is_element).collect();
        let with = |tag: &str| {
            cases.iter().filter(|case| case.children().any(|child| child.has_tag_name(tag))).count()
        };
        let counted = [cases.len(), with("failure"), with("skipped")];
        let said = ["tests", "failures", "skipped"].map(|name| number(suite, name));
        assert_eq!(said, counted);
        sums.iter_mut().zip(said).for_each(|(sum, number)| *sum += number);
    }
    assert_eq!(sums, ["tests", "failures", "skipped"].map(|name| number(&root, name)));
    assert_eq!(sums, [9, 5, 2]);
    let argv = root.descendants().find(|node| node.attribute("name") == Some("<argv>"));
    let failure = argv.and_then(|case| case.first_element_child()).expect("a failure");
    assert!(failure.text().is_some_and(|text| text.contains("\"bye %s\"")), "{failure:?}");
}

#[test]
fn usage_errors_are_reported_and_a_broken_file_fails_the_run() {
    let crib = Crib::new(&[("a.yaml", HELLO)]);
    let run = crib.run(&["test", "--tool", "hullo"]);
    assert_eq!(run.code, Some(2));
    insta::assert_snapshot!(run.stderr, @"error: no manifest here declares a tool `hullo`; `toolcrib list` shows the tools, and those that are linked in have no tests of this kind");
    crib.write("broken.yaml", "tools: [\n");
    let run = crib.run(&["test"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stdout.contains("2 tests: 2 passed"), "the others run: {run:?}");
    insta::assert_snapshot!(run.stderr, @"
    error[syntax]: a bracket is opened and never closed
     --> tools.d/broken.yaml:1:8
      |
    1 | tools: [
      |        ^
      |
      = help: add the missing `]` or `}`

    error: 1 file could not be loaded, see above
    ");
    let empty = Crib::new(&[]).run(&["test"]);
    assert_eq!(empty.code, Some(0));
    insta::assert_snapshot!(empty.stderr, @"no tests: add `tests` to a tool, for example as `toolcrib new` does");
}

const ASKS: &str = r#"toolcrib: 1
tools:
  - name: ask
    description: Ask a server that is not there for a ticket.
    annotations: {read_only: true, idempotent: true}
    input: {properties: {id: {type: integer}}, required: [id]}
    http:
      url: https://tickets.invalid/${args.id}
      auth: {bearer: "${secret.ticket_token}"}
      select: /state
    approval: always
    cache: {ttl: 5m}
    tests:
      - {name: open, args: {id: 1}, answer: {json: {state: open}}, expect: {data: open, url: "https://tickets.invalid/1"}}
      - {name: closed, args: {id: 1}, answer: {json: {state: closed}}, expect: {data: closed}}
      - {name: gone, args: {id: 1}, answer: {status: 410, text: no more}, expect: {error: execution, text_contains: ["410", no more]}}
      - {name: another form, args: {id: 1}, answer: {json: []}, expect: {error: execution}}
      - {name: refused, args: {id: one}, answer: {json: {}}, expect: {error: invalid_args}}
"#;

#[test]
fn what_a_server_answered_once_is_tested_without_asking_it() {
    let crib = Crib::new(&[("a.yaml", ASKS)]);
    // Only a real run reads it: a command that reads the secret would leave a trace.
    crib.config("secrets: {ticket_token: {command: [touch, asked]}}\n");
    let run = crib.run(&["test", "--mock", "--strict"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(!crib.path().join("asked").exists());

    crib.write("a.yaml", &ASKS.replace("{data: closed}", "{data: open}"));
    let run = crib.run(&["test", "--mock"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stdout.contains("FAILED   closed"), "{run:?}");
}

#[test]
fn a_recorded_answer_is_for_tools_that_ask_a_server() {
    let answer = "answer: {json: {}, text: a, status: 7}, ";
    let text =
        HELLO.replace("name: the right words, ", &format!("name: the right words, {answer}"));
    let crib = Crib::new(&[("a.yaml", &text)]);
    let run = crib.run(&["check", "--format", "json"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    for code in ["not-for-this-run", "two-bodies", "out-of-range"] {
        assert!(run.stdout.contains(code), "{code}: {run:?}");
    }
}

#[test]
fn expected_numbers_are_compared_and_shown_exactly() {
    let tool = |expected: &str| {
        format!(
            "toolcrib: 1\ntools:\n  - name: wide\n    description: A number. Read-only.\n    \
             annotations: {{read_only: true}}\n    output: {{format: json}}\n    \
             run: {{argv: [echo, '{{\"n\":123456789012345678901}}']}}\n    tests:\n      \
             - {{name: wide, args: {{}}, expect: {{data: {{n: {expected}}}}}}}\n"
        )
    };
    // The nearest double.
    let crib = Crib::new(&[("wide.yaml", &tool("1.2345678901234568e20"))]);
    let run = crib.run(&["test"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stdout.contains("\"n\": 123456789012345678901"), "{run:?}");
    for rounded in ["123456789012345678901", "0.1000000000000000055"] {
        crib.write("wide.yaml", &tool(rounded));
        let run = crib.run(&["check"]);
        let said = format!("{}{}", run.stdout, run.stderr);
        assert_ne!(run.code, Some(0), "{run:?}");
        assert!(said.contains("represented exactly") && said.contains(rounded), "{said}");
    }
}

const NOTHING_IS_HERE: &str = r#"
toolcrib: 1
tools:
  - name: restart
    description: Restart one of our services. Not for other services.
    annotations: {destructive: true}
    input: {properties: {unit: {enum: [web, db]}}, required: [unit]}
    run:
      argv: [no-such-program-here, restart, "${args.unit}"]
      env: {TOKEN: "${secret.restart_token}"}
    sandbox: {profile: trusted}
    tests:
      - {name: web, args: {unit: web}, expect: {argv: [no-such-program-here, restart, web]}}
      - {name: not ours, args: {unit: mail}, expect: {error: invalid_args}}
"#;

#[test]
fn mock_needs_no_program_no_secret_and_no_trust() {
    let crib = Crib::new(&[("a.yaml", NOTHING_IS_HERE)]);
    crib.config("secrets: {restart_token: {file: nowhere}}\n");
    let run = crib.run(&["test", "--mock", "--strict"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("2 passed, 0 failed, 0 skipped"), "{run:?}");

    let wrong = NOTHING_IS_HERE.replace("here, restart, web]", "here, stop, web]");
    crib.write("a.yaml", &wrong);
    assert_eq!(crib.run(&["test", "--mock"]).code, Some(1), "vectors are still compared");

    let run = crib.run(&["test"]);
    assert!(
        run.stdout.contains("2 skipped") && run.stdout.contains("the tool is unavailable: needs"),
        "{run:?}"
    );
}
