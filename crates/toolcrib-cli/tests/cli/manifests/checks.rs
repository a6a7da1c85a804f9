//! `toolcrib check`, for people and programs.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::Value;

use crate::harness::crib::{Crib, run};

/// Every severity, in two files that declare the same name.
const FIRST: &str = r#"toolcrib: 1
tools:
  - name: say_hello
    description: Say hello to somebody. Read-only.
    annotations: {read_only: true, open_world: false}
    input: {properties: {name: {type: string, pattern: '[A-Z]', description: Whom to greet.}}}
    run: {argv: [printf, "--", "Hello, %s", "${args.name}"]}
    tests:
      - {name: Ada, args: {name: Ada}, expect: {text_contains: ["Hello, Ada"]}}
      - {name: nobody, args: {nam: Ada}, expect: {error: invalid_args}}
"#;
const SECOND: &str = "toolcrib: 1
tools:
  - name: say_hello
    description: Hello.
    version: 1.10
    run: {argv: [printf, hello]}
";

pub(crate) fn crib() -> Crib {
    Crib::new(&[("a.yaml", FIRST), ("b c.yaml", &SECOND.replace("1.10", "'1.10'"))])
}

#[test]
fn a_manifest_of_the_catalogue_may_name_a_secret_that_the_config_lacks() {
    let text = "toolcrib: 1\ntools:\n  - name: issues\n    description: List the open issues of our project. Read-only.\n    \
                annotations: {read_only: true, idempotent: true}\n    http: {url: https://api.example.com/issues, auth: \
                {bearer: \"${secret.issue_token}\"}}\n";
    let crib = Crib::new(&[("issues.yaml", text)]);
    crib.config("state: {dir: state}\n");
    let loaded = crib.run(&["check", "--strict"]);
    assert_eq!(loaded.code, Some(1), "{loaded:?}");
    let folder = crib.path().join("tools.d/available");
    fs::create_dir(&folder).expect("a folder");
    fs::rename(crib.path().join("tools.d/issues.yaml"), folder.join("issues.yaml")).expect("moved");
    for path in [&["check", "--strict", "tools.d/available"][..], &["check", "--strict", "tools.d"]]
    {
        let check = crib.run(path);
        assert_eq!(check.code, Some(0), "{check:?}");
    }
    let told = crib.run(&["check", "tools.d/available/issues.yaml"]).stderr;
    assert!(told.contains("hint[unknown-secret]"), "{told}");
}

#[test]
fn a_tool_in_place_of_a_file_is_answered_with_its_file() {
    let crib = Crib::new(&[("a.yaml", FIRST)]);
    for (command, repair) in [
        ("check", "run `toolcrib check tools.d/a.yaml`"),
        ("test", "run `toolcrib test --tool say_hello`"),
    ] {
        let run = crib.run(&[command, "say_hello"]);
        assert_ne!(run.code, Some(0), "{run:?}");
        assert!(run.stderr.contains("`say_hello` is a tool of tools.d/a.yaml"), "{run:?}");
        assert!(run.stderr.contains(repair), "{run:?}");
    }
}

#[test]
fn a_grant_in_the_folder_of_the_manifests_is_reported_in_its_place() {
    let granted =
        FIRST.replace("    tests:", "    sandbox: {write: [out, link/x.yaml]}\n    tests:");
    let crib = Crib::new(&[("a.yaml", &granted)]);
    crib.config("state: {dir: state}\n");
    fs::create_dir_all(crib.path().join("out")).expect("a folder");
    symlink("tools.d", crib.path().join("link")).expect("a link");
    fs::write(crib.path().join("tools.d/x.yaml"), "toolcrib: 1\ntools: []\n").expect("a file");
    let (line, text) = granted
        .lines()
        .enumerate()
        .find(|(_, line)| line.contains("sandbox:"))
        .expect("the line of the grant");
    let column = text.find("link").expect("the grant") + 1;
    let told = crib.run(&["check"]).stderr;
    assert_eq!(told.matches("warning[idle-grant]").count(), 1, "{told}");
    assert!(told.contains(&format!("a.yaml:{}:{column}", line + 1)), "{told}");
}

#[test]
fn a_tool_of_the_catalogue_is_enabled_before_it_is_trusted() {
    let trusted = FIRST.replace("    tests:", "    sandbox: {profile: trusted}\n    tests:");
    let crib = Crib::new(&[("a.yaml", &trusted)]);
    let folder = crib.path().join("tools.d/available");
    fs::create_dir(&folder).expect("a folder");
    fs::rename(crib.path().join("tools.d/a.yaml"), folder.join("a.yaml")).expect("moved");
    for (state, remedy) in [
        ("state", "run `toolcrib enable a`, then `toolcrib trust tools.d/a.yaml:say_hello`"),
        (
            "none",
            "run `toolcrib enable a`, then add `tools.d/a.yaml:say_hello` to `manifests.trusted`",
        ),
    ] {
        crib.config(&format!("state: {{dir: {state}}}\n"));
        let told = crib.run(&["check", "tools.d/available"]).stderr;
        assert!(told.contains(remedy) && !told.contains("trust tools.d/available"), "{told}");
    }
}

#[test]
fn a_setting_in_the_wrong_form_or_section_is_answered_with_the_right_one() {
    let crib = Crib::new(&[("a.yaml", FIRST)]);
    for (config, shown) in [
        ("server: {port: 8181}\n", "for example `listen: 127.0.0.1:8080`"),
        ("tool_timeout: 10s\n", "did you mean `executor.tool_timeout`?"),
        ("secrets: {tok: abcdefghijkl}\n", "write `{env: VARIABLE}` or `{file: PATH}`"),
        ("audit: audit.jsonl\n", "`audit: {file: audit.jsonl}`"),
    ] {
        crib.config(config);
        let run = crib.run(&["check"]);
        assert!(run.stderr.contains(shown), "{config}: {run:?}");
        assert!(!run.stderr.contains("abcdefghijkl"), "{run:?}");
        assert_eq!(run.stderr.matches("error[").count(), 1, "{run:?}");
    }
    // A value under an unknown key may be a secret in the wrong place.
    for secret in
        ["apitoken: 10s", "login: correcthorse", "hook: /services/T0AB12/xYz9", "code: 12345678"]
    {
        crib.config(&format!("{secret}\n"));
        let run = crib.run(&["check"]);
        let value = secret.split_once(": ").unwrap_or_default().1;
        assert!(!run.stderr.contains(value), "{run:?}");
        assert!(run.stderr.contains("stars stand for text that could be a secret"), "{run:?}");
    }
}

#[test]
fn warnings_and_hints_are_shown_like_errors_and_fail_only_where_they_should() {
    let crib = crib();
    let run = crib.run(&["check"]);
    assert_eq!(run.code, Some(0));
    insta::assert_snapshot!(run.stderr, @"
    warning[shadowed-name]: the name `say_hello` is taken already, so this tool is never called
     --> tools.d/b c.yaml:3:11
      |
    3 |   - name: say_hello
      |           ^^^^^^^^^
      |
      = note: the name belongs to the tool declared first: tools.d/a.yaml:3:11
      = help: rename the tool, or set a `namespace` for the file

    warning[short-description]: the description is too short to choose the tool by
     --> tools.d/b c.yaml:4:18
      |
    4 |     description: Hello.
      |                  ^^^^^^
      |
      = help: say in a sentence or two what the tool does, when to use it, and what it is not for

    hint[unanchored-pattern]: the pattern matches anywhere in the value: the rest of the value is not checked
     --> tools.d/a.yaml:6:56
      |
    6 |     input: {properties: {name: {type: string, pattern: '[A-Z]', description: Whom to greet.}}}
      |                                                        ^^^^^^^
      |
      = help: anchor it: '^(?:[A-Z])$'

    hint[unannotated]: the tool does not say what effects a call has, so clients treat it as destructive
     --> tools.d/b c.yaml:3:11
      |
    3 |   - name: say_hello
      |           ^^^^^^^^^
      |
      = help: add for example `annotations: {read_only: true, idempotent: true}`

    hint[untested]: the tool has no tests
     --> tools.d/b c.yaml:3:11
      |
    3 |   - name: say_hello
      |           ^^^^^^^^^
      |
      = help: add one that must succeed and one that must be refused: `tests: [{name: plain, args: {…}, expect: {argv_contains: […]}}]`; `toolcrib test` runs them
    ");
    insta::assert_snapshot!(run.stdout, @"2 tools in 2 files: 0 errors, 2 warnings, 3 hints");
    assert_eq!(crib.run(&["check", "--strict"]).code, Some(1));
    assert_eq!(
        crib.run(&["check", "--strict", "tools.d/a.yaml"]).code,
        Some(0),
        "hints never fail"
    );
}

#[test]
fn the_shipped_tools_pass_the_strictest_check_and_quiet_leaves_out_hints() {
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools.d");
    let run = Crib::new(&[]).run(&["check", "--strict", "--quiet", shipped]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let quiet = crib().run(&["check", "--quiet"]);
    assert!(!quiet.stderr.contains("hint["), "{quiet:?}");
    assert!(quiet.stderr.contains("warning[short-description]"), "{quiet:?}");
}

#[test]
fn the_json_report_holds_everything_the_text_says() {
    let json = crib().run(&["check", "--json"]).json();
    assert_eq!((&json["ok"], &json["errors"]), (&true.into(), &0.into()));
    let found = json["diagnostics"].as_array().expect("a list");
    let shadowed = found.iter().find(|found| found["code"] == "shadowed-name").expect("found");
    assert_eq!(shadowed["file"], "tools.d/b c.yaml");
    assert_eq!((&shadowed["line"], &shadowed["column"]), (&3.into(), &11.into()));
    assert_eq!(shadowed["related"][0]["file"], "tools.d/a.yaml");
    assert_eq!(shadowed["related"][0]["line"], 3);
}

#[test]
fn fix_edits_the_file_says_what_it_did_and_does_nothing_the_second_time() {
    let crib = Crib::new(&[("b.yaml", SECOND)]);
    let path = crib.path().join("tools.d/b.yaml");
    let before = crib.run(&["check"]);
    assert_eq!(before.code, Some(1));
    assert!(before.stderr.contains("`--fix` mends one of them"), "{before:?}");
    let run = crib.run(&["check", "--fix", "--quiet"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    insta::assert_snapshot!(run.stderr, @"
    fixed tools.d/b.yaml:5:14: quote `1.10` [wrong-type]

    warning[short-description]: the description is too short to choose the tool by
     --> tools.d/b.yaml:4:18
      |
    4 |     description: Hello.
      |                  ^^^^^^
      |
      = help: say in a sentence or two what the tool does, when to use it, and what it is not for
    ");
    let text = std::fs::read_to_string(&path).expect("the file");
    assert_eq!(text, SECOND.replace("1.10", "\"1.10\""));
    let again = crib.run(&["check", "--fix", "--json"]).json();
    assert_eq!(again["fixed"], Value::Array(Vec::new()));
    let left: Vec<_> = std::fs::read_dir(crib.path().join("tools.d")).expect("a folder").collect();
    assert_eq!(left.len(), 1, "nothing is left beside it: {left:?}");
}

#[cfg(unix)]
#[test]
fn a_fixed_file_keeps_its_permissions_and_a_link_stays_a_link() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let crib = Crib::new(&[]);
    let real = crib.path().join("real.yaml");
    std::fs::write(&real, format!("\u{feff}{SECOND}")).expect("a file");
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).expect("permissions");
    let link = crib.path().join("tools.d/b.yaml");
    symlink(&real, &link).expect("a link");
    let json = crib.run(&["check", "--fix", "--json"]).json();
    assert_eq!(json["fixed"][0]["code"], "wrong-type");
    assert!(link.is_symlink());
    assert_eq!(real.metadata().expect("there").permissions().mode() & 0o777, 0o640);
    let text = std::fs::read_to_string(&real).expect("the file");
    assert!(text.starts_with('\u{feff}') && text.contains("\"1.10\""), "{text:?}");
}

#[test]
fn many_problems_are_limited_to_the_worst_with_a_count() {
    let mut manifests: Vec<(String, String)> = (0..40)
        .map(|number| {
            let text = SECOND.replace("say_hello", &format!("tool_{number}"));
            (format!("{number:02}.yaml"), text.replace("1.10", "'1.10'"))
        })
        .collect();
    manifests.push(("zz.yaml".to_owned(), SECOND.to_owned()));
    let crib = Crib::new(&[]);
    for (name, text) in &manifests {
        crib.write(name, text);
    }
    let run = crib.run(&["check", "--limit", "3"]);
    assert!(run.stderr.starts_with("error[wrong-type]"), "{run:?}");
    assert_eq!(run.stderr.matches("\n  --> ").count() + run.stderr.matches("\n --> ").count(), 3);
    assert!(run.stderr.contains("more problems not shown; `--limit 0` shows all"), "{run:?}");
}

#[test]
fn usage_errors_differ_from_manifest_errors() {
    let crib = Crib::new(&[]);
    let run = crib.run(&["check", "nowhere.yaml"]);
    assert_eq!(run.code, Some(1));
    insta::assert_snapshot!(run.stderr, @"
    error[unreadable]: there is no such file or directory
    --> nowhere.yaml
     = help: check the spelling of the path
    ");
    assert_eq!(crib.run(&["check", "--format", "xml"]).code, Some(2));
    assert_eq!(crib.run(&["check", "--json", "--format", "sarif"]).code, Some(2));
}

#[test]
fn names_of_built_in_tools_are_taken_as_the_config_offers_them() {
    let tool = |name: &str| {
        format!(
            "toolcrib: 1\ntools:\n  - name: {name}\n    description: Read a file of ours.\n    run: {{argv: [cat, own.txt]}}\n"
        )
    };
    let crib = Crib::new(&[("a.yaml", &tool("file_read")), ("b.yaml", &tool("read_file"))]);
    let taken = |arguments: &[&str]| {
        let found = crib.run(&[arguments, &["--json"]].concat()).json();
        let found = found["diagnostics"].as_array().expect("a list").clone();
        let shadowed = found.into_iter().filter(|found| found["code"] == "shadowed-name");
        shadowed.map(|found| found["file"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(taken(&["check"]), ["tools.d/a.yaml"]);
    crib.config("builtins: {profile: harness}\n");
    assert_eq!(taken(&["check"]), ["tools.d/b.yaml"]);
    assert_eq!(taken(&["check", "tools.d"]), ["tools.d/b.yaml"]);
}

#[test]
fn missing_manifests_are_reported_with_a_hint() {
    let crib = Crib::new(&[]);
    std::fs::remove_dir(crib.path().join("tools.d")).expect("it is empty");
    for (command, code) in [("check", 1), ("test", 0)] {
        let run = crib.run(&[command]);
        // A check in the wrong folder must not pass for one that found no problem.
        assert_eq!(run.code, Some(code), "{run:?}");
        assert_eq!(run.stderr.contains("nothing was checked"), code == 1, "{run:?}");
        let said = "there is no tools.d here: `toolcrib new NAME` creates it with a first manifest, and a \
                    config (`manifests.dirs`) or `--tools-dir` names another place";
        assert!(run.stderr.contains(said), "{run:?}");
    }
    assert_eq!(crib.run(&["check", "--json"]).json()["ok"], false);
    let doctor = crib.run(&["doctor"]);
    assert!(doctor.stdout.contains("tools.d does not exist"), "{doctor:?}");
    crib.config("executor: {tool_timeout: 10s}\n");
    let run = crib.run(&["check"]);
    assert_eq!(run.code, Some(0), "the config is checked: {run:?}");
    fs::remove_file(crib.path().join("config.yml")).expect("the config");
    // A named file that does not exist is a mistake.
    for arguments in [["check", "nowhere"], ["test", "nowhere"]] {
        let run = crib.run(&arguments);
        assert_eq!(run.code, Some(1), "{run:?}");
        assert!(run.stderr.contains("there is no such file or directory"), "{run:?}");
    }
}

#[test]
fn a_catalogue_is_checked_and_counted_and_never_loaded() {
    let crib = crib();
    let folder = crib.path().join("tools.d/available");
    std::fs::create_dir(&folder).unwrap();
    // It has the name of a loaded tool, but does not compete with it.
    std::fs::write(folder.join("c.yaml"), FIRST).unwrap();
    let other = FIRST.replace("say_hello", "say_goodbye");
    std::fs::write(folder.join("d.yaml"), other.replace("tools:", "toolz:")).unwrap();
    let check = crib.run(&["check"]);
    assert_eq!(check.code, Some(1), "{check:?}");
    assert!(check.stderr.contains("--> tools.d/available/d.yaml:2:1"), "{check:?}");
    assert_eq!(check.stderr.matches("shadowed-name").count(), 1, "{check:?}");

    std::fs::write(folder.join("d.yaml"), other).unwrap();
    assert_eq!(crib.run(&["check"]).code, Some(0));
    let list = crib.run(&["list", "--all"]);
    assert!(!list.stdout.contains("say_goodbye"), "{list:?}");
    assert!(list.stderr.contains("2 more tools in "), "{list:?}");
    let json = crib.run(&["list", "--all", "--json"]).json();
    assert_eq!(json["catalogues"][0]["tools"], 2);
}

#[test]
fn a_missing_secret_is_a_warning_only_with_a_config() {
    let crib = Crib::new(&[(
        "fetch.yaml",
        "toolcrib: 1\ntools:\n  - name: fetch\n    description: Fetch the state of our service. Read-only.\n    \
         annotations: {read_only: true}\n    run: {argv: [uptime], env: {KEY: \"${secret.key}\"}}\n",
    )]);
    let without = crib.run(&["check", "tools.d"]);
    assert!(!without.stderr.contains("unknown-secret"), "{without:?}");
    crib.config("toolcrib: 1\nserver: {toolset: reader}\n");
    let told = crib.run(&["check"]).stderr.replace("\n ", " ");
    assert!(told.contains("unknown-secret") && told.contains("`secrets` in config.yml"), "{told}");
    assert!(told.contains("`server.toolset` names `reader`"), "{told}");
    assert_eq!(crib.run(&["check", "--strict"]).code, Some(1));
}

#[test]
fn what_is_wrong_with_the_config_has_its_line_and_column() {
    let crib = Crib::new(&[]);
    crib.write(
        "a.yaml",
        "toolcrib: 1\ntools:\n  - name: ping\n    description: Answer with one line. Read-only.\n    \
         annotations: {read_only: true, idempotent: true, open_world: false}\n    \
         run: {argv: [printf, pong]}\n    tests:\n      \
         - {name: an argument, args: {x: 1}, expect: {error: invalid_args}}\n",
    );
    crib.config(
        "secrets:\n  key: {file: /nowhere/key}\nserver: {token: correct-horse-battery-staple}\n\
         policy:\n  rules:\n    - {tool: pnig, action: deny}\n\
         manifests: {dirs: [tools.d, nope.d]}\nworkspace: {root: ws}\n",
    );
    let check = crib.run(&["check"]);
    let said = &check.stderr;
    assert_eq!(check.code, Some(1), "{check:?}");
    for (place, what) in [
        ("config.yml:7:29", "error[unreadable]: `manifests.dirs` names `nope.d`"),
        ("config.yml:6:14", "warning[unmatched-name]: `policy.rules[0]` is about `pnig`"),
        ("config.yml:2:8", "hint[missing-secret]: the secret `key` is missing"),
    ] {
        let found = said.split("\n\n").find(|found| found.contains(what));
        assert!(found.is_some_and(|found| found.contains(place)), "{place}: {said}");
    }
    assert!(said.contains("did you mean `ping`?"), "{said}");
    assert!(!said.contains("staple"), "{said}");
    let found = crib.run(&["check", "--json"]).json();
    let counts = ["errors", "warnings", "hints"].map(|kind| found[kind].as_u64());
    assert_eq!(counts, [Some(1); 3], "{found}");

    // The other commands report the position too, and log nothing.
    let list = crib.run(&["list"]).stderr;
    assert!(list.contains("config.yml:7:29") && !list.contains("WARN"), "{list}");
    let doctor = crib.run(&["doctor"]).stdout;
    assert!(doctor.contains("config.yml:7:29") && doctor.contains("config.yml:6:14"), "{doctor}");
    let mut start = crib.command(&["mcp"]);
    let start = run(start.env_remove("RUST_LOG").write_stdin("")).stderr;
    for place in ["config.yml:7:29", "config.yml:6:14", "config.yml:2:8"] {
        assert!(start.contains(place), "{place}: {start}");
    }
}

#[test]
fn a_folder_of_manifests_on_the_command_line_is_told_by_its_flag() {
    let crib = Crib::new(&[]);
    let said = crib.run(&["list", "--tools-dir", "nope.d"]).stderr;
    assert!(said.contains("--tools-dir") && said.contains("nope.d"), "{said}");
}

#[test]
fn settings_that_every_start_refuses_are_errors_and_patterns_of_no_tool_are_hints() {
    for (config, place, said) in [
        (
            "server: {listen: '0.0.0.0:7777', no_auth: true}",
            "config.yml:1:43",
            "error[refused-setting]: `toolcrib serve` does not start",
        ),
        (
            "workspace: {root: /}",
            "config.yml:1:19",
            "error[refused-setting]: `workspace.root` is `/`",
        ),
        ("server: {toolset: nosuch}", "config.yml:1:19", "error[refused-setting]"),
    ] {
        let crib = Crib::new(&[]);
        crib.config(&format!("{config}\n"));
        let check = crib.run(&["check"]);
        assert_eq!(check.code, Some(1), "{check:?}");
        assert!(check.stderr.contains(said) && check.stderr.contains(place), "{check:?}");
    }
    let crib = Crib::new(&[]);
    crib.config(
        "policy: {rules: [{tool: 'nosuch_*', action: deny}, {tool: 'calc*', action: ask}]}\n",
    );
    let check = crib.run(&["check"]);
    assert_eq!(check.code, Some(0), "{check:?}");
    assert!(check.stderr.contains("hint[unmatched-name]"), "{check:?}");
    assert!(check.stderr.contains("`nosuch_*` of `policy.rules[0]`"), "{check:?}");
    assert!(!check.stderr.contains("calc*`"), "{check:?}");
}
