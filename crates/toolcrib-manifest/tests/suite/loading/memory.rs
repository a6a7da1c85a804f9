//! `limits.memory`: of a tool, of a file's `defaults`, and of an upstream.

use toolcrib_manifest::declaration::UpstreamTransport;
use toolcrib_manifest::load_str;

const RUN: &str = "run: {argv: [\"true\"]}";

fn tool(lines: &str) -> String {
    format!("toolcrib: 1\ntools: [{{name: t, description: A tool., {lines}}}]\n")
}

fn codes(text: &str) -> Vec<&'static str> {
    load_str("tools.yaml", text).diagnostics.iter().map(|found| found.code).collect()
}

#[test]
fn memory_is_a_limit_of_the_tool_of_the_file_or_of_the_upstream() {
    let of_tool = |text: &str| {
        let loaded = load_str("tools.yaml", text);
        assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
        loaded.declarations[0].sandbox.memory
    };
    assert_eq!(of_tool(&tool(RUN)), None);
    assert_eq!(of_tool(&tool(&format!("{RUN}, limits: {{memory: 64MiB}}"))), Some(64 << 20));
    let shared = |lines: &str| format!("defaults: {{memory: 1GiB}}\n{}", tool(lines));
    assert_eq!(of_tool(&shared(RUN)), Some(1 << 30));
    assert_eq!(of_tool(&shared(&format!("{RUN}, limits: {{memory: 4GiB}}"))), Some(4 << 30));

    let upstream =
        "toolcrib: 1\nupstream: [{name: u, command: [server], limits: {memory: 512MiB}}]\n";
    let loaded = load_str("tools.yaml", upstream);
    let transport = &loaded.upstreams[0].transport;
    let UpstreamTransport::Stdio(stdio) = transport else { panic!("{transport:?}") };
    assert_eq!(stdio.sandbox.memory, Some(512 << 20));
}

#[test]
fn memory_is_refused_where_it_means_nothing() {
    assert_eq!(codes(&tool(&format!("{RUN}, limits: {{memory: 1MiB}}"))), ["out-of-range"]);
    assert_eq!(codes(&tool(&format!("{RUN}, limits: {{memory: lots}}"))), ["wrong-type"]);
    let request = "http: {url: \"https://a.example/x\"}, limits: {memory: 1GiB}";
    assert_eq!(codes(&tool(request)), ["not-for-http"]);
    assert_eq!(codes(&tool("client: true, limits: {memory: 1GiB}")), ["not-for-client"]);
    let upstream = "{name: u, url: \"https://a.example/mcp\", limits: {memory: 1GiB}}";
    assert_eq!(codes(&format!("toolcrib: 1\nupstream: [{upstream}]\n")), ["not-for-upstream"]);
}
