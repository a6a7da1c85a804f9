//! Other MCP servers in manifests: what a declaration holds, and every diagnostic about one.

use std::time::Duration;

use toolcrib_manifest::declaration::{NamePattern, UpstreamDeclaration, UpstreamTransport};
use toolcrib_manifest::load_str;
use toolcrib_manifest::template::Reference;
use toolcrib_tool::Approval;

use crate::diagnostics::shows;

/// A manifest with one upstream that has these lines beside its name.
fn upstream(lines: &str) -> String {
    let mut text = "toolcrib: 1\nupstream:\n  - name: github\n".to_owned();
    for line in lines.lines() {
        text.push_str("    ");
        text.push_str(line);
        text.push('\n');
    }
    text
}

#[track_caller]
fn refused(case: &str, lines: &str, codes: &[&str]) {
    shows(case, "up.yaml", &upstream(lines), codes);
}

#[track_caller]
fn loaded(text: &str) -> Vec<UpstreamDeclaration> {
    let loaded = load_str("up.yaml", text);
    let shown: Vec<_> =
        loaded.diagnostics.iter().map(|found| found.render("up.yaml", text, false)).collect();
    assert!(shown.is_empty(), "{}", shown.join("\n"));
    loaded.upstreams
}

#[test]
fn a_file_may_hold_nothing_but_upstreams() {
    let upstreams = loaded(&upstream("command: [github-mcp-server, stdio]"));
    let [github] = upstreams.as_slice() else { panic!("{upstreams:?}") };
    assert_eq!(github.name, "github");
    assert_eq!(github.connect_timeout, Duration::from_secs(30));
    assert_eq!((github.timeout, github.approval), (None, Approval::Never));
    assert!(!github.trust_annotations);
    assert_eq!((github.origin.line, github.origin.column), (3, 11));
}

#[test]
fn everything_said_of_a_started_server_is_in_its_declaration() {
    let text = "
toolcrib: 1
namespace: dev
owner: platform
defaults: {timeout: 20s, tags: [prod], category: code, approval: destructive}
upstream:
  - name: github
    command: [npx, -y, '@acme/server', \"--root=${env.ROOT}\"]
    env: {GITHUB_TOKEN: \"${secret.github}\", MODE: plain}
    pass_env: [HOME]
    cwd: srv
    tools: {include: ['get_*'], exclude: [get_secret]}
    trust_annotations: true
    connect_timeout: 2m
    limits: {concurrent: 4, rate: 30/min}
    tags: [git]
    approval: always
";
    let upstreams = loaded(text);
    let [github] = upstreams.as_slice() else { panic!("{upstreams:?}") };
    assert_eq!(github.name, "dev_github");
    assert_eq!(github.timeout, Some(Duration::from_secs(20)));
    assert_eq!(github.connect_timeout, Duration::from_secs(120));
    assert_eq!(github.concurrent, Some(4));
    assert_eq!(github.rate, "30/min".parse().ok());
    assert_eq!(
        (github.tags.join(","), github.category.as_deref()),
        ("prod,git".into(), Some("code"))
    );
    assert_eq!((github.approval, github.trust_annotations), (Approval::Always, true));
    let patterns = |list: &[NamePattern]| {
        list.iter().map(|own| own.pattern.as_str()).collect::<Vec<_>>().join(",")
    };
    assert_eq!(
        (patterns(&github.tools.include), patterns(&github.tools.exclude)),
        ("get_*".into(), "get_secret".into())
    );
    assert_eq!(
        (github.needs.env.join(","), github.needs.secrets.join(",")),
        ("ROOT".into(), "github".into())
    );
    let UpstreamTransport::Stdio(server) = &github.transport else { panic!("{github:?}") };
    assert_eq!(server.argv.len(), 4);
    assert_eq!(
        server.env["GITHUB_TOKEN"].as_single_reference(),
        Some(&Reference::Secret("github".into()))
    );
    assert_eq!(server.pass_env, ["HOME"]);
    assert_eq!(server.cwd.as_deref(), Some(std::path::Path::new("srv")));
}

#[test]
fn everything_said_of_a_server_over_http_is_in_its_declaration() {
    let upstreams = loaded(&upstream(
        "url: https://mcp.example.com/mcp\nauth: {bearer: \"${secret.token}\"}\n\
         headers: {X-Team: ops}\nallow_private: [10.20.0.0/16, '::1/128']",
    ));
    let UpstreamTransport::Http(server) = &upstreams[0].transport else { panic!("{upstreams:?}") };
    assert_eq!(server.url, "https://mcp.example.com/mcp");
    assert!(server.bearer.is_some() && server.headers.contains_key("X-Team"));
    assert_eq!(server.allow_private, ["10.20.0.0/16", "::1/128"].map(|net| net.parse().unwrap()));
}

#[test]
fn overrides_of_tools_are_read_with_their_places_and_bound_into_the_digest() {
    let text = "
toolcrib: 1
upstream:
  - name: github
    command: [server]
    tools:
      prefix: gh
      include: ['get_*']
      override:
        get_issue:
          name: issue
          title: Issue
          description: Read one issue.
          annotations: {read_only: true, open_world: false}
        get_all: {approval: always}
";
    let upstreams = loaded(text);
    let tools = &upstreams[0].tools;
    assert_eq!(tools.prefix.as_deref(), Some("gh"));
    let issue = &tools.overrides["get_issue"];
    assert_eq!(issue.name.as_deref(), Some("issue"));
    assert_eq!(issue.title.as_deref(), Some("Issue"));
    assert_eq!(issue.description.as_deref(), Some("Read one issue."));
    assert_eq!((issue.annotations.read_only, issue.annotations.destructive), (Some(true), None));
    assert_eq!((issue.approval, issue.origin.line, issue.origin.column), (None, 10, 9));
    assert_eq!(tools.overrides["get_all"].approval, Some(Approval::Always));
    assert_eq!((tools.include[0].origin.line, tools.include[0].origin.column), (8, 17));

    let digest = upstreams[0].digest();
    let moved = loaded(&text.replace("\nupstream", "\n# moved\nupstream"));
    assert_eq!(moved[0].digest(), digest, "the place is not part of it");
    for (one, other) in [
        ("prefix: gh", "prefix: hub"),
        ("name: issue", "name: ticket"),
        ("title: Issue", "title: Ticket"),
        ("Read one issue.", "Read it."),
        ("read_only: true", "read_only: false"),
        ("approval: always", "approval: never"),
    ] {
        assert_ne!(loaded(&text.replace(one, other))[0].digest(), digest, "{other}");
    }
    assert_eq!(
        loaded(&upstream("command: [s]\ntools: {prefix: ''}"))[0].tools.prefix,
        Some(String::new())
    );
}

#[test]
fn what_is_offered_besides_tools_is_read_and_bound_into_the_digest() {
    let text = "
toolcrib: 1
upstream:
  - name: github
    command: [server]
    resources: {include: ['docs://*'], exclude: ['docs://secret/*']}
    prompts: {include: ['review_*']}
";
    let upstreams = loaded(text);
    let prompts = upstreams[0].prompts.as_ref().expect("they are offered");
    assert_eq!((prompts.include[0].pattern.as_str(), prompts.exclude.len()), ("review_*", 0));
    let digest = upstreams[0].digest();
    for (one, other) in [
        ("review_*", "*"),
        ("{include: ['review_*']}", "{}"),
        ("    prompts: {include: ['review_*']}\n", ""),
        ("docs://secret/*", "docs://other/*"),
    ] {
        assert_ne!(loaded(&text.replace(one, other))[0].digest(), digest, "{other}");
    }
}

#[test]
fn overrides_that_cannot_hold_are_refused_at_their_place() {
    let long = "x".repeat(60);
    for (lines, code) in [
        ("tools: {prefix: 'a b'}", "bad-name"),
        ("tools: {override: {'get_*': {name: x}}}", "bad-pattern"),
        ("tools: {override: {get: {name: 'a b'}}}", "bad-name"),
        ("tools: {override: {get: {description: ' '}}}", "bad-description"),
        ("tools: {override: {get: {name: x}, put: {name: x}}}", "duplicate-tool"),
        ("tools: {override: {get: {nam: x}}}", "unknown-key"),
        (&format!("tools: {{override: {{get: {{name: {long}}}}}}}"), "name-too-long"),
        (&format!("tools: {{prefix: {long}}}"), "name-too-long"),
    ] {
        let text = upstream(&format!("command: [s]\n{lines}"));
        let loaded = load_str("up.yaml", &text);
        let codes: Vec<_> = loaded.diagnostics.iter().map(|found| found.code).collect();
        assert_eq!(codes, [code], "{lines}");
    }
}

#[test]
fn an_upstream_in_toml_is_the_same() {
    let text = "toolcrib = 1\n[[upstream]]\nname = 'github'\ncommand = ['server']\n";
    let loaded = load_str("up.toml", text);
    assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
    assert_eq!(loaded.upstreams[0].name, "github");
}

#[test]
fn a_broken_file_names_no_upstreams() {
    let text = upstream("command: [server]") + "    colour: red\n";
    assert!(load_str("up.yaml", &text).upstreams.is_empty());
}

#[test]
fn how_a_server_is_reached() {
    shows("upstream_neither_tools", "up.yaml", "toolcrib: 1\nowner: a\n", &["missing-key"]);
    refused("upstream_no_transport", "tags: [a]", &["missing-key"]);
    refused(
        "upstream_both_transports",
        "command: [server]\nurl: https://a.example/mcp",
        &["command-and-url"],
    );
    refused("upstream_command_text", "command: npx -y server", &["wrong-type"]);
    refused("upstream_no_program", "command: []", &["no-program"]);
    refused("upstream_unknown_key", "command: [server]\nurll: x", &["unknown-key"]);
    refused("upstream_args", "command: [npx]\nargs: [-y, server]", &["unknown-key"]);
    refused(
        "upstream_keys_of_http",
        "command: [server]\nheaders: {X-A: b}\nauth: {bearer: t}",
        &["not-for-upstream", "not-for-upstream"],
    );
    refused(
        "upstream_keys_of_commands",
        "url: https://a.example/mcp\nenv: {A: b}\npass_env: [HOME]",
        &["not-for-upstream", "not-for-upstream"],
    );
    refused(
        "upstream_sandbox",
        "url: https://a.example/mcp\nsandbox: {profile: pure}",
        &["not-for-upstream"],
    );
}

#[test]
fn values_of_a_command() {
    refused("upstream_program_from_value", "command: [\"${env.SERVER}\"]", &["program-from-value"]);
    refused(
        "upstream_secret_in_argv",
        "command: [server, \"${secret.token}\"]",
        &["secret-in-argv"],
    );
    refused(
        "upstream_value_of_a_call",
        "command: [server, \"${args.repo}\"]\nenv: {USER: \"${ctx.user}\"}",
        &["no-call", "no-call"],
    );
    refused(
        "upstream_env_names",
        "command: [server]\nenv: {A-B: c}\npass_env: [2X]",
        &["bad-env-name", "bad-env-name"],
    );
}

#[test]
fn addresses() {
    for (case, url) in [
        ("upstream_url_scheme", "ftp://a.example/mcp"),
        ("upstream_url_user", "https://me:pw@a.example/mcp"),
        ("upstream_url_host", "https:///mcp"),
        ("upstream_url_template", "https://${env.HOST}/mcp"),
    ] {
        refused(case, &format!("url: \"{url}\""), &["bad-url"]);
    }
    refused(
        "upstream_headers",
        "url: https://a.example/mcp\nheaders: {Authorization: x, Mcp-Session-Id: y, 'a b': z}",
        &["bad-header", "bad-header", "bad-header"],
    );
    refused(
        "upstream_networks",
        "url: https://a.example/mcp\nallow_private: [10.0.0.1/8, 10.0.0.0/33, internal]",
        &["bad-range", "bad-range", "bad-range"],
    );
    refused(
        "upstream_auth",
        "url: https://a.example/mcp\nauth: {token: x}",
        &["missing-key", "unknown-key"],
    );
}

#[test]
fn a_secret_without_encryption_is_warned_of() {
    let text = upstream("url: http://a.example/mcp\nauth: {bearer: \"${secret.token}\"}");
    shows("upstream_secret_in_clear", "up.yaml", &text, &["plain-credentials"]);
    assert_eq!(load_str("up.yaml", &text).upstreams.len(), 1);
    for url in ["https://a.example/mcp", "http://127.0.0.1:8000/mcp", "http://localhost/mcp"] {
        let text = upstream(&format!(
            "url: {url}\nauth: {{bearer: \"${{secret.token}}\"}}\nallow_private: [127.0.0.0/8]"
        ));
        assert!(load_str("up.yaml", &text).diagnostics.is_empty(), "{url}");
    }
}

#[test]
fn an_address_of_this_machine_needs_its_range() {
    for url in ["http://127.0.0.1:3000/mcp", "http://localhost/mcp", "https://10.1.2.3/mcp"] {
        let found = load_str("up.yaml", &upstream(&format!("url: {url}"))).diagnostics;
        let [found] = found.as_slice() else { panic!("{url}: {found:?}") };
        assert_eq!(found.code, "private-address");
        assert!(found.help.as_deref().unwrap().contains("allow_private: [\""), "{found:?}");
    }
}

#[test]
fn names_and_numbers() {
    let twice = upstream("command: [a]") + "  - name: github\n    command: [b]\n";
    shows("upstream_duplicate", "up.yaml", &twice, &["duplicate-upstream"]);
    let named = |name: &str| {
        format!("toolcrib: 1\nnamespace: ops\nupstream:\n  - {{name: '{name}', command: [a]}}\n")
    };
    shows("upstream_bad_name", "up.yaml", &named("git hub"), &["bad-name"]);
    shows("upstream_long_name", "up.yaml", &named(&"x".repeat(29)), &["name-too-long"]);
    refused(
        "upstream_limits",
        "command: [a]\nconnect_timeout: none\nlimits: {timeout: 0s, concurrent: 0, output: 1KiB}",
        &["out-of-range", "out-of-range", "out-of-range", "unknown-key"],
    );
    refused("upstream_patterns", "command: [a]\ntools: {include: ['']}", &["bad-pattern"]);
    refused("upstream_tools_list", "command: [a]\ntools: ['get_*']", &["wrong-type"]);
}
