//! `upstream`: MCP servers whose tools this server offers.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::time::Duration;

use toolcrib_tool::ToolName;

use super::tool::tags;
use super::{Shared, keys, upstream_tools};
use crate::declaration::{
    HttpUpstream, Needs, SandboxProfile, StdioUpstream, UpstreamDeclaration, UpstreamTransport,
};
use crate::diagnostic::position::{Span, first_line};
use crate::diagnostic::{Diagnostic, Findings};
use crate::document::{Entry, Node, shortened};
use crate::fields::Fields;
use crate::manifest::program::command::check_name;
use crate::manifest::program::sandbox;
use crate::manifest::tool::cases::origin;
use crate::manifest::tool::limits::Limits;
use crate::manifest::tool::policies::Policies;
use crate::manifest::tool::references::Scope;
use crate::template::{Reference, Template};
use crate::units::HumanDuration;

/// The default time limit for connecting: `npx` may have to download the server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum length of a name with its namespace: half of a tool's name is left for the server's
/// part.
pub(super) const NAME_MAX: usize = ToolName::MAX_LEN / 2;

/// Keys that apply to only one of the two transports.
const OF_COMMANDS: [&str; 5] = ["env", "pass_env", "keep_home", "cwd", "sandbox"];
const OF_URLS: [&str; 3] = ["auth", "headers", "allow_private"];

/// Reads the list.
pub(super) fn read_all(
    list: &Node,
    shared: &Shared<'_>,
    findings: &mut Findings<'_>,
) -> Vec<UpstreamDeclaration> {
    let mut names: HashMap<&str, &Span> = HashMap::new();
    let mut upstreams = Vec::new();
    for node in list.items() {
        if let Some(entry) = node.entry("name")
            && let Some(name) = entry.node.as_str()
        {
            if let Some(first) = names.get(name) {
                let message = format!("two upstreams of this file are called `{name}`");
                findings.add(
                    Diagnostic::error("duplicate-upstream", &entry.node.span, message)
                        .label("the same name again")
                        .help("rename one of them")
                        .also(first, "first used here"),
                );
            } else {
                names.insert(name, &entry.node.span);
            }
        }
        upstreams.extend(read(node, shared, findings));
    }
    upstreams
}

fn read(
    node: &Node,
    shared: &Shared<'_>,
    findings: &mut Findings<'_>,
) -> Option<UpstreamDeclaration> {
    let fields = Fields::read(node, &keys::UPSTREAM, findings)?;
    let name = exposed_name(&fields, shared, findings);
    let mut scope = Scope::default();
    let mut transport = transport(&fields, &mut scope, findings);
    let resources = upstream_tools::resources(&fields, shared, findings);
    let prompts = upstream_tools::prompts(&fields, shared, findings);
    let tools = upstream_tools::read(&fields, name.as_deref(), shared, findings);
    let limits =
        fields.node("limits").and_then(|node| Fields::read(node, &keys::UPSTREAM_LIMITS, findings));
    if let (Some(limits), Some(UpstreamTransport::Http(_))) = (&limits, &transport) {
        foreign(limits, "url", &["memory"], "a server that is started here", findings);
    }
    let limits = limits.map(|fields| Limits::read(&fields, findings));
    let limits = limits.unwrap_or_default().or(shared.limits);
    let timeout = limits.of_upstream(findings);
    let (concurrent, rate) = limits.numbers();
    if let Some(UpstreamTransport::Stdio(stdio)) = &mut transport {
        stdio.sandbox.memory = limits.memory();
    }
    let connect_timeout = connect_timeout(&fields, findings);
    let approval = Policies::upstream_approval(&fields, &shared.policies);
    let shared_category = shared.defaults.as_ref().and_then(|defaults| defaults.text("category"));
    let category = fields.text("category").or(shared_category).map(str::to_owned);
    Some(UpstreamDeclaration {
        name: name?,
        transport: transport?,
        tools,
        resources,
        prompts,
        trust_annotations: fields.flag("trust_annotations").unwrap_or(false),
        connect_timeout,
        timeout,
        concurrent,
        rate,
        approval,
        tags: tags(&fields, shared),
        category,
        needs: Needs {
            bins: Vec::new(),
            env: scope.env.into_iter().collect(),
            secrets: scope.secrets.into_iter().collect(),
        },
        owner: shared.owner.map(str::to_owned),
        origin: origin(shared.file, &shared.lines, &fields.node("name")?.span),
    })
}

/// The prefix of the tools' names, with the namespace.
fn exposed_name(
    fields: &Fields<'_>,
    shared: &Shared<'_>,
    findings: &mut Findings<'_>,
) -> Option<String> {
    let (node, own) = fields.node("name").zip(fields.text("name"))?;
    if let Err(error) = ToolName::new(own) {
        let message = error
            .to_string()
            .replace("a tool name", "an upstream's name")
            .replace("1 to 64", "1 to 32");
        findings.add(Diagnostic::error("bad-name", &node.span, message));
        return None;
    }
    let whole = shared.namespace.map_or_else(|| own.to_owned(), |space| format!("{space}_{own}"));
    if whole.len() > NAME_MAX {
        let message = format!(
            "`{whole}` has {} characters; an upstream's name has at most {NAME_MAX}, namespace \
             included",
            whole.len()
        );
        findings.add(
            Diagnostic::error("name-too-long", &node.span, message)
                .help("shorten it: the names of the server's tools follow it"),
        );
        return None;
    }
    Some(whole)
}

/// The transport: `command` or `url`, with their keys.
fn transport(
    fields: &Fields<'_>,
    scope: &mut Scope,
    findings: &mut Findings<'_>,
) -> Option<UpstreamTransport> {
    match (fields.has("command"), fields.has("url")) {
        (true, true) => {
            if let (Some(command), Some(url)) = (fields.entry("command"), fields.entry("url")) {
                let message = "`command` and `url` cannot be combined: the server is started here, \
                               or reached over HTTP";
                findings.add(
                    Diagnostic::error("command-and-url", &url.key_span, message)
                        .label("it is reached over HTTP")
                        .help("remove one of them")
                        .also(&command.key_span, "it is started here"),
                );
            }
            None
        }
        (true, false) => {
            foreign(fields, "command", &OF_URLS, "a server reached over HTTP", findings);
            stdio(fields, scope, findings).map(UpstreamTransport::Stdio)
        }
        (false, true) => {
            foreign(fields, "url", &OF_COMMANDS, "a server that is started here", findings);
            http(fields, scope, findings).map(UpstreamTransport::Http)
        }
        (false, false) => {
            let place = fields.node("name").map_or(&fields.span, |name| &name.span);
            let place = first_line(findings.text, place);
            let message = "an upstream needs the key `command` or the key `url`";
            findings.add(Diagnostic::error("missing-key", &place, message).help(
                "say how to start it, command: [program, argument], or where it is, url: \
                 https://host/mcp",
            ));
            None
        }
    }
}

/// Reports keys of the other transport.
fn foreign(
    fields: &Fields<'_>,
    chosen: &str,
    keys: &[&str],
    whose: &str,
    findings: &mut Findings<'_>,
) {
    for entry in keys.iter().filter_map(|key| fields.entry(key)) {
        let message = format!("`{}` is for {whose}", entry.key);
        let mut diagnostic = Diagnostic::error("not-for-upstream", &entry.key_span, message)
            .help("remove it: it would have no effect here");
        if let Some(chosen) = fields.entry(chosen) {
            diagnostic = diagnostic.also(&chosen.key_span, "how this one is reached");
        }
        findings.add(diagnostic);
    }
}

fn stdio(
    fields: &Fields<'_>,
    scope: &mut Scope,
    findings: &mut Findings<'_>,
) -> Option<StdioUpstream> {
    let command = fields.entry("command")?;
    let items = command.node.items();
    if items.first().and_then(Node::as_str).is_none_or(str::is_empty) {
        let message = "the command names no program";
        findings.add(
            Diagnostic::error("no-program", &command.node.visible_span(Some(command)), message)
                .help("write the program and its arguments: command: [npx, -y, some-server]"),
        );
        return None;
    }
    let mut argv = Vec::new();
    for (position, item) in items.iter().enumerate() {
        let Some(template) = scope.standing_template(item, findings) else { continue };
        for reference in template.references() {
            if position == 0 {
                let message = "the program must be literal";
                findings.add(Diagnostic::error("program-from-value", &item.span, message));
            } else if matches!(reference, Reference::Secret(_)) {
                let message = "a secret must not be an argument: process lists show it";
                findings.add(
                    Diagnostic::error("secret-in-argv", &item.span, message)
                        .help("pass it in `env`"),
                );
            }
        }
        argv.push(template);
    }
    let mut env = BTreeMap::new();
    for Entry { key, key_span, node } in fields.node("env").map(Node::entries).unwrap_or_default() {
        check_name(key, key_span, findings);
        env.extend(scope.standing_template(node, findings).map(|value| (key.clone(), value)));
    }
    for name in fields.node("pass_env").map(Node::items).unwrap_or_default() {
        check_name(name.as_str().unwrap_or_default(), &name.span, findings);
    }
    let keep_home = fields.flag("keep_home").unwrap_or(false);
    let passed = fields.node("pass_env").map(Node::items).unwrap_or_default();
    let home = fields.node("env").and_then(|env| env.entry("HOME")).map(|entry| &entry.key_span);
    let home = home.or_else(|| {
        passed.iter().find(|name| name.as_str() == Some("HOME")).map(|name| &name.span)
    });
    if let Some(place) = home.filter(|_| keep_home) {
        let message = "`keep_home` sets HOME";
        findings.add(
            Diagnostic::error("not-for-upstream", place, message)
                .help("remove HOME here, or `keep_home`"),
        );
    }
    Some(StdioUpstream {
        argv,
        keep_home,
        files: BTreeMap::new(),
        env,
        pass_env: fields.texts("pass_env").unwrap_or_default(),
        cwd: fields.text("cwd").map(PathBuf::from),
        sandbox: sandbox::read(fields, SandboxProfile::WorkspaceNet, findings),
    })
}

fn http(
    fields: &Fields<'_>,
    scope: &mut Scope,
    findings: &mut Findings<'_>,
) -> Option<HttpUpstream> {
    let node = fields.node("url")?;
    let url = node.as_str()?;
    if let Some(problem) = url_problem(url) {
        findings.add(Diagnostic::error("bad-url", &node.span, problem).help(
            super::http::with_scheme(url).map_or_else(
                || "write the address as it is: url: https://mcp.example.com/mcp".to_owned(),
                |url| format!("write url: {url}"),
            ),
        ));
    }
    let auth =
        fields.node("auth").and_then(|node| Fields::read(node, &keys::UPSTREAM_AUTH, findings));
    let bearer = auth.as_ref().and_then(|fields| fields.node("bearer"));
    let bearer = bearer.and_then(|node| {
        let template = scope.standing_template(node, findings)?;
        if template.references().next().is_none() {
            findings.add(super::http::literal_credential(&node.span));
        }
        Some(template)
    });
    let mut headers = BTreeMap::new();
    let given = fields.node("headers").map(Node::entries).unwrap_or_default();
    for Entry { key, key_span, node } in given {
        check_header(key, key_span, findings);
        headers.extend(scope.standing_template(node, findings).map(|value| (key.clone(), value)));
    }
    let allow_private = super::http::allowed(fields, findings);
    super::http::check_server(node, url, &allow_private, findings);
    let secret = |template: &Template| {
        template.references().any(|reference| matches!(reference, Reference::Secret(_)))
    };
    let sends_secret = bearer.iter().chain(headers.values()).any(secret);
    if sends_secret && url.to_ascii_lowercase().starts_with("http://") && !names_loopback(url) {
        findings.add(super::http::in_clear(&node.span));
    }
    Some(HttpUpstream { url: url.to_owned(), bearer, headers, allow_private })
}

/// Why a URL is invalid, as one clause.
fn url_problem(url: &str) -> Option<&'static str> {
    if url.contains("${") {
        return Some("the address of an upstream must be literal");
    }
    if url.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\') {
        return Some("an address cannot contain spaces, control characters or backslashes");
    }
    let Some(authority) = authority(url) else {
        return Some("an address begins with https:// or http://");
    };
    if authority.contains('@') {
        return Some("user and password are not allowed in an address: use `auth` or `headers`");
    }
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    (authority.is_empty() || host.is_empty()).then_some("the address has no host")
}

/// The text between the scheme and the path.
fn authority(url: &str) -> Option<&str> {
    let (scheme, rest) = url.split_once("://")?;
    let known = ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    known.then(|| rest.split(['/', '?', '#']).next().unwrap_or_default())
}

/// Whether the URL's host is this machine.
fn names_loopback(url: &str) -> bool {
    let authority = authority(url).unwrap_or_default();
    ["127.0.0.1", "localhost", "[::1]"].iter().any(|name| {
        authority.strip_prefix(name).is_some_and(|port| port.is_empty() || port.starts_with(':'))
    })
}

/// Refuses headers that the protocol sets itself, and invalid names.
fn check_header(name: &str, place: &Span, findings: &mut Findings<'_>) {
    const OURS: [&str; 8] = [
        "accept",
        "connection",
        "content-length",
        "content-type",
        "host",
        "last-event-id",
        "mcp-protocol-version",
        "mcp-session-id",
    ];
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(token) {
        let message = format!("`{}` is not a header name", shortened(name));
        findings.add(Diagnostic::error("bad-header", place, message));
    } else if name.eq_ignore_ascii_case("authorization") {
        let message = "`Authorization` is set by `auth`";
        findings.add(
            Diagnostic::error("bad-header", place, message)
                .help("write `auth: {bearer: \"${secret.token}\"}` beside `url`"),
        );
    } else if OURS.iter().any(|ours| name.eq_ignore_ascii_case(ours)) {
        let message = format!("`{name}` is set by the protocol itself");
        findings.add(Diagnostic::error("bad-header", place, message).help("remove it"));
    }
}

fn connect_timeout(fields: &Fields<'_>, findings: &mut Findings<'_>) -> Duration {
    let Some(node) = fields.node("connect_timeout") else { return CONNECT_TIMEOUT };
    let given = node.as_str().and_then(|text| text.parse::<HumanDuration>().ok());
    given.and_then(|given| given.0).filter(|limit| !limit.is_zero()).unwrap_or_else(|| {
        let message = "`connect_timeout` must be greater than zero";
        findings.add(
            Diagnostic::error("out-of-range", &node.span, message)
                .help("write the longest time its start may take: 1m"),
        );
        CONNECT_TIMEOUT
    })
}
