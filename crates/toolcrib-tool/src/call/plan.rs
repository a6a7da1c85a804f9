//! What a call would do, for people who want to see it first.

use std::time::Duration;

use serde_json::{Value, json};

/// What a call would do, said without doing it ([`Tool::plan`](crate::Tool::plan)).
///
/// It is complete: what is secret in it stands as it is. Whoever shows it masks it first, as a dry
/// run of the executor does.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Plan {
    /// It starts a program, or hands the call to one that runs already.
    Command(CommandPlan),
    /// It makes a request over HTTP.
    Request(RequestPlan),
    /// It hands the call on to another MCP server.
    Upstream(UpstreamPlan),
}

/// A program that a call would start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandPlan {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Names of the variables that are set for it. Their values are nobody's business.
    pub env: Vec<String>,
    /// Names of the variables that it gets from the server's own environment.
    pub pass_env: Vec<String>,
    /// How many bytes it reads on standard input.
    pub stdin_bytes: usize,
    /// The directory it starts in; empty for one of its own, which is gone afterwards.
    pub cwd: String,
    /// How many bytes of each of its output streams are kept.
    pub output_bytes: usize,
    /// The profile that it runs under; empty for one that knows none.
    pub sandbox: String,
    /// What it may use up.
    pub limits: CommandLimits,
    /// Whether it is a worker, which goes on running: it is started only if it does not run yet, and the
    /// call is a line on its standard input.
    pub worker: bool,
}

/// What a program may use up, beside the time of its call. `None`: as much as the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CommandLimits {
    /// How long it may run, where that is less than its call may take.
    pub time: Option<Duration>,
    /// Time on a processor.
    pub cpu: Option<Duration>,
    /// Bytes of address space.
    pub memory: Option<u64>,
    /// Bytes a file may grow to.
    pub file_size: Option<u64>,
    /// Descriptors it may have open.
    pub open_files: Option<u64>,
    /// Processes alive at once.
    pub processes: Option<u32>,
}

/// A request that a call would make.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequestPlan {
    /// `GET`, `POST`, …
    pub method: String,
    /// The address, with its query.
    pub url: String,
    /// Names of the headers, those of the authentication among them.
    pub headers: Vec<String>,
    /// The body as data, if there is one: its JSON, the fields of a form, or a text.
    pub body: Option<Value>,
}

/// A call that would be handed on to another MCP server. The arguments are all that it is told: no value
/// of the host's context goes there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UpstreamPlan {
    /// The server's name here.
    pub server: String,
    /// The tool's name there.
    pub tool: String,
    /// What it is called with.
    pub arguments: Value,
}

impl Plan {
    /// The plan with every text that could hold a value of the call changed by `change`, for
    /// example masked.
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
    /// Those that there are, as a JSON object.
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

/// Every text in a value, changed; names of members too, for they may come from a call.
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
