//! Mistakes on the command line, and commands that cannot run: their messages and formats.

use crate::harness::crib::Crib;

#[test]
fn exit_code_2_prints_json_where_json_was_asked_for() {
    let crib = Crib::new(&[]);
    crib.config("executor: {tool_timeout: soon}\n");
    for (arguments, message) in [
        (&["list", "--json", "--config", "/absent.yml"][..], "/absent.yml"),
        (&["list", "--json"], "the settings cannot be used: 1 mistake"),
        (&["check", "--format", "json", "--fixx"], "unexpected argument '--fixx' found"),
        (&["call", "calculator", "--json", "{}"], "\"{}\" is not KEY=VALUE"),
        (&["show", "--json"], "required arguments were not provided: <NAME>"),
    ] {
        let run = crib.run(arguments);
        assert_eq!(run.code, Some(2), "{run:?}");
        let error = &run.json()["error"];
        let said = error["message"].as_str().unwrap_or_default();
        // The config is wrong in each case, so what is reported first is the command line or the config.
        assert!(said.contains(message) || said.contains("settings"), "{arguments:?}: {error}");
        assert!(error["hints"].is_array(), "{error}");
        assert!(!run.stderr.is_empty(), "people read standard error: {run:?}");
    }
    let mistakes = crib.run(&["list", "--json"]).json();
    let first = mistakes["error"]["hints"][0].as_str().unwrap_or_default();
    assert!(first.contains("tool_timeout"), "{mistakes}");
    assert_eq!(crib.run(&["list"]).stdout, "", "without --json nothing but standard error");
}

#[test]
fn a_missing_argument_names_its_choices() {
    let crib = Crib::new(&[]);
    for (arguments, choices) in [
        (&["export"][..], "tip: --format <FORMAT> is one of: openai"),
        (&["completions"], "tip: <SHELL> is one of: bash, elvish, fish, powershell, zsh"),
        (&["schema"], "tip: <OF> is one of: manifest, config"),
    ] {
        let run = crib.run(arguments);
        assert_eq!(run.code, Some(2), "{run:?}");
        assert!(run.stderr.contains(choices), "{run:?}");
    }
}

#[test]
fn call_says_how_the_arguments_of_a_tool_are_written() {
    let crib = Crib::new(&[]);
    for (arguments, tip) in [
        (&["call", "calculator", "--expression", "2+2"][..], "write `expression=2+2`"),
        (&["call", "calculator", "--expression=2+2"], "write `expression=2+2`"),
        (&["call", "calculator", "--round-up"], "write `round_up=true`"),
    ] {
        let run = crib.run(arguments);
        assert_eq!(run.code, Some(2), "{run:?}");
        assert!(run.stderr.contains(tip) && !run.stderr.contains("use '--"), "{run:?}");
    }
}

#[test]
fn a_misspelt_command_after_help_gets_the_near_one() {
    let run = Crib::new(&[]).run(&["help", "cal"]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("a similar subcommand exists: 'call'"), "{run:?}");
}

#[test]
fn a_misspelt_manifest_of_the_catalogue_gets_the_near_one() {
    let crib = Crib::new(&[]);
    let run = crib.run(&["enable"]);
    assert!(
        run.stderr.contains("there is no catalogue") && run.stderr.contains("copy it to"),
        "{run:?}"
    );
    let folder = crib.path().join("tools.d/available");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("postgresql.yaml"), "toolcrib: 1\ntools: []\n").expect("a file");
    let run = crib.run(&["enable", "postgresqll"]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("did you mean `postgresql`?"), "{run:?}");
}

#[test]
fn format_json_gets_a_hint_about_json() {
    let crib = Crib::new(&[]);
    for command in ["list", "status"] {
        let run = crib.run(&[command, "--format", "json"]);
        assert_eq!(run.code, Some(2), "{run:?}");
        assert!(run.stderr.contains("'--json'"), "{run:?}");
        assert!(!run.stderr.contains("--log-format"), "{run:?}");
    }
}

#[test]
fn global_options_have_a_heading_of_their_own_in_helps_and_manual_pages() {
    let crib = Crib::new(&[]);
    let help = crib.run(&["list", "--help"]).stdout;
    let (own, global) = help.split_once("\nGlobal options:\n").expect("a heading");
    for option in ["--config", "--set", "--tools-dir", "--ctx", "--verbose", "--log-format"] {
        assert!(!own.contains(option) && global.contains(option), "{option}: {help}");
    }
    assert!(own.contains("--json"), "{help}");
    assert_eq!(crib.run(&["man", "."]).code, Some(0));
    let page = std::fs::read_to_string(crib.path().join("toolcrib-list.1")).expect("a page");
    let (own, global) = page.split_once(".SH \"GLOBAL OPTIONS\"").expect("a heading");
    assert!(own.contains("\\-\\-json") && global.contains("\\-\\-config"), "{page}");
}

#[test]
fn accept_answers_as_json_and_asks_nobody() {
    let crib = Crib::new(&[]);
    let run = crib.run(&["accept", "calculator", "absent", "--json"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    let tools = run.json()["tools"].clone();
    for (at, (name, reason)) in
        [("calculator", "is not pinned"), ("absent", "no such tool")].iter().enumerate()
    {
        assert_eq!((&tools[at]["name"], &tools[at]["accepted"]), (&(*name).into(), &false.into()));
        assert!(tools[at]["reason"].as_str().is_some_and(|own| own.contains(reason)), "{tools}");
    }
}
