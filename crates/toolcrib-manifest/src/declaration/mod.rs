//! Checked declarations: the contents of a manifest without errors.

mod http;
mod named_file;
mod offering;
mod sandbox;
mod script;
mod upstream;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Serialize, Serializer};
use serde_json::Value;
use toolcrib_tool::{Origin, ToolDefinition};

use crate::template::{Reference, Template};
use crate::units::HumanDuration;

pub use http::{
    HttpAuth, HttpBody, HttpMethod, HttpSpec, JsonTemplate, QueryPair, UrlOrigin, UrlSpec,
};
pub use named_file::NamedFile;
pub use offering::{
    MessageContent, PromptArgument, PromptDeclaration, PromptMessage, ResourceContent,
    ResourceDeclaration,
};
pub use sandbox::{SandboxProfile, SandboxSpec};
pub use script::ScriptFile;
pub use upstream::{
    HttpUpstream, NamePattern, StdioUpstream, ToolOverride, UpstreamDeclaration, UpstreamPrompts,
    UpstreamResources, UpstreamTools, UpstreamTransport,
};

/// A tool of a manifest. A runner turns it into a tool that can be called.
#[derive(Debug, Clone)]
pub struct Declaration {
    /// The tool's definition, with its exposed name.
    pub definition: Arc<ToolDefinition>,
    /// What a call of the tool does.
    pub body: DeclaredBody,
    /// The confinement of its program, if it runs one.
    pub sandbox: SandboxSpec,
    /// What the tool needs to be available.
    pub needs: Needs,
    /// How the program's output becomes a result.
    pub output: OutputSpec,
    /// Checks of context values, by parameter name.
    pub context: Vec<ContextParameter>,
    /// Rules in CEL that every call has to satisfy; compiled when the manifest is loaded. Empty
    /// without the feature `cel`.
    pub constraints: Vec<ConstraintSpec>,
    /// The tests in the manifest.
    pub tests: Vec<ToolTest>,
    /// The team that maintains the file.
    pub owner: Option<String>,
    /// The place of the tool's name.
    pub origin: Origin,
}

impl Declaration {
    /// The command, if the tool runs a program for each call.
    pub fn command(&self) -> Option<&CommandSpec> {
        match &self.body {
            DeclaredBody::Command(command) => Some(command),
            DeclaredBody::Http(_) | DeclaredBody::Worker(_) | DeclaredBody::Client => None,
        }
    }

    /// The request, if the tool sends one.
    pub fn http(&self) -> Option<&HttpSpec> {
        match &self.body {
            DeclaredBody::Http(http) => Some(http),
            DeclaredBody::Command(_) | DeclaredBody::Worker(_) | DeclaredBody::Client => None,
        }
    }

    /// The worker, if one answers the tool's calls.
    pub fn worker(&self) -> Option<&WorkerSpec> {
        match &self.body {
            DeclaredBody::Worker(worker) => Some(worker),
            DeclaredBody::Command(_) | DeclaredBody::Http(_) | DeclaredBody::Client => None,
        }
    }
}

/// What a call of a declared tool does.
///
/// Exhaustive on purpose: a runner has to handle every kind.
#[derive(Debug, Clone, PartialEq)]
pub enum DeclaredBody {
    /// It starts a program.
    Command(CommandSpec),
    /// It sends a request.
    Http(HttpSpec),
    /// It is sent to a program that keeps running.
    Worker(WorkerSpec),
    /// It is sent to the client; nothing runs here. `needs`, `output` and `context` of such a
    /// declaration are empty.
    Client,
}

/// A program and how to start it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CommandSpec {
    /// The argument vector; the first entry is the program.
    pub argv: Vec<ArgvEntry>,
    /// The file that the first entry names, if it is a script. A relative path is resolved against
    /// the manifest's folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script: Option<ScriptFile>,
    /// The files that the vector names, by the path as it is written there. Empty after loading,
    /// because it depends on the workspace which files these are: the host fills it in before it
    /// uses the declaration.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, NamedFile>,
    /// The program's standard input; empty if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdin: Option<StandardInput>,
    /// Variables set for the program.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, Template>,
    /// Variables of the server's environment that are passed on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pass_env: Vec<String>,
    /// Exit codes that mean success. Default `[0]`.
    pub ok_exit: Vec<i32>,
    /// Exit codes of failures after which the same call may succeed later. Default `[75]`, the
    /// `EX_TEMPFAIL` of `sysexits.h`.
    pub retry_exit: Vec<i32>,
    /// The working directory; the workspace root if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// The author's reason why a value of a call may choose a program, be run, or name an option in
    /// the argument vector. Without a reason such values are errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsafe_argv: Option<String>,
    /// How many bytes of each output stream are kept. Default 64 KiB.
    pub capture_bytes: usize,
}

impl CommandSpec {
    /// All references of the command.
    pub fn references(&self) -> impl Iterator<Item = &Reference> {
        let argv = self.argv.iter().flat_map(|entry| match entry {
            ArgvEntry::One(template) => std::slice::from_ref(template),
            ArgvEntry::If { then, .. } => then,
            ArgvEntry::Each { .. } => &[],
        });
        let stdin = self.stdin.iter().filter_map(StandardInput::template);
        argv.chain(stdin).chain(self.env.values()).flat_map(Template::references)
    }
}

/// The declared standard input of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StandardInput {
    /// A text with references.
    Text(Template),
    /// All arguments of the call as one JSON object.
    Arguments,
}

impl StandardInput {
    /// How manifests write [`Arguments`](Self::Arguments): the whole value of `stdin`.
    pub const ALL_ARGUMENTS: &str = "${args}";

    /// The text with references, if it is one.
    pub fn template(&self) -> Option<&Template> {
        match self {
            Self::Text(template) => Some(template),
            Self::Arguments => None,
        }
    }
}

/// The text in the notation of manifests.
impl fmt::Display for StandardInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(template) => template.fmt(f),
            Self::Arguments => f.write_str(Self::ALL_ARGUMENTS),
        }
    }
}

impl Serialize for StandardInput {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

fn as_text<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&HumanDuration(Some(*time)))
}

/// A program that keeps running and answers each call with one JSON line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkerSpec {
    /// The program and its arguments, which do not depend on a call.
    #[serde(rename = "worker")]
    pub argv: Vec<String>,
    /// The files that they name, by the path as it is written there. Relative paths are resolved
    /// against the manifest's folder.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, ScriptFile>,
    /// Variables set for the program; they refer to `env` and `secret` only.
    pub env: BTreeMap<String, Template>,
    /// Variables of the server's environment that are passed on.
    pub pass_env: Vec<String>,
    /// Its working directory: the manifest's folder.
    #[serde(skip)]
    pub folder: PathBuf,
    /// How long it keeps running without a call. Default five minutes.
    #[serde(serialize_with = "as_text")]
    pub idle: Duration,
    /// After how many calls it is replaced; `None` for never.
    pub max_calls: Option<u64>,
    /// The maximum length of an answer, in bytes. Default 64 KiB.
    pub line_bytes: usize,
}

/// An entry of an argument vector. It becomes one argument, none, or one for each item of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)] // as manifests write it
pub enum ArgvEntry {
    /// One argument; omitted if it refers to an absent optional value.
    One(Template),
    /// The entries of `then`, if the argument `if` is present and not `false`.
    If {
        /// The argument of the condition.
        #[serde(rename = "if")]
        condition: String,
        /// The entries to add.
        then: Vec<Template>,
    },
    /// One argument for each item of a list.
    Each {
        /// The list argument.
        #[serde(rename = "each")]
        argument: String,
    },
}

/// What a tool needs to be available.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Needs {
    /// Programs on PATH.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bins: Vec<String>,
    /// Variables of the server's environment (from `needs.env` and every `${env.X}` used).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Configured secrets (from `needs.secrets` and every `${secret.x}` used).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
}

/// How standard output, or a response, becomes a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OutputSpec {
    /// The format of the output.
    pub format: OutputFormat,
    /// Which part of a long output is kept.
    pub keep: Keep,
    /// Patterns whose matches are replaced by `[redacted]`; checked at load.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub redact: Vec<String>,
    /// Patterns of lines that report a program's progress; checked at load. The first group is the
    /// progress, the second the total; with one group and a `%` after it, the total is 100.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub progress: Vec<String>,
}

/// The format of a program's output or of a server's response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputFormat {
    /// Text for models.
    #[default]
    Text,
    /// One JSON document, which becomes `data`.
    Json,
    /// Lines, which become a list of strings in `data`.
    Lines,
    /// The content type of the response decides: JSON becomes data, images and audio become
    /// content, and everything else is text. The default of requests; for programs it means text.
    Auto,
}

/// Which part of a long output is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// The beginning and the end.
    #[default]
    Both,
    /// The beginning.
    Head,
    /// The end.
    Tail,
}

/// A check of a context value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ContextParameter {
    /// The name under which templates refer to it (`${ctx.name}`).
    pub name: String,
    /// The key in the host's context.
    pub key: String,
    /// Whether calls without it are refused.
    pub required: bool,
    /// The JSON Schema of the value (from `enum`, `type`, `pattern`, …), if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
}

/// A rule about arguments and context values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConstraintSpec {
    /// The expression.
    pub rule: String,
    /// The message for the model if the rule is violated.
    pub message: String,
}

/// A test in a manifest.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolTest {
    /// Its name.
    pub name: String,
    /// The arguments of the call.
    pub args: Value,
    /// The host's context of the call.
    pub ctx: BTreeMap<String, Value>,
    /// The response of the server, for a tool that sends a request; the request is then not sent.
    pub answer: Option<RecordedAnswer>,
    /// The expected outcome.
    pub expect: Expectation,
    /// Its place.
    pub origin: Origin,
}

/// A recorded response of a server. If a call has it as a service, it replaces the server: the
/// request is built as usual but not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedAnswer {
    /// The status, from 100 to 599.
    pub status: u16,
    /// The media type of the body, as in `Content-Type`.
    pub media_type: String,
    /// The body.
    pub body: Vec<u8>,
}

/// The expectations of a test; all that are given must be met.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Expectation {
    /// The kind of error with which the call fails; if `None`, the call succeeds.
    pub error: Option<String>,
    /// Complete arguments that the argument vector contains. The program is not run for this check.
    pub argv_contains: Vec<String>,
    /// The whole argument vector. The program is not run for this check.
    pub argv: Option<Vec<String>>,
    /// The URL of the request. The request is not sent for this check.
    pub url: Option<String>,
    /// The request's body: JSON, a form as a mapping, or text. The request is not sent for this
    /// check.
    pub body: Option<Value>,
    /// Texts that the result's text contains.
    pub text_contains: Vec<String>,
    /// A pattern that the result's text matches.
    pub text_matches: Option<String>,
    /// The result's data.
    pub data: Option<Value>,
}
