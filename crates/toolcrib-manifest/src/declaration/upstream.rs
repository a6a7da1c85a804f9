//! Declared MCP servers, which are sources of tools.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use toolcrib_net::IpNet;
use toolcrib_tool::{AnnotationOverrides, Approval, Origin, RateLimit};

use super::{NamedFile, Needs, SandboxSpec};
use crate::template::Template;

/// An MCP server whose tools this server offers.
#[derive(Debug, Clone, PartialEq)]
pub struct UpstreamDeclaration {
    /// Its name, with the file's namespace as a prefix. Its tools are named `name_tool`.
    pub name: String,
    /// How to connect to it.
    pub transport: UpstreamTransport,
    /// Which of its tools are offered, and under which names and descriptions.
    pub tools: UpstreamTools,
    /// Which of its resources clients can list and read; `None` offers none.
    pub resources: Option<UpstreamResources>,
    /// Which of its prompts clients can list and use; `None` offers none.
    pub prompts: Option<UpstreamPrompts>,
    /// Whether the server's annotations of its tools are trusted.
    pub trust_annotations: bool,
    /// The time limit for connecting to the server and for listing its tools.
    pub connect_timeout: Duration,
    /// The time limit of a call; if `None`, the executor's default.
    pub timeout: Option<Duration>,
    /// How many calls of a tool may run at once.
    pub concurrent: Option<usize>,
    /// How many calls of a tool may start in a time.
    pub rate: Option<RateLimit>,
    /// When calls need approval.
    pub approval: Approval,
    /// Tags of its tools.
    pub tags: Vec<String>,
    /// The category of its tools.
    pub category: Option<String>,
    /// What it needs to be available: the variables and secrets to which it refers.
    pub needs: Needs,
    /// The team that maintains the file.
    pub owner: Option<String>,
    /// The place of its name.
    pub origin: Origin,
}

/// Which tools of a server are offered, and what replaces the server's own words about them.
///
/// Everything here names tools as the server does.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UpstreamTools {
    /// What the names of the tools begin with instead of the upstream's name. Empty: the tools keep
    /// the server's names.
    pub prefix: Option<String>,
    /// Patterns (`get_*`) or names of the tools that are offered. Empty: all of them.
    pub include: Vec<NamePattern>,
    /// Patterns or names of the tools that are not offered, even if `include` has them.
    pub exclude: Vec<NamePattern>,
    /// What replaces the server's words about single tools, by the server's names.
    pub overrides: BTreeMap<String, ToolOverride>,
}

/// Which resources of a server are offered, by their addresses.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UpstreamResources {
    /// Patterns (`docs://*`) or addresses of the resources that are offered. Empty: all of them.
    pub include: Vec<NamePattern>,
    /// Patterns or addresses of resources that are not offered, even if `include` has them.
    pub exclude: Vec<NamePattern>,
}

/// Which prompts of a server are offered, by the server's own names.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UpstreamPrompts {
    /// Patterns (`review_*`) or names of the prompts that are offered. Empty: all of them.
    pub include: Vec<NamePattern>,
    /// Patterns or names of prompts that are not offered, even if `include` has them.
    pub exclude: Vec<NamePattern>,
}

/// A name, or a pattern of names, and its place in the file.
#[derive(Debug, Clone, PartialEq)]
pub struct NamePattern {
    /// The pattern. `*` stands for any characters.
    pub pattern: String,
    /// Its place.
    pub origin: Origin,
}

/// What replaces a server's words about one of its tools.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOverride {
    /// The part of the tool's name that follows the prefix.
    pub name: Option<String>,
    /// The title, for people.
    pub title: Option<String>,
    /// The description, for models.
    pub description: Option<String>,
    /// The hints about its effects. They count even if the server's own do not.
    pub annotations: AnnotationOverrides,
    /// When its calls wait for a person, instead of the upstream's `approval`.
    pub approval: Option<Approval>,
    /// The place of the entry.
    pub origin: Origin,
}

/// How to connect to an upstream server.
///
/// Its templates can refer only to variables of the server's environment and to secrets, because
/// one connection serves all calls.
#[derive(Debug, Clone, PartialEq)]
pub enum UpstreamTransport {
    /// A program that this server starts and talks to over standard input and output.
    Stdio(StdioUpstream),
    /// A server with streamable HTTP.
    Http(HttpUpstream),
}

/// A program that speaks MCP on its standard input and output.
#[derive(Debug, Clone, PartialEq)]
pub struct StdioUpstream {
    /// The argument vector; the first entry is the program, which is literal.
    pub argv: Vec<Template>,
    /// The files that the vector names; see [`CommandSpec::files`](super::CommandSpec::files).
    pub files: BTreeMap<String, NamedFile>,
    /// Variables set for the program.
    pub env: BTreeMap<String, Template>,
    /// Variables of the server's environment that are passed on.
    pub pass_env: Vec<String>,
    /// Whether its `HOME` is a folder of its own that is kept between starts.
    pub keep_home: bool,
    /// The working directory; the workspace root if `None`.
    pub cwd: Option<PathBuf>,
    /// Its confinement.
    pub sandbox: SandboxSpec,
}

/// A server that speaks MCP over HTTP.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpUpstream {
    /// Its literal URL: `http` or `https`, with a host and without user info.
    pub url: String,
    /// The token sent as `Authorization: Bearer …`.
    pub bearer: Option<Template>,
    /// Further headers sent with every request.
    pub headers: BTreeMap<String, Template>,
    /// Address ranges that are allowed although they are loopback, private or link-local.
    pub allow_private: Vec<IpNet>,
}
