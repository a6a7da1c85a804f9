//! Checked declarations: what a manifest says, once nothing is wrong with it.

mod http;
mod named_file;
mod offering;
mod sandbox;
mod script;
mod upstream;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Serialize, Serializer};
use serde_json::Value;
use toolcrib_tool::{Origin, ToolDefinition};

use crate::template::{Reference, Template};
use crate::units::HumanDuration;

pub use http::{HttpAuth, HttpBody, HttpMethod, HttpSpec, JsonTemplate, QueryPair, UrlSpec};
pub use named_file::NamedFile;
pub use offering::{
    MessageContent, PromptArgument, PromptDeclaration, PromptMessage, ResourceContent,
    ResourceDeclaration,
};
pub use sandbox::{SandboxProfile, SandboxSpec};
pub use script::ScriptFile;
pub use upstream::{HttpUpstream, StdioUpstream, UpstreamDeclaration, UpstreamTransport};

/// One tool of a manifest, ready to be turned into a body by a runner.
#[derive(Debug, Clone)]
pub struct Declaration {
    /// What the tool says about itself, exposed name included.
    pub definition: Arc<ToolDefinition>,
    /// What a call does.
    pub body: DeclaredBody,
    /// Under what its program runs, if it runs one.
    pub sandbox: SandboxSpec,
    /// What must be there for the tool to be available.
    pub needs: Needs,
    /// How the program's output becomes a result.
    pub output: OutputSpec,
    /// Checks on values of the host's context, by parameter name.
    pub context: Vec<ContextParameter>,
    /// Rules that every call has to keep, in CEL; checked at load. Empty without the feature `cel`.
    pub constraints: Vec<ConstraintSpec>,
    /// Tests the author wrote.
    pub tests: Vec<ToolTest>,
    /// The team that keeps the file.
    pub owner: Option<String>,
    /// Where the tool's name stands.
    pub origin: Origin,
}

impl Declaration {
    /// The program, if the tool runs one.
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
/// Exhaustive on purpose: what a runner does not know must not be passed over.
#[derive(Debug, Clone, PartialEq)]
pub enum DeclaredBody {
    /// It starts a program.
    Command(CommandSpec),
    /// It sends a request.
    Http(HttpSpec),
    /// It is handed to a program that keeps running.
    Worker(WorkerSpec),
    /// It is handed to the client; nothing runs here. `needs`, `output` and `context` of such a
    /// declaration are empty.
    Client,
}

/// A program and how to start it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CommandSpec {
    /// The argument vector; the first entry is the program.
    pub argv: Vec<ArgvEntry>,
    /// The file that the first entry names, if it is a script: relative paths are those of the
    /// manifest's folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script: Option<ScriptFile>,
    /// The files that the vector names, by the path as it is written there. A manifest alone does not
    /// decide which files these are: whoever knows the workspace fills this in before the declaration
    /// is used. Empty after loading.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, NamedFile>,
    /// What the program reads on standard input; empty without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdin: Option<Template>,
    /// Variables set for the program.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, Template>,
    /// Variables of the server's environment handed through.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pass_env: Vec<String>,
    /// Exit codes that mean success. Default `[0]`.
    pub ok_exit: Vec<i32>,
    /// Exit codes of failures after which the same call may succeed later. Default `[75]`, the
    /// `EX_TEMPFAIL` of `sysexits.h`.
    pub retry_exit: Vec<i32>,
    /// The working directory; the workspace root without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// Why a value of a call may choose a program, be run, or name an option in the argument vector:
    /// the author's word for it. Without one no value can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsafe_argv: Option<String>,
    /// Bytes of each output stream that are kept. Default 64 KiB.
    pub capture_bytes: usize,
}

impl CommandSpec {
    /// Every reference, wherever it stands.
    pub fn references(&self) -> impl Iterator<Item = &Reference> {
        let argv = self.argv.iter().flat_map(|entry| match entry {
            ArgvEntry::One(template) => std::slice::from_ref(template),
            ArgvEntry::If { then, .. } => then,
            ArgvEntry::Each { .. } => &[],
        });
        argv.chain(&self.stdin).chain(self.env.values()).flat_map(Template::references)
    }
}

fn as_text<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&HumanDuration(Some(*time)))
}

/// A program that is started once and answers calls, one JSON line each.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkerSpec {
    /// The program and its arguments. Nothing in them depends on a call.
    #[serde(rename = "worker")]
    pub argv: Vec<String>,
    /// The files among them, by what they are called there: relative paths are those of the manifest's
    /// folder.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, ScriptFile>,
    /// Variables set for the program; they refer to `env` and `secret` only.
    pub env: BTreeMap<String, Template>,
    /// Variables of the server's environment handed through.
    pub pass_env: Vec<String>,
    /// Where it starts: the manifest's folder.
    #[serde(skip)]
    pub folder: PathBuf,
    /// How long it is kept without a call. Default five minutes.
    #[serde(serialize_with = "as_text")]
    pub idle: Duration,
    /// After how many calls it is replaced; none for never.
    pub max_calls: Option<u64>,
    /// The longest line it may answer with, in bytes. Default 64 KiB.
    pub line_bytes: usize,
}

/// One entry of an argument vector: exactly one argument, or none, or one per list item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)] // as manifests write it
pub enum ArgvEntry {
    /// One argument; it drops out as a whole if it refers to an absent optional.
    One(Template),
    /// The entries of `then`, if the argument is present and not `false`.
    If {
        /// The argument asked about.
        #[serde(rename = "if")]
        condition: String,
        /// What to add.
        then: Vec<Template>,
    },
    /// One argument per item of a list argument.
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

/// How standard output, or the answer to a request, becomes a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OutputSpec {
    /// What it is.
    pub format: OutputFormat,
    /// Which part survives a cut.
    pub keep: Keep,
    /// Patterns whose matches are replaced by `[redacted]`; checked at load.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub redact: Vec<String>,
    /// Patterns of lines that tell how far a program is; checked at load. The first group is what is
    /// done, the second of how much; with one group and a `%` behind it, of 100.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub progress: Vec<String>,
}

/// What a program prints, or a server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputFormat {
    /// Text for the model.
    #[default]
    Text,
    /// One JSON document: becomes `data`.
    Json,
    /// Lines: become a list of strings in `data`.
    Lines,
    /// Whatever the server says it is: JSON, pictures and sounds become what they are, everything
    /// else is text. The default of requests; a program says nothing, and prints text.
    Auto,
}

/// Which part of too long an output is kept.
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

/// A check on an injected value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ContextParameter {
    /// The name under which templates refer to it (`${ctx.name}`).
    pub name: String,
    /// The key in the host's context.
    pub key: String,
    /// Whether the call is refused without it.
    pub required: bool,
    /// JSON Schema of the value (from `enum`, `type`, `pattern`, …), if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
}

/// A rule over arguments and context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConstraintSpec {
    /// The expression.
    pub rule: String,
    /// What the model is told where it does not hold.
    pub message: String,
}

/// A test inside a manifest.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolTest {
    /// Its name.
    pub name: String,
    /// The arguments of the call.
    pub args: Value,
    /// The host's context of the call.
    pub ctx: BTreeMap<String, Value>,
    /// What the server answers, for a tool that sends a request; nothing is sent then.
    pub answer: Option<RecordedAnswer>,
    /// What must hold.
    pub expect: Expectation,
    /// Where it stands.
    pub origin: Origin,
}

/// An answer of a server that was written down. Lent to a call as a service, it stands for the server:
/// the request is made up as always, and not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedAnswer {
    /// The status, from 100 to 599.
    pub status: u16,
    /// The media type of the body, as `Content-Type` has it.
    pub media_type: String,
    /// The body.
    pub body: Vec<u8>,
}

/// What a test expects; everything given must hold.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Expectation {
    /// The call fails with this kind; without it, the call succeeds.
    pub error: Option<String>,
    /// The argument vector contains each of these, as whole arguments. Nothing runs for this one.
    pub argv_contains: Vec<String>,
    /// The argument vector is exactly this. Nothing runs for this one.
    pub argv: Option<Vec<String>>,
    /// The request goes to exactly this URL. Nothing is sent for this one.
    pub url: Option<String>,
    /// The request's body: its JSON, its form as a mapping, or its text. Nothing is sent for this
    /// one.
    pub body: Option<Value>,
    /// The result's text contains each of these.
    pub text_contains: Vec<String>,
    /// The result's text matches this pattern.
    pub text_matches: Option<String>,
    /// The result's data equals this.
    pub data: Option<Value>,
}
