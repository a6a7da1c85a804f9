//! Catalogues of thousands of tools: all of them are loaded, and `check` uses all processors.
//!
//! The regular run uses a few hundred tools. `.ci/long catalogue` uses 10,000, or the definitions of the file that
//! `TOOLCRIB_CATALOGUE` names: one JSON object per line with `name`, `description` and `input_schema`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::time::Instant;

use serde_json::{Value, json};

use crate::harness::crib::{Crib, Run, run};

/// The number of generated tools.
fn number() -> usize {
    let said = std::env::var("TOOLCRIB_CATALOGUE_TOOLS").ok();
    said.and_then(|number| number.parse().ok()).unwrap_or(300)
}

/// The tested definitions: those of a file, or generated ones of which every 50th has a mistake.
fn definitions() -> Vec<Value> {
    if let Some(path) = std::env::var_os("TOOLCRIB_CATALOGUE") {
        let text = fs::read_to_string(path).expect("the file of TOOLCRIB_CATALOGUE can be read");
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        return lines.map(|line| serde_json::from_str(line).expect("a JSON object")).collect();
    }
    let definition = |at: usize| {
        let kind = if at % 50 == 7 { "strnig" } else { "string" };
        let properties = json!({
            "query": {"type": kind, "description": "What to look for."},
            "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 10},
            "tags": {"type": "array", "items": {"type": "string"}},
        });
        json!({
            "name": format!("search_{at}"),
            "description": format!("Search part {at} of the archive. Read-only. Not for the web."),
            "input_schema": {"type": "object", "properties": properties, "required": ["query"]},
        })
    };
    (0..number()).map(definition).collect()
}

/// The definition as a manifest of a tool that the client runs. Names are made unique and valid.
fn manifest(at: usize, definition: &Value) -> String {
    let name = definition["name"].as_str().unwrap_or("tool");
    let name: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '_' })
        .take(50)
        .collect();
    let mut input = definition["input_schema"].clone();
    if let Some(schema) = input.as_object_mut() {
        schema.entry("additionalProperties").or_insert(json!(true));
    }
    let tool = json!({
        "name": format!("{name}_{at}"),
        "description": definition["description"].as_str().unwrap_or_default(),
        "input": input,
        "client": true,
    });
    // JSON is YAML.
    json!({"toolcrib": 1, "tools": [tool]}).to_string()
}

/// A run of `check` with a longer time limit.
fn check(crib: &Crib, arguments: &[&str]) -> Run {
    let mut command = crib.command(&[&["check"], arguments].concat());
    run(command.timeout(std::time::Duration::from_secs(600)))
}

#[test]
fn every_definition_of_a_catalogue_is_loaded_or_refused_with_a_reason() {
    let crib = Crib::new(&[]);
    let definitions = definitions();
    for (at, definition) in definitions.iter().enumerate() {
        crib.write(&format!("d{at:05}.yaml"), &manifest(at, definition));
    }
    let begun = Instant::now();
    let checked = check(&crib, &["--json"]);
    let took = begun.elapsed();
    let found = checked.json();
    let problems = found["diagnostics"].as_array().expect("a list");
    let errors: Vec<&Value> =
        problems.iter().filter(|problem| problem["severity"] == "error").collect();
    let refused: BTreeSet<&str> =
        errors.iter().filter_map(|problem| problem["file"].as_str()).collect();
    let loaded = usize::try_from(found["tools"].as_u64().expect("a number")).expect("it fits");
    let reasons: BTreeSet<&str> =
        errors.iter().filter_map(|problem| problem["code"].as_str()).collect();
    eprintln!(
        "{} definitions: {loaded} loaded, {} refused ({}), in {took:.1?}",
        definitions.len(),
        refused.len(),
        reasons.into_iter().collect::<Vec<_>>().join(", ")
    );
    assert_eq!(loaded + refused.len(), definitions.len(), "none is lost");
    assert_eq!(found["files"], definitions.len());
    for problem in errors {
        let message = problem["message"].as_str().unwrap_or_default();
        assert!(!message.is_empty() && problem["line"].as_u64() > Some(0), "{problem}");
    }
    // Every loaded tool has its own name and is listed.
    let listed = crib.run(&["list", "--json"]).json();
    let listed = listed["tools"].as_array().expect("a list");
    let own = listed.iter().filter(|tool| tool["layer"] == "manifest").count();
    assert_eq!(own, loaded);
}

/// A typical tool with everything that is checked: a schema with patterns, and an argument vector.
fn written(at: usize) -> String {
    format!(
        r#"  - name: tool_{at}
    description: Show the last log lines of one pod number {at}. Read-only. Not for events.
    annotations: {{read_only: true, idempotent: true, open_world: false}}
    input:
      properties:
        pod: {{type: string, pattern: "^[a-z0-9][a-z0-9.-]{{0,252}}$", description: The pod.}}
        lines: {{type: integer, minimum: 1, maximum: 2000, default: 200, description: How many.}}
        previous: {{type: boolean, default: false, description: Of the run before.}}
      required: [pod]
    run: {{argv: [kubectl, logs, "--tail=${{args.lines}}", {{if: previous, then: ["--previous"]}}, "--", "${{args.pod}}"]}}
"#
    )
}

#[test]
fn many_tools_in_ten_files_are_checked_by_all_processors() {
    let crib = Crib::new(&[]);
    let number = number();
    for file in 0..10 {
        let mut text = "toolcrib: 1\ntools:\n".to_owned();
        for at in (file..number).step_by(10) {
            let _ = write!(text, "{}", written(at));
        }
        crib.write(&format!("t{file}.yaml"), &text);
    }
    let program = env!("CARGO_BIN_EXE_toolcrib");
    // Wall and processor time, measured by the shell.
    let measured = |before: &str| {
        let script = format!(
            "TIMEFORMAT='%R %U %S'; time {before} {program} check --json > out.json 2> err.txt"
        );
        let mut bash = assert_cmd::Command::new("bash");
        let bash = bash.current_dir(crib.path()).args(["-c", &script]).env("HOME", crib.home());
        let timed = run(bash.env("XDG_STATE_HOME", crib.state_home()));
        let seconds: Vec<f64> =
            timed.stderr.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [wall, user, system] = seconds.as_slice() else { panic!("{timed:?}") };
        let text = fs::read_to_string(crib.path().join("out.json")).expect("it is written");
        let found: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!((&found["tools"], &found["errors"]), (&json!(number), &json!(0)), "{before}");
        (*wall, user + system)
    };
    let all = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let (one, every) = (measured("taskset -c 0"), measured(""));
    eprintln!("{number} tools in ten files  processors  wall s  processor s");
    eprintln!("{:>34}  {:>6.2}  {:>11.2}", 1, one.0, one.1);
    eprintln!("{all:>34}  {:>6.2}  {:>11.2}", every.0, every.1);
    // On a busy machine nothing can be measured, and a few hundred tools take no time.
    if std::env::var_os("TOOLCRIB_CATALOGUE_TOOLS").is_some() && all >= 4 {
        assert!(every.0 < one.0 * 0.6, "{every:?} against {one:?}");
    }
}
