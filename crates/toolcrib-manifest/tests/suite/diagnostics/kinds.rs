//! Ways to run that cannot be combined, client tools, and confinement.

use super::{tail, tool, yaml};

#[test]
fn confinement() {
    for (case, sandbox, codes) in [
        ("sandbox_profile", "{profile: workspace-net}", vec!["wrong-type"]),
        ("sandbox_text", "pure", vec!["wrong-type"]),
        ("sandbox_require", "{require: yes}", vec!["wrong-type"]),
        ("sandbox_key", "{profile: pure, required: true}", vec!["unknown-key"]),
        (
            "sandbox_grants",
            "{read: [\"\", \"${args.path}\"], write: [\"*.log\"]}",
            vec!["bad-grant", "bad-grant", "bad-grant"],
        ),
        (
            "sandbox_required_of_trusted",
            "{profile: trusted, require: required}",
            vec!["nothing-required"],
        ),
        ("sandbox_grant_to_trusted", "{profile: trusted, read: [/srv]}", vec!["idle-grant"]),
    ] {
        yaml(case, &tail(&format!("sandbox: {sandbox}")), &codes);
    }
    let request = "http: {url: \"https://a.example/\"}\nsandbox: {profile: pure}";
    yaml("sandbox_of_request", &tool(request), &["not-for-http"]);
}

#[test]
fn tools_that_the_client_runs() {
    let ask = "input: {properties: {filter: {type: string}}}\nclient: true";
    yaml("client_and_run", &tail("client: true"), &["client-and-run"]);
    yaml(
        "not_for_client",
        &tool(&format!("{ask}\ncache: {{}}\ncwd: /\nlimits: {{timeout: 5m, rate: 1/s}}")),
        &["not-for-client", "not-for-client", "not-for-client"],
    );
    yaml(
        "test_of_client",
        &tool(&format!(
            "{ask}\ntests:\n  - {{name: a, expect: {{}}}}\n  - {{name: b, expect: {{error: \
             invalid_args, argv: []}}}}"
        )),
        &["test-of-client", "test-of-client"],
    );
    yaml("out_of_range_client", &tool("client: true\nlimits: {timeout: 0s}"), &["out-of-range"]);
    yaml("wrong_type_client", &tool("client: yes"), &["wrong-type"]);
    yaml("client_false", &tool("client: false"), &["missing-key"]);
    yaml("bad_client", &tool("client: {kind: regex}"), &["bad-client"]);
    yaml(
        "bad_client_input",
        &tool("input: {properties: {filter: {type: string}}}\nclient: {kind: text, pattern: a}"),
        &["bad-client", "bad-client"],
    );
}

#[test]
fn ways_to_run_that_do_not_go_together() {
    yaml(
        "two_ways_to_run",
        &tool("run: {argv: [df], script: ./df.sh, text: 'df', idle: 5m}"),
        &["two-ways-to-run", "not-for-this-run", "not-for-this-run"],
    );
    yaml("no_way_to_run", &tool("run: {env: {A: b}}"), &["missing-key"]);
}
