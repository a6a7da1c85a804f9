//! `toolcrib show`: the limits of a tool, who approves its calls, and what a call runs.

use crate::harness::crib::Crib;

const TAIL: &str = r#"
toolcrib: 1
tools:
  - name: tail_log
    description: Print the end of a log. Read-only.
    annotations: {read_only: true, idempotent: true, open_world: false}
    input:
      properties:
        lines: {type: integer, minimum: 1, maximum: 500, default: 50}
        unit: {type: string, pattern: "^[a-z]+$", minLength: 2, maxLength: 40}
      required: [unit]
    limits: {timeout: 7s, concurrent: 2, rate: 30/min}
    cache: {ttl: 5m}
    retry: {max: 2}
    approval: always
    sandbox: {profile: workspace, read: [/var/log]}
    run:
      argv: [tail, "--lines=${args.lines}", "/var/log/${args.unit}.log"]
      env: {TOKEN: "${secret.log_token}"}
  - name: get_ticket
    description: Fetch a ticket. Read-only.
    annotations: {read_only: true}
    input: {properties: {id: {type: string}}, required: [id]}
    http:
      url: "https://tickets.example/api/${args.id}?full=1"
      auth: {bearer: "${secret.ticket_token}"}
"#;

#[test]
fn show_tells_bounds_limits_approval_confinement_and_what_would_run() {
    let crib = Crib::new(&[("tail.yaml", TAIL)]);
    crib.config(
        "state: {dir: state}\nsecrets: {log_token: {env: LOG_TOKEN}, ticket_token: {env: TICKETS}}\n",
    );
    let run = |arguments: &[&str]| {
        let mut command = crib.command(arguments);
        crate::harness::crib::run(
            command.env("LOG_TOKEN", "not-to-be-shown-1").env("TICKETS", "not-shown-2"),
        )
    };
    let shown = run(&["show", "tail_log"]);
    insta::assert_snapshot!(shown.stdout, @r#"
    tail_log
    Print the end of a log. Read-only.

    Arguments
      lines (integer, optional, default 50)
          at least 1, at most 500
      unit (string, required)
          at least 2 characters, at most 40 characters, matches ^[a-z]+$

    A call
      runs     "tail" "--lines=${args.lines}" "/var/log/${args.unit}.log"
      profile  workspace
      read     /var/log
      env      TOKEN="${secret.log_token}"
      secrets  log_token
      approval every call needs it (the tool's own `approval`)
      timeout  7s
      at once  at most 2 calls
      rate     30/min
      cache    answers are kept for 5m, for the same caller
      retry    at most 2 more attempts

    changes nothing; stays on this host; from manifest tools.d/tail.yaml:4:11
    declaration digest blake3:5a7122b0fbdd968c126c43e04ddbdcc2708ad2942417710153251dc6cdd197a8
    "#);
    let request = run(&["show", "get_ticket"]).stdout;
    assert!(request.contains("GET https://tickets.example/api/${args.id}?full=1"), "{request}");
    assert!(request.contains("secrets  ticket_token"), "{request}");

    let json = run(&["show", "tail_log", "--json"]).json();
    assert_eq!(json["input_schema"]["properties"]["lines"]["maximum"], 500);
    assert_eq!(json["timeout_seconds"], 7.0);
    assert_eq!((&json["max_concurrent"], &json["rate"]), (&2.into(), &"30/min".into()));
    assert_eq!(json["decision"]["action"], "ask");
    assert_eq!(json["confinement"]["profile"], "workspace");
    assert_eq!(json["runs"]["command"]["argv"][0], "tail");
    assert_eq!(json["secrets"][0], "log_token");
    for text in [shown.stdout, request, json.to_string()] {
        assert!(!text.contains("not-to-be-shown") && !text.contains("not-shown-2"), "{text}");
    }
}

#[test]
fn show_names_standard_input_and_that_a_worker_keeps_running() {
    let text = r#"
toolcrib: 1
tools:
  - name: count
    description: Count the words of a text. Read-only.
    annotations: {read_only: true, idempotent: true, open_world: false}
    input: {properties: {text: {type: string}}, required: [text]}
    run: {argv: [wc, -w], stdin: "${args.text}"}
  - name: geo
    description: Find the country of a place. Read-only.
    annotations: {read_only: true, idempotent: true, open_world: false}
    run: {worker: [python3, ./geo.py], idle: 7m}
"#;
    let crib = Crib::new(&[("text.yaml", text)]);
    let shown = crib.run(&["show", "count"]).stdout;
    assert!(shown.contains("stdin    ${args.text}"), "{shown}");
    crib.write("geo.py", "print()\n");
    let shown = crib.run(&["show", "geo"]).stdout;
    assert!(shown.contains("worker   started once") && shown.contains("after 7m"), "{shown}");
    assert!(shown.contains("file     ") && !shown.contains("/./"), "{shown}");
}

#[test]
fn why_says_that_every_call_needs_approval_and_what_asks_for_it() {
    let crib = Crib::new(&[("tail.yaml", TAIL)]);
    let rule = "policy: {rules: [{tool: get_*, action: ask}, {tool: calculator, action: deny}]}\n";
    crib.config(&format!(
        "{rule}secrets: {{log_token: {{env: HOME}}, ticket_token: {{env: HOME}}}}\n"
    ));
    let why = crib.run(&["why", "tail_log"]).stdout;
    assert!(why.contains("it can be called; every call needs approval (the tool"), "{why}");
    let why = crib.run(&["why", "get_ticket", "--json"]).json();
    assert_eq!(why["approval_by"], "policy.rules[0]", "{why}");
    let shown = crib.run(&["show", "calculator"]).stdout;
    assert!(shown.contains("approval every call is denied"), "{shown}");
    assert!(shown.contains("code of this program"), "{shown}");
}

#[test]
fn an_unknown_name_is_an_error_in_json_and_no_result_of_a_call() {
    let crib = Crib::new(&[]);
    let run = crib.run(&["show", "calculatr", "--json"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    let json = run.json();
    assert_eq!(json.as_object().map(serde_json::Map::len), Some(1), "{json}");
    assert_eq!(json["error"]["kind"], "not_found");
    assert!(json["error"]["message"].as_str().is_some_and(|text| text.contains("calculatr")));
    assert!(json["error"]["hints"].to_string().contains("calculator"), "{json}");
}

#[test]
fn a_name_without_similar_names_gets_the_listing_command() {
    let run = Crib::new(&[]).run(&["show", "zzzzqqqq"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains("(zzzzqqqq). `toolcrib list --all` names all tools"), "{run:?}");
}

#[test]
fn a_read_only_tool_is_not_destructive_on_any_screen() {
    let manifest = TAIL.replace("{profile: workspace, read: [/var/log]}", "{profile: trusted}");
    let crib = Crib::new(&[("tail.yaml", &manifest)]);
    crib.config("state: {dir: state}\n");
    let shown = crib.run(&["show", "tail_log", "--json"]).json();
    assert_eq!(shown["annotations"]["destructive"], false, "{shown}");
    assert_eq!(shown["annotations"]["read_only"], true, "{shown}");
    let trust = crib.run(&["trust", "tools.d/tail.yaml"]);
    let said = format!("{}{}", trust.stdout, trust.stderr);
    assert!(said.contains("/annotations/read_only = true"), "{trust:?}");
    assert!(said.contains("/annotations/destructive = false"), "{trust:?}");
    let exported = crib.run(&["export", "--format", "mcp"]);
    let exported = exported.json();
    let tools = exported.as_array().expect("a list").iter();
    for tool in tools.filter(|tool| tool["annotations"]["readOnlyHint"] == true) {
        assert_eq!(tool["annotations"]["destructiveHint"], false, "{tool}");
    }
}
