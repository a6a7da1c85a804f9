//! Keys: unknown and missing ones, values of the wrong type, names and descriptions.

use super::{run, tail, yaml};

#[test]
fn keys_and_types() {
    yaml(
        "duplicate_keys_all_at_once",
        "toolcrib: 1\nowner: a\nowner: b\ntools: []\nowner: c\ntools: []\n",
        &["duplicate-key", "duplicate-key", "duplicate-key"],
    );
    yaml("unknown_key", &tail("anotations: {read_only: true}"), &["unknown-key"]);
    yaml("unknown_key_instead", &tail("timeout: 5s"), &["unknown-key"]);
    yaml("unknown_key_instead_unusable", &tail("timeout: [soon]"), &["unknown-key"]);
    yaml(
        "limits_in_run",
        &run("argv: [tail, \"${args.path}\", {each: names}]\nlimits: {timeout: 5s}"),
        &["unknown-key"],
    );
    yaml(
        "missing_keys",
        "tools:\n  - title: x\n",
        &["missing-key", "missing-key", "missing-key", "missing-key"],
    );
    yaml("wrong_type_boolean", &tail("annotations: {read_only: yes}"), &["wrong-type"]);
    yaml("wrong_type_text", &tail("version: 1.10"), &["wrong-type"]);
    yaml("wrong_type_duration", &tail("limits: {timeout: 30}"), &["wrong-type"]);
    yaml("wrong_type_size", &tail("limits: {output: 64K}"), &["wrong-type"]);
    yaml("wrong_type_choice", &tail("output: {format: jsn}"), &["wrong-type"]);
    yaml("wrong_type_list", &tail("tags: prod"), &["wrong-type"]);
    yaml("wrong_type_empty", "toolcrib: 1\ntools:\n", &["wrong-type"]);
    yaml("wrong_type_root", "just text\n", &["wrong-type"]);
    yaml(
        "out_of_range_timeout",
        &tail("limits: {timeout: none, output: 2MiB}"),
        &["out-of-range", "out-of-range"],
    );
    yaml(
        "out_of_range_exit",
        &run("argv: [tail, \"${args.path}\", {each: names}]\nok_exit: [0, 256]"),
        &["out-of-range"],
    );
}

#[test]
fn names_and_descriptions() {
    yaml("bad_name", &tail("").replace("name: tail", "name: tail the log"), &["bad-name"]);
    yaml("bad_namespace", "toolcrib: 1\nnamespace: k8s/prod\ntools: []\n", &["bad-namespace"]);
    let long = tail("").replace("tools:", &format!("namespace: {}\ntools:", "n".repeat(60)));
    yaml("name_too_long", &long, &["name-too-long"]);
    yaml("bad_description", &tail("").replace("Read a file.", "'  '"), &["bad-description"]);
    let twice = tail("") + "  - name: tail\n    description: Again.\n    run: {argv: [ls]}\n";
    yaml("duplicate_tool", &twice, &["duplicate-tool"]);
}

#[test]
fn policies_and_limits_of_the_wrong_shape() {
    const REPEATABLE: &str = "annotations: {read_only: true, idempotent: true}";
    let tail = |lines: &str| tail(&format!("{REPEATABLE}\n{lines}"));
    yaml("wrong_type_cache", &tail("cache: 5s"), &["wrong-type"]);
    yaml("wrong_type_ttl", &tail("cache: {ttl: 5}"), &["wrong-type"]);
    yaml(
        "out_of_range_ttl",
        &tail("cache: {ttl: none}\nretry: {max: 0}"),
        &["out-of-range", "out-of-range"],
    );
    yaml("out_of_range_backoff", &tail("retry: {max: 2, backoff: 5m}"), &["out-of-range"]);
    yaml("retry_without_max", &tail("retry: {backoff: 1s}"), &["missing-key"]);
    yaml("unknown_key_retry", &tail("retry: {max: 2, exit: [7]}"), &["unknown-key"]);
    yaml("unknown_key_cache", &tail("cache: {tll: 5s}"), &["unknown-key"]);
    yaml("unknown_key_concurrent", &tail("max_concurrent: 2"), &["unknown-key"]);
    yaml("wrong_type_dedupe", &tail("dedupe: sesion"), &["wrong-type"]);
    yaml("wrong_type_approval", &tail("approval: true"), &["wrong-type"]);
    yaml("wrong_type_resources", &tail("resources: [logs]"), &["wrong-type"]);
    yaml("wrong_type_rate", &tail("limits: {rate: 30/minute}"), &["wrong-type"]);
    yaml("out_of_range_concurrent", &tail("limits: {concurrent: 0}"), &["out-of-range"]);
}

#[test]
fn defaults_are_checked_though_no_tool_uses_them() {
    let text = "toolcrib: 1
defaults: {concurrent: 0, cache: {ttl: 0s}, limits: {rate: 1/s}, aproval: always}
tools: []
";
    yaml("defaults", text, &["out-of-range", "out-of-range", "unknown-key", "unknown-key"]);
}

#[test]
fn answers_that_must_not_be_kept_and_calls_that_must_not_be_repeated() {
    yaml("uncacheable", &tail("cache: {ttl: 5s}"), &["uncacheable-tool"]);
    yaml(
        "uncacheable_said",
        &tail("annotations: {read_only: true}\ncache: {ttl: 5s}"),
        &["uncacheable-tool"],
    );
    yaml("session_replay_of_a_writer", &tail("dedupe: session"), &["uncacheable-tool"]);
    yaml(
        "unrepeatable",
        &tail("annotations: {idempotent: false}\nretry: {max: 2}"),
        &["unrepeatable-tool"],
    );
    yaml(
        "read_only_writes",
        &tail("annotations: {read_only: true}\nresources: {reads: [logs], writes: [logs]}"),
        &["read-only-writes"],
    );
    yaml("bad_resource", &tail("resources: {reads: ['']}"), &["bad-resource"]);
    yaml(
        "idle_approval",
        &tail("annotations: {destructive: false}\napproval: destructive"),
        &["idle-approval"],
    );
    yaml(
        "retried_success",
        &run("argv: [tail, \"${args.path}\", {each: names}]\nretry_exit: [7, 0]"),
        &["retried-success"],
    );
}
