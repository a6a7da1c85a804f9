//! What a right manifest becomes, in YAML and in TOML.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use serde_json::json;
use toolcrib_manifest::declaration::{ArgvEntry, Keep, OutputFormat};
use toolcrib_manifest::{Loaded, load_str};
use toolcrib_tool::Icon;

#[track_caller]
fn load(file: &str, text: &str) -> Loaded {
    let loaded = load_str(file, text);
    let problems: Vec<String> =
        loaded.diagnostics.iter().map(|found| found.render(file, text, false)).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    loaded
}

const FULL: &str = r#"
# A manifest that uses every key of the format.
toolcrib: 1
requires: '>=0.1'
namespace: k8s
owner: platform-team
defaults: {timeout: 20s, tags: [prod], category: ops}
x-note: free
tools:
  - name: pod_logs
    title: Pod logs
    description: Read the last log lines of one pod.
    version: "1.2"
    tags: [logs]
    annotations: {read_only: true, idempotent: true, open_world: false}
    input:
      properties:
        pod: {type: string, pattern: "^[a-z0-9][a-z0-9.-]{0,252}$"}
        container: {type: string, maxLength: 63}
        lines: {type: integer, minimum: 1, maximum: 2000, default: 200}
        previous: {type: boolean, default: false}
        names: {type: array, items: {type: string}}
      required: [pod]
    output_schema: {type: array}
    input_examples: [{pod: web-1, container: ""}]
    empty_as_absent: [container]
    assert_formats: true
    context:
      cluster: {from: ctx.cluster_name, enum: [dev, stage]}
      trace: {from: ctx.trace, required: false}
    run:
      argv:
        - kubectl
        - "--context=${ctx.cluster}"
        - logs
        - "--tail=${args.lines}"
        - {if: previous, then: ["--previous"]}
        - {if: container, then: ["--container=${args.container}"]}
        - "--"
        - "${args.pod}"
        - {each: names}
      stdin: "by ${ctx.user}, $${literal}"
      env: {KUBECONFIG: "${secret.kubeconfig_path}", ZONE: "${env.TZ}"}
      pass_env: [PATH, HOME]
      ok_exit: [0, 1]
    cwd: /var/empty
    limits: {output: 128KiB}
    needs: {bins: [getent], secrets: [other]}
    output: {format: lines, keep: tail, redact: ["Bearer [A-Za-z0-9._-]+"]}
    parallel: false
    tests:
      - {name: plain, args: {pod: web-1}, ctx: {cluster_name: dev}, expect: {argv_contains: ["--tail=200"]}}
      - {name: smuggling, args: {pod: "--all"}, expect: {error: invalid_args}}
"#;

#[test]
fn every_key_reaches_the_declaration() {
    let loaded = load("k8s.yaml", FULL);
    let [tool] = loaded.declarations.as_slice() else { panic!("one tool") };
    let definition = &tool.definition;
    assert_eq!(definition.name(), "k8s_pod_logs");
    assert_eq!(definition.title(), Some("Pod logs"));
    assert_eq!(definition.category(), "ops");
    assert_eq!(definition.tags(), ["prod", "logs"]);
    assert_eq!(definition.timeout(), Some(Duration::from_secs(20)));
    assert!(!definition.parallel() && definition.assert_formats());
    assert!(definition.annotations().read_only && !definition.annotations().open_world);
    assert_eq!(definition.input_schema()["additionalProperties"], json!(false));
    assert_eq!(definition.input_examples(), [json!({"pod": "web-1", "container": ""})]);
    assert_eq!(definition.injections().len(), 2);
    assert!(!definition.injections()[1].required());
    assert_eq!(tool.context[0].key, "cluster_name");
    assert_eq!(tool.context[0].schema, Some(json!({"enum": ["dev", "stage"]})));
    assert_eq!(tool.context[1].schema, None);
    assert_eq!(tool.command().unwrap().argv.len(), 9);
    assert_eq!(tool.command().unwrap().argv[8], ArgvEntry::Each { argument: "names".to_owned() });
    assert_eq!(tool.command().unwrap().capture_bytes, 128 * 1024);
    assert_eq!(tool.command().unwrap().ok_exit, [0, 1]);
    assert_eq!(tool.needs.bins, ["getent", "kubectl"]);
    assert_eq!(tool.needs.env, ["TZ"]);
    assert_eq!(tool.needs.secrets, ["other", "kubeconfig_path"]);
    assert_eq!((tool.output.format, tool.output.keep), (OutputFormat::Lines, Keep::Tail));
    assert_eq!(tool.owner.as_deref(), Some("platform-team"));
    assert_eq!(tool.origin.to_string(), "k8s.yaml:10:11");
    assert_eq!(tool.tests[0].origin.line, 52);
    assert_eq!(tool.tests[1].expect.error.as_deref(), Some("invalid_args"));
}

/// What a declaration says, without the places, which differ between formats.
fn meaning(loaded: &Loaded) -> Vec<String> {
    let tools = loaded.declarations.iter();
    tools
        .map(|tool| {
            let tests: Vec<_> =
                tool.tests.iter().map(|t| (&t.name, &t.args, &t.ctx, &t.expect)).collect();
            format!(
                "{:#?}",
                (&tool.definition, &tool.body, &tool.needs, &tool.output, &tool.context, tests)
            )
        })
        .collect()
}

#[test]
fn yaml_and_toml_mean_the_same() {
    let pairs = [
        (
            "toolcrib: 1\ntools:\n  - name: up\n    description: Uptime.\n    run: {argv: \
             [uptime]}\n",
            "toolcrib = 1\n[[tools]]\nname = \"up\"\ndescription = \"Uptime.\"\nrun.argv = \
             [\"uptime\"]\n",
        ),
        (
            r#"
toolcrib: 1
namespace: fs
tools:
  - name: tail
    description: |
      Read the end of a file.
      Read-only.
    annotations: {read_only: true}
    input:
      properties:
        path: {type: string, maxLength: 4096}
        lines: {type: integer, minimum: 1, default: 10}
        ratio: {type: number, default: 0.5}
      required: [path]
    run:
      argv: [tail, "-n", "${args.lines}", {if: ratio, then: ["-q"]}, --, "${args.path}"]
      env: {A: "1"}
    limits: {timeout: 5s}
    tests:
      - {name: missing, args: {}, expect: {error: invalid_args}}
  - name: ls
    description: List.
    run: {argv: [ls]}
"#,
            r#"
toolcrib = 1
namespace = "fs"

[[tools]]
name = "tail"
description = """
Read the end of a file.
Read-only.
"""
annotations = { read_only = true }
limits.timeout = "5s"

[tools.input]
required = ["path"]
[tools.input.properties]
path = { type = "string", maxLength = 4096 }
lines = { type = "integer", minimum = 1, default = 10 }
ratio = { type = "number", default = 0.5 }

[tools.run]
argv = ["tail", "-n", "${args.lines}", { if = "ratio", then = ["-q"] }, "--", "${args.path}"]
env = { A = "1" }

[[tools.tests]]
name = "missing"
args = {}
expect = { error = "invalid_args" }

[[tools]]
name = "ls"
description = "List."
run = { argv = ["ls"] }
"#,
        ),
    ];
    for (yaml, toml) in pairs {
        let (yaml, toml) = (load("t.yaml", yaml), load("t.toml", toml));
        assert!(!yaml.declarations.is_empty());
        assert_eq!(meaning(&yaml), meaning(&toml));
    }
}

#[test]
fn anchors_aliases_and_merge_keys_work() {
    let text = "
toolcrib: 1
x-base: &base
  description: From the base.
  run: {argv: &list [ls, -l]}
tools:
  - <<: *base
    name: one
  - {<<: [*base, {title: T}], name: two, description: Its own., run: {argv: *list}}
";
    let loaded = load("t.yaml", text);
    assert_eq!(loaded.declarations[0].definition.description(), "From the base.");
    assert_eq!(loaded.declarations[1].definition.description(), "Its own.");
    assert_eq!(loaded.declarations[1].definition.title(), Some("T"));
    assert_eq!(loaded.declarations[0].body, loaded.declarations[1].body);
}

#[test]
fn aliases_that_explode_are_refused_quickly() {
    let mut text = "toolcrib: 1\nx0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let below = format!("*a{}, ", level - 1).repeat(10);
        writeln!(text, "x{level}: &a{level} [{below}]").unwrap();
    }
    let start = Instant::now();
    let loaded = load_str("bomb.yaml", &text);
    assert_eq!(loaded.diagnostics[0].code, "too-complex");
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_mapping_of_very_many_keys_costs_no_more_than_it_must() {
    let mut text = "toolcrib: 1\ntools: []\n".to_owned();
    for key in 0..60_000 {
        writeln!(text, "x{key}: 1").unwrap();
    }
    let start = Instant::now();
    let loaded = load_str("wide.yaml", &text);
    assert_eq!(loaded.diagnostics.len(), 1_001);
    assert!(loaded.diagnostics.iter().any(|found| found.message.contains("59000 more errors")));
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn a_file_is_taken_whole_or_not_at_all() {
    let text = "
toolcrib: 1
tools:
  - {name: good, description: Good., run: {argv: [ls]}}
  - {name: bad, description: Bad.}
";
    let loaded = load_str("t.yaml", text);
    assert!(loaded.has_errors() && loaded.declarations.is_empty());
}

#[test]
fn the_escape_and_plain_words_survive_where_text_is_expected() {
    let text = "
toolcrib: 1
tools:
  - name: no
    description: yes
    title: on
    run: {argv: [echo, no, $5, '$${HOME}', 12:30:45]}
";
    let loaded = load("t.yaml", text);
    assert_eq!(loaded.declarations[0].definition.title(), Some("on"));
    let ArgvEntry::One(escaped) = &loaded.declarations[0].command().unwrap().argv[3] else {
        panic!()
    };
    assert_eq!(escaped.references().count(), 0);
}

#[test]
fn combined_schemas_declare_arguments_and_stay_closed() {
    let text = "
toolcrib: 1
tools:
  - name: t
    description: D.
    input:
      $defs: {more: {properties: {c: {type: string}}}}
      properties: {a: {type: string}}
      oneOf: [{properties: {b: {type: string}}, required: [b]}, {required: [a]}]
      allOf: [{$ref: '#/$defs/more'}]
    run: {argv: [echo, '${args.a}', '${args.b}', '${args.c}']}
    examples: [{a: x, c: z}]
";
    let loaded = load("t.yaml", text);
    let schema = loaded.declarations[0].definition.input_schema();
    assert_eq!(schema["unevaluatedProperties"], json!(false));
    assert_eq!(schema.get("additionalProperties"), None);
    let broken = text.replace("{a: x, c: z}", "{a: x, d: z}");
    assert_eq!(load_str("t.yaml", &broken).diagnostics[0].code, "bad-example");
}

#[test]
fn a_byte_order_mark_and_windows_line_ends_change_nothing() {
    let text = FULL.trim_start().replace('\n', "\r\n");
    let marked = format!("\u{feff}{text}");
    assert_eq!(meaning(&load("k8s.yaml", &marked)), meaning(&load("k8s.yaml", FULL)));
    let broken = "\u{feff}tolcrib: 1\ntools: []\n";
    let loaded = load_str("t.yaml", broken);
    let unknown = loaded.diagnostics.iter().find(|found| found.code == "unknown-key").unwrap();
    assert_eq!(unknown.position(broken), (1, 1));
}

#[test]
fn a_thousand_small_manifests_load_quickly() {
    let start = Instant::now();
    for _ in 0..1_000 {
        assert!(!load_str("k8s.yaml", FULL).has_errors());
    }
    // Far above what an unoptimised build needs, far below what a square would cost.
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

#[test]
fn the_example_of_the_reference_loads_without_a_word() {
    let reference = include_str!("../../../src/docs/manifest.md");
    let example = reference.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    assert_eq!(load("fs.yaml", example).declarations.len(), 1);
}

#[test]
fn prompts_and_resources_are_read_without_tools() {
    let loaded = load_str(
        "offer.yaml",
        "toolcrib: 1\nnamespace: ops\nprompts:\n  - name: review\n    description: Review a \
         change.\n    \
         arguments: [{name: language, required: true}]\n    messages:\n      \
         - {role: assistant, text: \"In ${args.language}.\"}\nresources:\n  - template: \
         notes://{day}\n    name: notes\n    text: \"Of ${args.day}\"\n    suggest: {day: [monday]}\n",
    );
    assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
    let prompt = &loaded.prompts[0];
    assert_eq!((prompt.name.as_str(), prompt.origin.line), ("ops_review", 4));
    assert!(prompt.arguments[0].required && prompt.messages[0].by_assistant);
    let resource = &loaded.resources[0];
    assert_eq!(resource.variables, ["day"]);
    assert_eq!((resource.mime_type.as_str(), resource.suggest["day"].len()), ("text/plain", 1));
}

#[test]
fn tools_prompts_and_resources_have_icons() {
    let icons = "icons: [{src: 'https://example.org/i.png', sizes: [48x48], theme: dark}, \
                 {src: 'data:image/png;base64,aGk=', mime_type: image/png}]";
    let loaded = load_str(
        "icons.yaml",
        &format!(
            "toolcrib: 1\ntools:\n  - name: t\n    description: D.\n    run: {{argv: [ls]}}\n    \
             {icons}\nprompts:\n  - name: p\n    description: D.\n    messages: [{{role: user, text: \
             T}}]\n    {icons}\nresources:\n  - uri: a://b\n    name: r\n    text: T\n    {icons}\n"
        ),
    );
    assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
    let wanted = [
        json!({"src": "https://example.org/i.png", "sizes": ["48x48"], "theme": "dark"}),
        json!({"src": "data:image/png;base64,aGk=", "mimeType": "image/png"}),
    ];
    let tool = &loaded.declarations[0].definition;
    for icons in [tool.icons(), &loaded.prompts[0].icons, &loaded.resources[0].icons] {
        assert_eq!(icons.iter().map(Icon::to_value).collect::<Vec<_>>(), wanted);
    }
}

#[test]
fn a_tab_is_shown_where_it_stands() {
    for text in
        ["toolcrib: 1\ntools:\n  - name: a\n\tdescription: b\n", "toolcrib: 1\n\ttools: []\n"]
    {
        let loaded = load_str("t.yaml", text);
        let found = loaded.diagnostics.first().expect("it is refused");
        assert_eq!(found.message, "YAML does not allow a tab here");
        assert_eq!(Some(found.span.start), text.find('\t'), "{text}");
    }
}

#[test]
fn a_manifest_with_nothing_in_it_says_how_one_begins() {
    for text in ["", "\n\n", "# only a comment\n", "---\n"] {
        let loaded = load_str("t.yaml", text);
        let [found] = loaded.diagnostics.as_slice() else { panic!("{:?}", loaded.diagnostics) };
        assert_eq!(found.message, "this manifest is empty", "{text:?}");
        assert!(found.help.as_deref().is_some_and(|help| help.contains("toolcrib: 1")));
    }
}
