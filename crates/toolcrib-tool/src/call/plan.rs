//! What a call would do, for people who want to see it first.

use std::time::Duration;

use serde_json::{Value, json};

/// A description of what a call would do, made without doing it ([`Tool::plan`](crate::Tool::plan)).
///
/// It is complete and contains secrets in plain text. Mask it before showing it, as a dry run of the executor does.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Plan {
    /// It starts a program, or sends the call to a running one.
    Command(CommandPlan),
    /// It makes a request over HTTP.
    Request(RequestPlan),
    /// It passes the call to another MCP server.
    Upstream(UpstreamPlan),
}

/// A program that a call would start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandPlan {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Names of the variables that are set for it. Their values are not shown.
    pub env: Vec<String>,
    /// Names of the variables that it inherits from the server's environment.
    pub pass_env: Vec<String>,
    /// How many bytes it reads on standard input.
    pub stdin_bytes: usize,
    /// Whether it reads all arguments of the call as one JSON object on standard input.
    pub stdin_arguments: bool,
    /// Its working directory; empty for a temporary one.
    pub cwd: String,
    /// How many bytes of each output stream are kept.
    pub output_bytes: usize,
    /// Its sandbox profile; empty for a tool without one.
    pub sandbox: String,
    /// Its resource limits.
    pub limits: CommandLimits,
    /// Whether it is a worker: it is started only if it is not running yet, keeps running, and gets the call as a line
    /// on its standard input.
    pub worker: bool,
}

/// Resource limits of a program, in addition to the time limit of its call. `None` means the server's limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CommandLimits {
    /// How long it may run, if that is less than the call's time limit.
    pub time: Option<Duration>,
    /// Processor time.
    pub cpu: Option<Duration>,
    /// Bytes of address space.
    pub memory: Option<u64>,
    /// The largest file it may write, in bytes.
    pub file_size: Option<u64>,
    /// Open file descriptors.
    pub open_files: Option<u64>,
    /// Simultaneous processes.
    pub processes: Option<u32>,
}

/// A request that a call would make.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequestPlan {
    /// `GET`, `POST`, …
    pub method: String,
    /// The address, with its query.
    pub url: String,
    /// Names of the headers, including those for authentication.
    pub headers: Vec<String>,
    /// The body as data, if there is one: JSON, form fields, or text.
    pub body: Option<Value>,
}

/// A call that would be passed to another MCP server. The server gets only the arguments, and no context values of the
/// host.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UpstreamPlan {
    /// The server's name here.
    pub server: String,
    /// The tool's name there.
    pub tool: String,
    /// The arguments.
    pub arguments: Value,
}

impl Plan {
    /// Applies `change` to every text in the plan that could contain a value of the call, for example to mask it.
    #[must_use]
    pub fn map(self, change: impl Fn(String) -> String) -> Self {
        match self {
            Self::Command(plan) => Self::Command(CommandPlan {
                argv: plan.argv.into_iter().map(&change).collect(),
                cwd: change(plan.cwd),
                ..plan
            }),
            Self::Request(plan) => Self::Request(RequestPlan {
                url: change(plan.url),
                body: plan.body.map(|body| map_texts(body, &change)),
                ..plan
            }),
            Self::Upstream(plan) => Self::Upstream(UpstreamPlan {
                arguments: map_texts(plan.arguments, &change),
                ..plan
            }),
        }
    }

    /// The plan as a JSON object with `kind`: `command`, `request` or `upstream`.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Command(plan) => json!({
                "kind": "command",
                "argv": plan.argv,
                "env": plan.env,
                "pass_env": plan.pass_env,
                "stdin_bytes": plan.stdin_bytes,
                "stdin_arguments": plan.stdin_arguments,
                "sandbox": plan.sandbox,
                "cwd": plan.cwd,
                "output_bytes": plan.output_bytes,
                "limits": plan.limits.to_value(),
                "worker": plan.worker,
            }),
            Self::Request(plan) => json!({
                "kind": "request",
                "method": plan.method,
                "url": plan.url,
                "headers": plan.headers,
                "body": plan.body,
            }),
            Self::Upstream(plan) => json!({
                "kind": "upstream",
                "server": plan.server,
                "tool": plan.tool,
                "arguments": plan.arguments,
            }),
        }
    }
}

impl CommandLimits {
    /// The limits that are set, as a JSON object.
    fn to_value(self) -> Value {
        let seconds = |time: Option<Duration>| time.map(|time| json!(time.as_secs_f64()));
        let limits = [
            ("time_seconds", seconds(self.time)),
            ("cpu_seconds", seconds(self.cpu)),
            ("memory_bytes", self.memory.map(Value::from)),
            ("file_bytes", self.file_size.map(Value::from)),
            ("open_files", self.open_files.map(Value::from)),
            ("processes", self.processes.map(Value::from)),
        ];
        let there = limits.into_iter().filter_map(|(name, limit)| Some((name.to_owned(), limit?)));
        Value::Object(there.collect())
    }
}

/// Applies `change` to every text in a value, including member names, because they may come from a call.
fn map_texts(value: Value, change: &impl Fn(String) -> String) -> Value {
    match value {
        Value::String(text) => change(text).into(),
        Value::Array(items) => items.into_iter().map(|item| map_texts(item, change)).collect(),
        Value::Object(members) => members
            .into_iter()
            .map(|(name, member)| (change(name), map_texts(member, change)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other,
    }
}
