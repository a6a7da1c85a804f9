//! `toolcrib doctor`: which promises do not hold on this machine, and why.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::harness::crib::{Crib, run, until};
use crate::harness::server::Server;

const TOOLS: &str = "toolcrib: 1
tools:
  - name: gone
    description: Needs what is not there.
    run: {argv: [no-such-program-here]}
  - name: here
    description: Says hi.
    run: {argv: [printf, hi]}
";

fn allow(path: impl AsRef<Path>, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
}

/// The findings about settings and tools; those about the machine differ between machines.
fn settings_and_tools(screen: &str) -> &str {
    let (_, settings) = screen.split_once("Machine\n").expect("a section");
    let begin = settings.find("Settings\n").expect("a section");
    let end = settings.find("Promises\n").expect("a section");
    &settings[begin..end]
}

#[test]
fn doctor_names_broken_promises_with_hints() {
    let crib =
        Crib::new(&[("a.yaml", TOOLS), ("b.yaml", TOOLS), ("c.yaml", "toolcrib: 1\ntols: []\n")]);
    crib.config(
        "state: {dir: state}
audit: {file: no/such/folder/audit.jsonl}
policy: {on_ask: allow}
workspace: {root: no/such/workspace}
secrets: {token: {env: NO_SUCH_VARIABLE}}
server: {listen: '127.0.0.1:0', token: 0123456789abcdef}
",
    );
    fs::create_dir(crib.path().join("state")).expect("a folder");
    allow(crib.path().join("state"), 0o755);
    allow(crib.path().join("config.yml"), 0o644);
    allow(crib.path().join("tools.d"), 0o777);
    allow(crib.path().join("tools.d/b.yaml"), 0o646);
    for name in ["a.yaml", "c.yaml"] {
        allow(crib.path().join("tools.d").join(name), 0o644);
    }
    let found = crib.run(&["doctor"]);
    assert_eq!(found.code, Some(1), "{found:?}");
    let settings = settings_and_tools(&found.stdout);
    let settings: Vec<_> =
        settings.lines().filter(|line| !line.contains("good     tools")).collect();
    screen!("doctor", settings.join("\n"));

    let json = crib.run(&["doctor", "--json"]).json();
    assert_eq!(json["ok"], false);
    let findings = json["findings"].as_array().expect("a list");
    let state = findings.iter().find(|finding| finding["about"] == "state").expect("it is there");
    assert_eq!((&state["verdict"], &state["section"]), (&"failure".into(), &"settings".into()));
    for profile in ["pure", "workspace", "workspace+net"] {
        let found = findings.iter().find(|finding| finding["about"] == profile);
        let verdict = &found.expect("it is there")["verdict"];
        assert!(verdict == "good" || verdict == "warning", "{profile}: {verdict}");
    }
    assert!(!crib.path().join("no").exists(), "nothing is made");
}

#[test]
fn doctor_passes_on_a_healthy_setup_and_leaves_nothing_behind() {
    let crib = Crib::new(&[]);
    crib.config(
        "state: {dir: state}\naudit: {file: audit.jsonl}\nserver: {listen: '127.0.0.1:0'}\n",
    );
    allow(crib.path().join("config.yml"), 0o600);
    allow(crib.path().join("tools.d"), 0o755);
    let found = crib.run(&["doctor"]);
    assert_eq!(found.code, Some(0), "{found:?}");
    let settings = settings_and_tools(&found.stdout);
    assert!(!settings.contains("failure ") && !settings.contains("warning "), "{settings}");
    let mut left: Vec<_> = fs::read_dir(crib.path())
        .expect("readable")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    left.sort();
    assert_eq!(left, ["config.yml", "tools.d"]);
}

#[test]
fn doctor_reports_invalid_settings_as_a_failure() {
    let crib = Crib::new(&[]);
    let mut command = crib.command(&["doctor", "--json"]);
    let found = run(command.env("TOOLCRIB__CACHE__ENABLED", "perhaps"));
    assert_eq!(found.code, Some(1));
    assert!(found.stderr.contains("TOOLCRIB__CACHE__ENABLED"), "{found:?}");
    let findings = found.json()["findings"].as_array().expect("a list").clone();
    assert!(findings.iter().any(|one| one["about"] == "config" && one["verdict"] == "failure"));
}

/// The promises with the numbers of SECURITY.md, one per line.
fn written() -> Vec<String> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../SECURITY.md");
    let text = fs::read_to_string(file).expect("it is there");
    let (_, list) = text.split_once("## The promises\n").expect("a section");
    let (list, _) = list.split_once("\n## ").expect("a section after it");
    let mut promises: Vec<String> = Vec::new();
    for line in list.lines() {
        let numbered = line.split_once(". ").filter(|(number, _)| number.parse::<u8>().is_ok());
        if let Some((_, text)) = numbered {
            promises.push(text.to_owned());
        } else if let Some(last) = promises.last_mut().filter(|_| line.starts_with("   ")) {
            *last = format!("{last} {}", line.trim());
        }
    }
    promises
}

/// The state of promise `number`, with the reason.
fn stands(json: &serde_json::Value, number: usize) -> (String, String) {
    let promise = &json["promises"][number - 1];
    assert_eq!(promise["number"], number);
    let why: Vec<_> = promise["why"].as_array().expect("a list").iter().collect();
    let why = why.iter().map(|why| why.as_str().expect("a text")).collect::<Vec<_>>().join("\n");
    (promise["stands"].as_str().expect("a text").to_owned(), why)
}

#[test]
fn every_promise_of_security_md_is_told_with_how_it_stands_here() {
    let crib = Crib::new(&[]);
    let json = crib.run(&["doctor", "--json"]).json();
    let told: Vec<_> = json["promises"].as_array().expect("a list").iter().collect();
    let texts: Vec<_> = told.iter().map(|promise| promise["promise"].clone()).collect();
    assert_eq!(texts, written());
    for promise in &told {
        let known = ["holds", "holds_in_part", "does_not_hold"];
        assert!(known.iter().any(|stands| promise["stands"] == *stands), "{promise}");
        let reasons = promise["why"].as_array().expect("a list").len();
        assert!(promise["stands"] == "holds" || reasons > 0, "{promise}");
    }
    let screen = crib.run(&["doctor"]).stdout;
    let (_, screen) = screen.split_once("Promises\n").expect("a section");
    for (index, promise) in told.iter().enumerate() {
        let word = promise["stands"].as_str().expect("a text").replace('_', " ");
        let line = format!("  {:>2} {word} ", index + 1);
        assert!(screen.lines().any(|shown| shown.starts_with(&line)), "{line}: {screen}");
    }
}

#[test]
fn settings_decide_whether_promises_hold_and_what_is_not_kept_says_why() {
    let crib = Crib::new(&[]);
    let told = |config: &str| {
        crib.config(config);
        crib.run(&["doctor", "--json"]).json()
    };
    let strict = told("registry: {lock: enforce}\n");
    assert_eq!(stands(&strict, 7), ("holds".into(), String::new()));
    assert_eq!(stands(&strict, 8), ("holds".into(), String::new()));
    let loose =
        told("registry: {lock: warn}\nserver: {no_auth: true}\nsecrets: {pin: {file: pin}}\n");
    let in_part = |number: usize, why: &str| {
        let (stands, said) = stands(&loose, number);
        assert_eq!(stands, "holds_in_part", "{number}: {said}");
        assert!(said.contains(why), "{number}: {said}");
    };
    in_part(7, "`server.no_auth` is set");
    in_part(8, "`registry.lock` is `warn`");
    fs::write(crib.path().join("pin"), "123").expect("it is ours");
    let short = told("secrets: {pin: {file: pin}}\n");
    let (stands_in, why) = stands(&short, 9);
    assert_eq!(stands_in, "holds_in_part");
    assert!(why.contains("less than 4 bytes"), "{why}");
    let open = told("server: {listen: '0.0.0.0:0'}\n");
    assert!(stands(&open, 7).1.contains("which other machines can reach"));
    let broken = told("server: {listn: x}\n");
    assert_eq!(stands(&broken, 7).0, "unknown");
    assert_ne!(stands(&broken, 1).0, "unknown");
}

#[test]
fn doctor_reports_whether_the_control_plane_is_protected() {
    let crib = Crib::new(&[]);
    crib.config("workspace: {root: .}\n");
    let findings = crib.run(&["doctor", "--json"]).json();
    let findings = findings["findings"].as_array().expect("findings");
    let found = findings.iter().find(|finding| finding["about"] == "control plane");
    let found = found.expect("it is there");
    assert_eq!(found["verdict"], "good", "{found}");
    assert!(found["message"].as_str().expect("text").contains("hidden from programs"), "{found}");
}

#[test]
fn doctor_shows_the_error_line_and_last_output_of_a_server_that_is_down() {
    let says = "toolcrib: 1\ntools: []\nupstream:\n  - name: far\n    command: [sh, -c, 'for n in $(seq 30); do \
                echo line $n >&2; done; echo \"error: no such database\" >&2; echo bye >&2; exit 3']\n";
    let crib = Crib::new(&[("far.yaml", says)]);
    crib.config("state: {dir: state}\n");
    let alone = crib.run(&["doctor"]);
    assert!(
        alone.stdout.contains("upstreams: 1 MCP server declared, and no server runs"),
        "{alone:?}"
    );

    let tried = crib.run(&["doctor", "--connect"]);
    assert!(
        tried.stdout.contains("upstreams: far is down: ")
            && tried.stdout.contains("(error: no such database)"),
        "{tried:?}"
    );
    let shown = tried.stdout.lines().filter(|line| line.trim_start().starts_with("| ")).count();
    assert_eq!(shown, 20, "{}", tried.stdout);
    assert!(tried.stdout.contains("| bye") && !tried.stdout.contains("| line 12\n"));

    let mut server = Server::mcp(&crib);
    let told = until(&crib, &["doctor", "--json"], |run| run.stdout.contains("is down"));
    let found = told.json()["findings"].as_array().expect("a list").clone();
    let far = found.iter().find(|one| one["about"] == "upstreams").expect("it is told");
    let pid = server.id().to_string();
    assert!(far["message"].as_str().is_some_and(|text| text.contains(&pid)), "{far}");
    assert_eq!(far["lines"].as_array().map(Vec::len), Some(20));
    assert_eq!(server.call("calculator", &serde_json::json!({"expression": "1"}))["id"], 3);
}

#[test]
fn a_state_folder_behind_a_link_is_refused_by_doctor_as_by_a_server() {
    let crib = Crib::new(&[]);
    let (real, link) = (crib.data().join("real"), crib.data().join("link"));
    fs::create_dir(&real).expect("a folder");
    allow(&real, 0o700);
    std::os::unix::fs::symlink(&real, &link).expect("a link");
    let state = format!("state.dir={}", link.display());
    let doctor = crib.run(&["doctor", "--set", &state]);
    let serve = crib.run(&["serve", "--listen", "127.0.0.1:0", "--set", &state]);
    assert_eq!((doctor.code, serve.code), (Some(1), Some(2)), "{doctor:?} {serve:?}");
    for said in [doctor.stdout.replace("\n           ", " "), serve.stderr] {
        assert!(said.contains("is behind the symbolic link"), "{said}");
        assert!(said.contains(&format!("name {} instead", real.display())), "{said}");
    }
    let direct = format!("state.dir={}", real.display());
    assert_eq!(crib.run(&["doctor", "--set", &direct]).code, Some(0));
}

/// What read-only commands report about the tools and about the control plane.
fn judged(crib: &Crib, path: &str) -> Vec<String> {
    let commands: [&[&str]; 8] = [
        &["list", "--all"],
        &["search", "run a command"],
        &["show", "bash"],
        &["why", "bash"],
        &["check"],
        &["check", "--strict", "--json"],
        &["export"],
        &["lock", "--check"],
    ];
    let look = |arguments: &[&str]| run(crib.command(arguments).env("PATH", path));
    let mut said: Vec<_> = commands
        .into_iter()
        .map(|arguments| format!("{arguments:?}: {:?}", look(arguments)))
        .collect();
    let doctor = look(&["doctor", "--json"]).json();
    let findings = doctor["findings"].as_array().expect("a list").iter();
    let findings = findings.filter(|one| ["tools", "control plane"].contains(&text(&one["about"])));
    said.extend(findings.map(ToString::to_string));
    said
}

fn text(value: &serde_json::Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[test]
fn tools_are_judged_before_the_workspace_exists_as_they_are_afterwards() {
    let crib = Crib::new(&[("a.yaml", TOOLS)]);
    crib.config("workspace: {root: work}\n");
    let system = "/usr/local/bin:/usr/bin:/bin";
    // The server's programs are in the folder that will contain the workspace.
    let beside = format!("{}:{system}", crib.path().display());
    let before = [judged(&crib, system), judged(&crib, &beside)];
    assert!(!crib.path().join("work").exists(), "a command that looks has made it");
    fs::create_dir(crib.path().join("work")).expect("a folder");
    let after = [judged(&crib, system), judged(&crib, &beside)];
    for (before, after) in before.iter().flatten().zip(after.iter().flatten()) {
        assert_eq!(before, after);
    }
    let unavailable =
        |said: &[String]| said.iter().any(|one| one.contains("folder of the server's PATH"));
    assert_eq!(before.each_ref().map(|said| unavailable(said)), [false, true], "{before:#?}");
}

#[test]
fn doctor_names_the_origin_of_the_token() {
    let crib = Crib::new(&[]);
    crib.config("server: {listen: \"127.0.0.1:0\"}\n");
    let mut command = crib.command(&["doctor"]);
    let run = run(command.env("TOOLCRIB_TOKEN", "a-token-of-enough-characters-0123"));
    let screen = run.stdout.replace("\n           ", " ");
    assert!(screen.contains("the token of TOOLCRIB_TOKEN is required"), "{screen}");
}
