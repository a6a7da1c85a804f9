//! `toolcrib new`: its output is valid without changes, and nothing is overwritten.

use crate::harness::crib::Crib;

#[test]
fn every_template_passes_the_strictest_check_and_its_own_tests() {
    for template in ["command", "script", "worker", "http", "client", "upstream"] {
        let crib = Crib::new(&[]);
        let run = crib.run(&["new", "my_tool", "--template", template]);
        assert_eq!(run.code, Some(0), "{run:?}");
        let file = "tools.d/my_tool.yaml";
        let check = crib.run(&["check", "--strict", file]);
        assert_eq!((check.code, check.stderr.as_str()), (Some(0), ""), "{template}");
        let test = crib.run(&["test", "--strict", "--json", file]);
        assert_eq!(test.code, Some(0), "{template}: {test:?}");
        let passed = test.json()["passed"].as_u64().expect("a number");
        assert!(template == "upstream" || passed >= 2, "{template} has tests: {passed}");
    }
}

#[test]
fn the_screen_says_where_the_file_is_and_what_comes_next() {
    let crib = Crib::new(&[]);
    let run = crib.run(&["new", "count_lines"]);
    insta::assert_snapshot!(run.stdout, @"tools.d/count_lines.yaml");
    insta::assert_snapshot!(run.stderr, @"
    Edit it, then:
      toolcrib check --strict tools.d/count_lines.yaml
      toolcrib test tools.d/count_lines.yaml
    ");
    assert_eq!(crib.run(&["call", "count_lines", "path=/dev/null"]).stdout, "0 /dev/null\n");
}

#[test]
fn the_next_command_for_an_upstream_asks_the_server() {
    let crib = Crib::new(&[]);
    let run = crib.run(&["new", "far", "--template", "upstream"]);
    assert!(run.stderr.contains("toolcrib list --all --connect --tools-dir"), "{run:?}");
}

#[test]
fn in_an_empty_folder_it_makes_the_directory_that_servers_look_in() {
    let crib = Crib::new(&[]);
    std::fs::remove_dir(crib.path().join("tools.d")).expect("it is there");
    let run = crib.run(&["new", "count_lines"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "tools.d/count_lines.yaml\n"));
    assert!(!run.stderr.contains("left out"), "{run:?}");
    assert!(crib.run(&["list"]).stdout.contains("count_lines"));
}

#[test]
fn a_script_and_a_worker_come_with_a_program_that_can_be_executed() {
    let crib = Crib::new(&[]);
    let run = crib.run(&["new", "ends", "--template", "script"]);
    insta::assert_snapshot!(run.stdout, @"
    tools.d/ends.yaml
    tools.d/ends.sh
    ");
    insta::assert_snapshot!(run.stderr, @"
    Edit both, then:
      toolcrib check --strict tools.d/ends.yaml
      toolcrib test tools.d/ends.yaml
    ");
    std::fs::write(crib.path().join("abc.txt"), "a\nb\nc\n").expect("a text");
    let call = crib.run(&["call", "ends", "path=abc.txt", "lines=1"]);
    insta::assert_snapshot!(call.stdout, @"
    first 1:
    a
    last 1:
    c
    ");

    // The program is created beside the manifest.
    let file = ["--file", "else/where.yaml"];
    let run =
        crib.run(&[&["new", "count_words", "--template", "worker", "--json"], &file[..]].concat());
    assert_eq!(run.json()["program"], "else/count_words.py");
    let call = ["call", "count_words", "text=b a b", "--tools-dir", "else"];
    assert_eq!(crib.run(&call).stdout, "{\"frequent\":[\"b\",\"a\"],\"words\":3}\n");
    for file in ["tools.d/ends.sh", "else/count_words.py"] {
        let mode = std::os::unix::fs::PermissionsExt::mode(
            &std::fs::metadata(crib.path().join(file)).expect("it is there").permissions(),
        );
        assert_eq!(mode & 0o100, 0o100, "{file}");
    }
}

#[test]
fn neither_the_file_nor_its_program_is_written_over_one_that_is_there() {
    let crib = Crib::new(&[("one.sh", "mine"), ("two.yaml", "toolcrib: 1\ntools: []\n")]);
    let run = crib.run(&["new", "one", "--template", "script"]);
    assert_eq!(run.code, Some(2));
    insta::assert_snapshot!(run.stderr, @"error: tools.d/one.sh already exists and was not changed: choose another name");
    assert_eq!(crib.run(&["new", "two", "--template", "script"]).code, Some(2));
    let there = |name: &str| std::fs::read_to_string(crib.path().join("tools.d").join(name)).ok();
    assert_eq!(there("one.sh").as_deref(), Some("mine"));
    assert_eq!(there("two.yaml").as_deref(), Some("toolcrib: 1\ntools: []\n"));
    assert_eq!((there("one.yaml"), there("two.sh")), (None, None), "nothing is made by halves");
}

#[test]
fn an_existing_file_is_never_touched() {
    let crib = Crib::new(&[("mine.yaml", "toolcrib: 1\ntools: []\n")]);
    let run = crib.run(&["new", "mine"]);
    assert_eq!(run.code, Some(2));
    insta::assert_snapshot!(run.stderr, @"error: tools.d/mine.yaml already exists and was not changed: name another with --file");
    let text = std::fs::read_to_string(crib.path().join("tools.d/mine.yaml")).expect("the file");
    assert_eq!(text, "toolcrib: 1\ntools: []\n");
}

#[test]
fn invalid_names_invalid_files_and_taken_names_are_reported() {
    let crib = Crib::new(&[]);
    for (arguments, said) in [
        (&["new", "my tool"][..], "is not a tool name"),
        (&["new", "mine", "--file", "tools.d/mine.txt"], "its name must end in .yaml"),
        (&["new", "mine", "--template", "magic"], "possible values"),
    ] {
        let run = crib.run(arguments);
        assert_eq!(run.code, Some(2), "{run:?}");
        assert!(run.stderr.contains(said), "{run:?}");
    }
    assert_eq!(crib.run(&["new", "mine"]).code, Some(0));
    let json = crib.run(&["new", "mine", "--file", "tools.d/other.yaml", "--json"]).json();
    assert!(json["taken_by"].as_str().is_some_and(|owner| owner.contains("mine.yaml")), "{json}");
}

#[test]
fn an_unwritable_folder_is_reported_with_a_hint() {
    let crib = Crib::new(&[]);
    // Nobody can create files there, not even the administrator.
    let run = crib.run(&["new", "mine", "--file", "/sys/toolcrib/mine.yaml"]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("making /sys/toolcrib"), "{run:?}");
    assert!(run.stderr.contains("`--file PATH`"), "{run:?}");
}

#[test]
fn a_manifest_that_no_server_would_read_is_made_with_a_warning() {
    let crib = Crib::new(&[]);
    let run = crib.run(&["new", "elsewhere", "--file", "sub/elsewhere.yaml"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stderr.contains("no server reads sub/elsewhere.yaml"), "{run:?}");
    let run = crib.run(&["new", "here"]);
    assert!(!run.stderr.contains("no server reads"), "{run:?}");
}

#[test]
fn a_manifest_with_the_name_of_a_built_in_tool_is_not_created() {
    let crib = Crib::new(&[]);
    for name in ["bash", "read_output"] {
        let run = crib.run(&["new", name]);
        assert_eq!(run.code, Some(2), "{run:?}");
        assert!(run.stderr.contains("is the name of a built-in tool: choose another"), "{run:?}");
        assert!(!crib.path().join(format!("tools.d/{name}.yaml")).exists());
    }
}
