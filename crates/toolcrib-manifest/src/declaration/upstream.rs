//! Other MCP servers as a source of tools, as a manifest declares them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use toolcrib_net::IpNet;
use toolcrib_tool::{Approval, Origin, RateLimit};

use super::{NamedFile, Needs, SandboxSpec};
use crate::template::Template;

/// Another MCP server, whose tools are offered here.
#[derive(Debug, Clone, PartialEq)]
pub struct UpstreamDeclaration {
    /// Its name, with the file's namespace in front: its tools are called `name_tool`.
    pub name: String,
    /// How it is reached.
    pub transport: UpstreamTransport,
    /// Patterns (`get_*`) of the tools that are taken, by the server's own names; all without.
    pub include: Vec<String>,
    /// Patterns of the tools that are left out, also of those included.
    pub exclude: Vec<String>,
    /// Whether what the server says of its tools' effects is believed.
    pub trust_annotations: bool,
    /// How long the server may take to be ready, and to list its tools.
    pub connect_timeout: Duration,
    /// How long a call may take; the executor's default without.
    pub timeout: Option<Duration>,
    /// How many calls of one tool may run at once.
    pub concurrent: Option<usize>,
    /// How many calls of one tool may start in a time.
    pub rate: Option<RateLimit>,
    /// When calls wait for a person.
    pub approval: Approval,
    /// Free labels of its tools.
    pub tags: Vec<String>,
    /// The family of its tools.
    pub category: Option<String>,
    /// What must be there for it to be connected to: variables and secrets that it refers to.
    pub needs: Needs,
    /// The team that keeps the file.
    pub owner: Option<String>,
    /// Where its name stands.
    pub origin: Origin,
}

/// How an upstream is reached.
///
/// Templates in it refer to variables of the server's environment and to secrets, and to nothing of
/// a call: a connection serves all calls.
#[derive(Debug, Clone, PartialEq)]
pub enum UpstreamTransport {
    /// A program that is started here and spoken to over its standard input and output.
    Stdio(StdioUpstream),
    /// A server spoken to over streamable HTTP.
    Http(HttpUpstream),
}

/// A program that speaks MCP on its standard input and output.
#[derive(Debug, Clone, PartialEq)]
pub struct StdioUpstream {
    /// The argument vector; the first entry is the program, and literal.
    pub argv: Vec<Template>,
    /// The files that the vector names, as [`CommandSpec::files`](super::CommandSpec::files) has them.
    pub files: BTreeMap<String, NamedFile>,
    /// Variables set for the program.
    pub env: BTreeMap<String, Template>,
    /// Variables of the server's environment handed through.
    pub pass_env: Vec<String>,
    /// The working directory; the workspace root without.
    pub cwd: Option<PathBuf>,
    /// Under what it runs.
    pub sandbox: SandboxSpec,
}

/// A server that speaks MCP over HTTP.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpUpstream {
    /// Its address, literal: `http` or `https`, with a host and without user info.
    pub url: String,
    /// The token sent as `Authorization: Bearer …`.
    pub bearer: Option<Template>,
    /// Further headers sent with every request.
    pub headers: BTreeMap<String, Template>,
    /// Networks that may be dialled although they are loopback, private or link-local.
    pub allow_private: Vec<IpNet>,
}
