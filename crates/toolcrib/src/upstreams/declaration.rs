//! Converts a manifest's declaration of an MCP server into settings of the MCP client.

use toolcrib_manifest::declaration::{
    HttpUpstream, NamePattern as DeclaredPattern, StdioUpstream, UpstreamDeclaration,
    UpstreamTools, UpstreamTransport,
};
use toolcrib_manifest::template::{Piece, Reference, Template};
use toolcrib_mcp::upstream::{HttpServer, NamePattern, StdioServer, ToolOverride, Upstream};
use toolcrib_runners::{
    DecidingFiles, ExposeSecret as _, RunnerHost, Secrets, TrustDecision, check_files, grants,
    upstream_trust_decision,
};

/// An upstream as a file declares it, with the values that it refers to. If a value is missing, the
/// server is never connected, and its status says so; an empty value is not used instead.
///
/// A relative directory is relative to the host's workspace, which is also the default working directory of a program.
pub fn upstream(declaration: &UpstreamDeclaration, host: &RunnerHost) -> Upstream {
    let mut values = TemplateValues { secrets: &host.secrets, missing: Vec::new() };
    let word = upstream_trust_decision(declaration, &declaration.digest(), host);
    if let Some(TrustDecision::Untrusted { remedy }) = &word {
        values.lacks(format!("it {remedy}"));
    }
    let is_pinned = host.pinned_scripts || word == Some(TrustDecision::TrustedForDigest);
    let mut upstream = match &declaration.transport {
        UpstreamTransport::Stdio(stdio) => {
            let mut server = server(stdio, declaration, host, &mut values);
            if is_pinned {
                server = held(server, stdio, declaration, host, &mut values);
            }
            Upstream::stdio(declaration.name.as_str(), server)
        }
        UpstreamTransport::Http(http) => {
            let server = remote(http, &mut values);
            Upstream::http(declaration.name.as_str(), server)
        }
    };
    upstream = upstream
        .trust_annotations(declaration.trust_annotations)
        .connect_timeout(declaration.connect_timeout)
        .approval(declaration.approval)
        .tags(declaration.tags.clone())
        .origin(declaration.origin.clone());
    upstream = with_tools(upstream, &declaration.tools);
    if let Some(resources) = &declaration.resources {
        upstream = upstream.resources(patterns(&resources.include), patterns(&resources.exclude));
    }
    if let Some(prompts) = &declaration.prompts {
        upstream = upstream.prompts(patterns(&prompts.include), patterns(&prompts.exclude));
    }
    if let Some(limit) = declaration.timeout {
        upstream = upstream.timeout(limit);
    }
    if let Some(calls) = declaration.concurrent {
        upstream = upstream.max_concurrent(calls);
    }
    if let Some(rate) = declaration.rate {
        upstream = upstream.rate(rate);
    }
    if let Some(category) = &declaration.category {
        upstream = upstream.category(category.as_str());
    }
    if values.missing.is_empty() { upstream } else { upstream.missing(values.missing.join("; ")) }
}

/// Which tools are offered, and their overrides.
fn with_tools(mut upstream: Upstream, tools: &UpstreamTools) -> Upstream {
    upstream = upstream.include(patterns(&tools.include)).exclude(patterns(&tools.exclude));
    if let Some(prefix) = &tools.prefix {
        upstream = upstream.prefix(prefix.as_str());
    }
    for (tool, own) in &tools.overrides {
        let mut with = ToolOverride::new().annotations(own.annotations).origin(own.origin.clone());
        if let Some(name) = &own.name {
            with = with.name(name.as_str());
        }
        if let Some(title) = &own.title {
            with = with.title(title.as_str());
        }
        if let Some(description) = &own.description {
            with = with.description(description.as_str());
        }
        if let Some(approval) = own.approval {
            with = with.approval(approval);
        }
        upstream = upstream.override_tool(tool.as_str(), with);
    }
    upstream
}

fn patterns(declared: &[DeclaredPattern]) -> impl Iterator<Item = NamePattern> {
    let pattern =
        |own: &DeclaredPattern| NamePattern::new(own.pattern.as_str()).origin(own.origin.clone());
    declared.iter().map(pattern)
}

fn server(
    stdio: &StdioUpstream,
    declaration: &UpstreamDeclaration,
    host: &RunnerHost,
    values: &mut TemplateValues<'_>,
) -> StdioServer {
    let mut argv = stdio.argv.iter().map(|template| values.expand(template));
    let program = argv.next().unwrap_or_default();
    let deciding = DecidingFiles::of_upstream(stdio, &declaration.origin.file, host);
    let mut server = StdioServer::new(program).args(argv);
    if let Some((name, value)) = deciding.python_safe_path() {
        server = server.env(name, value);
    }
    for (name, template) in &stdio.env {
        server = server.env(name, values.expand(template));
    }
    for name in &stdio.pass_env {
        match values.secrets.held_in_variable(name) {
            None => server = server.pass_env(name),
            Some(secret) => values.lacks(format!(
                "it passes on the variable `{name}`, which holds the secret `{secret}`: write \
                 `env: {{{name}: \"${{secret.{secret}}}\"}}` instead of `pass_env`"
            )),
        }
    }
    let mut home = None;
    if stdio.keep_home {
        match host.home_of(&declaration.name) {
            Ok(kept) => home = Some(kept),
            Err(reason) => values.lacks(format!("it keeps its HOME (`keep_home`), and {reason}")),
        }
    }
    for missing in &deciding.missing {
        values.lacks(format!("it runs `{}`, which does not exist", missing.display()));
    }
    for linked in &deciding.linked {
        values.lacks(format!(
            "it names the file `{}`, which a symbolic link in the workspace leads to: remove the link \
             and reload",
            linked.display()
        ));
    }
    let mut confinement = grants(&stdio.sandbox, host);
    let file = &declaration.origin.file;
    let cwd = host.start_directory(stdio.cwd.as_deref(), &stdio.sandbox, file);
    if stdio.cwd.is_some() {
        confinement = confinement.read(&cwd);
    }
    let mut whole = confinement.clone();
    if let Some(home) = &home {
        whole = whole.own_folder(home);
    }
    if let Err(reason) = whole.control_plane(&host.control_plane).check() {
        values.lacks(reason);
    }
    // Replacing a link by a file counts as a change too.
    let mut places: Vec<_> = deciding.places.into_iter().chain(deciding.linked).collect();
    if let Some(home) = home {
        // A program may run files in its HOME.
        places.push(home.clone());
        server = server.home(home);
    }
    server.cwd(cwd).confine(confinement).control_plane(&host.control_plane, places)
}

/// A server that is started only while the files that its argument vector names are the accepted ones.
fn held(
    server: StdioServer,
    stdio: &StdioUpstream,
    declaration: &UpstreamDeclaration,
    host: &RunnerHost,
    values: &mut TemplateValues<'_>,
) -> StdioServer {
    let unread = stdio.files.values().find(|file| file.digest.is_none());
    if let Some(Err(reason)) = unread.map(|_| check_files(declaration, host)) {
        values.lacks(format!("it {reason}"));
    }
    let what: Vec<_> = stdio.files.values().filter_map(|file| file.digest.as_deref()).collect();
    let (what, declaration, host) = (what.join(" "), declaration.clone(), host.clone());
    server.check_start(what, move || check_files(&declaration, &host))
}

fn remote(http: &HttpUpstream, values: &mut TemplateValues<'_>) -> HttpServer {
    let mut server = HttpServer::new(http.url.as_str());
    if let Some(token) = &http.bearer {
        server = server.bearer(values.expand(token));
    }
    for (name, template) in &http.headers {
        server = server.header(name, values.expand(template));
    }
    for network in &http.allow_private {
        server = server.allow(*network);
    }
    server
}

/// The values that templates refer to, and which of them are missing.
struct TemplateValues<'h> {
    secrets: &'h Secrets,
    missing: Vec<String>,
}

impl TemplateValues<'_> {
    fn expand(&mut self, template: &Template) -> String {
        let mut text = String::new();
        for piece in &template.pieces {
            match piece {
                Piece::Literal(literal) => text.push_str(literal),
                Piece::Reference(Reference::Env(name)) => match self.variable(name) {
                    Ok(value) => text.push_str(&value),
                    Err(lacks) => self.lacks(lacks),
                },
                Piece::Reference(Reference::Secret(name)) => match self.secrets.get(name) {
                    Ok(secret) => text.push_str(secret.expose_secret()),
                    Err(missing) => self.lacks(format!("it {missing}")),
                },
                // A manifest with one of these in this place is not loaded.
                Piece::Reference(reference) => self.lacks(format!("`{reference}` has no value")),
            }
        }
        text
    }

    /// A variable of this process that holds no secret, or the reason why it cannot be used.
    fn variable(&self, name: &str) -> Result<String, String> {
        if let Some(secret) = self.secrets.held_in_variable(name) {
            return Err(format!(
                "it refers to `${{env.{name}}}`, which holds the secret `{secret}`: write \
                 `${{secret.{secret}}}`"
            ));
        }
        std::env::var(name).map_err(|_| {
            format!("it needs the environment variable `{name}`, which this program does not have")
        })
    }

    fn lacks(&mut self, what: String) {
        if !self.missing.contains(&what) {
            self.missing.push(what);
        }
    }
}
