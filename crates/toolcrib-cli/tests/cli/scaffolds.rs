//! `toolcrib new`: what it makes is right as it stands, and nothing is overwritten.

use crate::crib::Crib;

#[test]
fn every_template_passes_the_strictest_check_and_its_own_tests() {
    for template in ["command", "http", "client", "upstream"] {
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
fn in_an_empty_folder_it_makes_the_directory_that_servers_look_in() {
    let crib = Crib::new(&[]);
    std::fs::remove_dir(crib.path().join("tools.d")).expect("it is there");
    let run = crib.run(&["new", "count_lines"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "tools.d/count_lines.yaml\n"));
    assert!(!run.stderr.contains("left out"), "{run:?}");
    assert!(crib.run(&["list"]).stdout.contains("count_lines"));
}

#[test]
fn an_existing_file_is_never_touched() {
    let crib = Crib::new(&[("mine.yaml", "toolcrib: 1\ntools: []\n")]);
    let run = crib.run(&["new", "mine"]);
    assert_eq!(run.code, Some(2));
    insta::assert_snapshot!(run.stderr, @"error: tools.d/mine.yaml is there already, and is left as it is: name another with --file");
    let text = std::fs::read_to_string(crib.path().join("tools.d/mine.yaml")).expect("the file");
    assert_eq!(text, "toolcrib: 1\ntools: []\n");
}

#[test]
fn a_wrong_name_a_wrong_file_and_a_taken_name_are_told() {
    let crib = Crib::new(&[]);
    for (arguments, said) in [
        (&["new", "my tool"][..], "is not a tool name"),
        (&["new", "mine", "--file", "tools.d/mine.txt"], "end its name in .yaml"),
        (&["new", "mine", "--template", "magic"], "possible values"),
    ] {
        let run = crib.run(arguments);
        assert_eq!(run.code, Some(2), "{run:?}");
        assert!(run.stderr.contains(said), "{run:?}");
    }
    let json = crib.run(&["new", "calculator", "--json"]).json();
    assert!(json["taken_by"].as_str().is_some_and(|owner| owner.contains("calculator")), "{json}");
}
