//! The keys of the format, one table per mapping.

mod cases;
mod http;
mod nested;
mod offering;
mod upstream;

use toolcrib_tool::{Approval, Dedupe, TaskMode};

pub(super) use self::cases::{ANSWER, EXPECT, TEST};
pub(super) use self::http::{HTTP, HTTP_AUTH, HTTP_AUTH_HEADER, HTTP_BASIC, HTTP_EXPECT};
pub(super) use self::nested::{Place, nested};
pub(super) use self::offering::{
    ASSISTANT, ICON, OFFERED_RESOURCE, PROMPT, PROMPT_ARGUMENT, PROMPT_MESSAGE,
};
pub(super) use self::upstream::{
    UPSTREAM, UPSTREAM_AUTH, UPSTREAM_LIMITS, UPSTREAM_OVERRIDE, UPSTREAM_PROMPTS,
    UPSTREAM_RESOURCES, UPSTREAM_TOOLS,
};
use crate::declaration::SandboxProfile;
use crate::fields::Expected::{
    Bool, Choice, Duration, FlagOrMapping, Integer, List, Mapping, MappingLike, Rate, Schema, Size,
    Text, TextMapping, Texts,
};
#[cfg(not(feature = "cel"))]
use crate::fields::not_yet;
use crate::fields::{Key, Keys, optional, required};

const fn table(what: &'static str, table: &'static [Key]) -> Keys {
    Keys { what, table, instead: &[] }
}

/// What to do about a schedule.
const SCHEDULED: &str = "a call is made by a client: for calls at set times let cron or a timer run `toolcrib call NAME`";

/// The root of a file.
pub(super) const FILE: Keys = Keys {
    what: "a manifest",
    table: &[
        required("toolcrib", Integer, "add `toolcrib: 1`, the version of the format"),
        optional("requires", Text),
        optional("namespace", Text),
        optional("owner", Text),
        optional("defaults", Mapping),
        optional("tools", List),
        optional("upstream", List),
        optional("prompts", List),
        optional("resources", List),
    ],
    instead: &[
        ("prompt", "write `prompts:` with a list"),
        ("description", "it belongs to a tool: tools belong in the list `tools:`"),
        ("input", "it belongs to a tool: tools belong in the list `tools:`"),
        (
            "mcpServers",
            "MCP servers belong in a list, each with its own name: `upstream: [{name: files, command: \
             [program, argument]}]`",
        ),
        ("servers", "MCP servers belong in the list `upstream:`, each with its own `name`"),
        ("upstreams", "write `upstream:` with a list"),
        ("name", "tools belong in the list `tools:`, each with its own `name`"),
        ("run", "it belongs to a tool: tools belong in the list `tools:`"),
        (
            "version",
            "the format's version is the key `toolcrib`; a tool's own is `version` in the tool",
        ),
    ],
};

/// The keys of a file that declare something. A file needs one of them.
pub(super) const DECLARING: [&str; 4] = ["tools", "upstream", "prompts", "resources"];

/// The defaults of a file's tools, with limits at the top level.
pub(super) const DEFAULTS: Keys = Keys {
    what: "`defaults`",
    table: &[
        optional("timeout", Duration),
        optional("output", Size),
        optional("memory", Size),
        optional("concurrent", Integer),
        optional("rate", Rate),
        optional("tags", Texts),
        optional("category", Text),
        CACHE_KEY,
        DEDUPE_KEY,
        RETRY_KEY,
        RESOURCES_KEY,
        APPROVAL_KEY,
        TASK_KEY,
    ],
    instead: &[
        ("limits", "limits belong directly in `defaults`: `defaults: <value>`"),
        ("max_concurrent", "write `concurrent: 4`"),
    ],
};

const CACHE_KEY: Key = optional("cache", MappingLike("{ttl: 30s}"));
const DEDUPE_KEY: Key = optional(
    "dedupe",
    Choice(&[Dedupe::None.as_str(), Dedupe::Batch.as_str(), Dedupe::Session.as_str()]),
);
const RETRY_KEY: Key = optional("retry", MappingLike("{max: 2}"));
const RESOURCES_KEY: Key = optional("resources", MappingLike("{reads: [tickets]}"));
const APPROVAL_KEY: Key = optional(
    "approval",
    Choice(&[Approval::Never.as_str(), Approval::Destructive.as_str(), Approval::Always.as_str()]),
);
const TASK_KEY: Key = optional(
    "task",
    Choice(&[TaskMode::Never.as_str(), TaskMode::Auto.as_str(), TaskMode::Required.as_str()]),
);
const ICONS_KEY: Key = optional("icons", List);

const SANDBOX_KEY: Key = optional("sandbox", MappingLike("{profile: workspace+net}"));

#[cfg(feature = "cel")]
const CONSTRAINTS_KEY: Key = optional("constraints", List);
#[cfg(not(feature = "cel"))]
const CONSTRAINTS_KEY: Key = not_yet(
    "constraints",
    "this program was built without the feature `cel`, which the released `toolcrib` has",
);

/// A tool.
pub(super) const TOOL: Keys = Keys {
    what: "a tool",
    table: &[
        required("name", Text, "add `name:`, by which models call the tool"),
        optional("title", Text),
        ICONS_KEY,
        required(
            "description",
            Text,
            "say what the tool does and when to use it: models choose by it",
        ),
        optional("category", Text),
        optional("tags", Texts),
        optional("version", Text),
        optional("annotations", Mapping),
        optional("input", Schema),
        optional("output_schema", Schema),
        optional("input_examples", List),
        optional("examples", List),
        optional("empty_as_absent", Texts),
        optional("assert_formats", Bool),
        optional("context", Mapping),
        optional("run", Mapping),
        optional("http", MappingLike("{method: GET, url: \"https://…\"}")),
        optional("cwd", Text),
        optional("limits", Mapping),
        optional("needs", Mapping),
        optional("output", Mapping),
        optional("progress", Texts),
        optional("tests", List),
        optional("final_output", Bool),
        optional("terminal", Bool),
        optional("hidden", Bool),
        optional("parallel", Bool),
        optional("client", FlagOrMapping("{kind: local_shell}")),
        CACHE_KEY,
        DEDUPE_KEY,
        RETRY_KEY,
        RESOURCES_KEY,
        APPROVAL_KEY,
        TASK_KEY,
        SANDBOX_KEY,
        CONSTRAINTS_KEY,
    ],
    instead: &[
        ("args", "the schema of the arguments is `input`; the program's are `run: {argv: […]}`"),
        ("arguments", "the schema of the arguments is `input`"),
        ("argv", "write it inside `run`: `run: {argv: [program, argument]}`"),
        ("cmd", "write `run: {argv: [program, argument]}`, with an entry for each argument"),
        ("command", "write `run: {argv: [program, argument]}`, with an entry for each argument"),
        ("confirm", "write `approval: always`"),
        ("env", "write it inside `run: {env: …}`"),
        ("concurrent", "write `limits: {concurrent: 4}`"),
        ("cron", SCHEDULED),
        ("inputSchema", "the schema of the arguments is `input`"),
        ("input_schema", "the schema of the arguments is `input`"),
        ("max_concurrent", "write `limits: {concurrent: 4}`"),
        ("method", "write it inside `http: {method: POST, url: …}`"),
        ("parameters", "the schema of the arguments is `input`"),
        (
            "policy",
            "write `approval: always` to be asked about every call; rules about several tools \
             belong in config.yml: `policy: {rules: […]}`",
        ),
        ("rate", "write `limits: {rate: 30/min}`"),
        ("rate_limit", "write `limits: {rate: 30/min}`"),
        ("read_only", "write `annotations: {read_only: true}`"),
        ("reads", "write `resources: {reads: […]}`"),
        ("retries", "write `retry: {max: 2}`"),
        ("body", "write it inside `http`: `http: {method: POST, url: …, json: …}`"),
        ("headers", "write it inside `http`: `http: {method: GET, url: …, headers: …}`"),
        ("ok_exit", "write it inside `run`: `run: {ok_exit: [0, 1]}`"),
        ("script", "write it inside `run`: `run: {script: ./script.sh}`"),
        ("shell", "write it inside `run`: `run: {shell: sh, text: …}`"),
        ("stdin", "write it inside `run`: `run: {stdin: …}`"),
        ("text", "write it inside `run`: `run: {shell: sh, text: …}`"),
        ("worker", "write it inside `run`: `run: {worker: [program, argument]}`"),
        ("schedule", SCHEDULED),
        ("timeout", "write `limits: {timeout: <time>}`"),
        ("ttl", "write `cache: {ttl: <time>}`"),
        ("url", "write it inside `http`: `http: {method: GET, url: …}`"),
        ("writes", "write `resources: {writes: […]}`"),
    ],
};

/// The input of a client tool.
pub(super) const CLIENT: Keys = Keys {
    what: "a client tool",
    table: &[
        required(
            "kind",
            Choice(&["local_shell", "text", "regex", "lark"]),
            "say which input the client gets: `kind: local_shell`, `text`, `regex` or `lark`",
        ),
        optional("pattern", Text),
        optional("grammar", Text),
    ],
    instead: &[
        ("definition", "write `pattern:` for `kind: regex`, `grammar:` for `kind: lark`"),
        ("regex", "write `kind: regex` and `pattern:`"),
        ("lark", "write `kind: lark` and `grammar:`"),
        ("syntax", "write `kind: regex` or `kind: lark`"),
        ("type", "write `kind:`"),
    ],
};

/// The value of `require` with which a program runs only if its profile is enforced.
pub(super) const REQUIRED: &str = "required";

/// The confinement of a program.
pub(super) const SANDBOX: Keys = Keys {
    what: "`sandbox`",
    table: &[
        optional(
            "profile",
            Choice(&[
                SandboxProfile::Pure.as_str(),
                SandboxProfile::Workspace.as_str(),
                SandboxProfile::WorkspaceNet.as_str(),
                SandboxProfile::Trusted.as_str(),
            ]),
        ),
        optional("read", Texts),
        optional("write", Texts),
        optional("require", Choice(&["best_effort", REQUIRED])),
    ],
    instead: &[
        ("network", "write `profile: workspace+net`"),
        ("required", "write `require: required`"),
        ("paths", "write `read: [/srv/data]` or `write: [/srv/data]`"),
    ],
};

/// Hints about what a call does.
pub(super) const ANNOTATIONS: Keys = Keys {
    what: "`annotations`",
    table: &[
        optional("read_only", Bool),
        optional("destructive", Bool),
        optional("idempotent", Bool),
        optional("open_world", Bool),
    ],
    instead: &[
        ("approval", BESIDE_ANNOTATIONS),
        ("cache", BESIDE_ANNOTATIONS),
        ("client", BESIDE_ANNOTATIONS),
        ("http", BESIDE_ANNOTATIONS),
        ("input", BESIDE_ANNOTATIONS),
        ("limits", BESIDE_ANNOTATIONS),
        ("output", BESIDE_ANNOTATIONS),
        ("run", BESIDE_ANNOTATIONS),
        ("sandbox", BESIDE_ANNOTATIONS),
        ("tests", BESIDE_ANNOTATIONS),
    ],
};

/// The repair for a key of the tool that is indented too far.
const BESIDE_ANNOTATIONS: &str =
    "it is a key of the tool, and stands beside `annotations`: indent it as far as that";

/// A rule about arguments and context values.
pub(super) const CONSTRAINT: Keys = Keys {
    what: "a constraint",
    table: &[
        required("rule", Text, "add `rule:`, an expression such as \"args.lines <= 500\""),
        required("message", Text, "add `message:`, which tells the model what would be right"),
    ],
    instead: &[
        ("cel", "write `rule: \"args.lines <= 500\"`"),
        ("expression", "write `rule: \"args.lines <= 500\"`"),
        ("text", "write `message:`"),
    ],
};

/// Shells whose text this crate can parse: those with POSIX quoting.
const SHELLS: [&str; 7] = ["sh", "bash", "dash", "ash", "zsh", "ksh", "mksh"];

/// How a program is started.
pub(super) const RUN: Keys = Keys {
    what: "`run`",
    table: &[
        optional("argv", List),
        optional("stdin", Text),
        optional("env", TextMapping),
        optional("pass_env", Texts),
        optional("ok_exit", List),
        optional("retry_exit", List),
        optional("script", Text),
        optional("args", List),
        optional("shell", Choice(&SHELLS)),
        optional("text", Text),
        optional("vars", TextMapping),
        optional("worker", Texts),
        optional("protocol", Choice(&["jsonl"])),
        optional("idle", Duration),
        optional("max_calls", Integer),
        optional("unsafe_argv", Text),
    ],
    instead: &[
        ("command", "the program and its arguments are one list: `argv: [program, argument]`"),
        ("cwd", "`cwd` belongs beside `run`, in the tool"),
        ("limits", "`limits` belongs beside `run`, in the tool"),
        ("profile", "it belongs to `sandbox`, beside `run`: `sandbox: {profile: workspace}`"),
        ("read", "it belongs to `sandbox`, beside `run`: `sandbox: {read: [/srv/data]}`"),
        ("sandbox", "`sandbox` belongs beside `run`, in the tool"),
        ("tests", "`tests` belongs beside `run`, in the tool"),
        ("write", "it belongs to `sandbox`, beside `run`: `sandbox: {write: [/srv/data]}`"),
        ("timeout", "the time limit belongs beside `run`: `limits: {timeout: <time>}`"),
    ],
};

/// The four keys for what to run, each with the other keys of `run` that apply to it.
pub(super) const WAYS: [(&str, &[&str]); 4] = [
    ("argv", &["stdin", "env", "pass_env", "ok_exit", "retry_exit", "unsafe_argv"]),
    ("script", &["args", "stdin", "env", "pass_env", "ok_exit", "retry_exit", "unsafe_argv"]),
    (
        "shell",
        &["text", "vars", "stdin", "env", "pass_env", "ok_exit", "retry_exit", "unsafe_argv"],
    ),
    ("worker", &["protocol", "idle", "max_calls", "env", "pass_env"]),
];

/// An entry of `argv` that is not a text.
pub(super) const ARGV_ENTRY: Keys = table(
    "an entry of `argv`",
    &[optional("if", Text), optional("then", Texts), optional("each", Text)],
);

/// Limits of a call, and of how many there may be.
pub(super) const LIMITS: Keys = Keys {
    what: "`limits`",
    table: &[
        optional("timeout", Duration),
        optional("output", Size),
        optional("transfer", Size),
        optional("memory", Size),
        optional("concurrent", Integer),
        optional("rate", Rate),
    ],
    instead: &[
        ("concurrency", "write `concurrent: 4`"),
        ("max_concurrent", "write `concurrent: 4`"),
        ("rate_limit", "write `rate: 30/min`"),
    ],
};

/// How results are cached.
pub(super) const CACHE: Keys =
    table("`cache`", &[optional("ttl", Duration), optional("shared", Bool)]);

/// How often a failed call is retried.
pub(super) const RETRY: Keys = Keys {
    what: "`retry`",
    table: &[
        required("max", Integer, "add the number of retries: `retry: {max: 2}`"),
        optional("backoff", Duration),
    ],
    instead: &[
        ("exit", "the exit codes of temporary failures belong in `run: {retry_exit: [75]}`"),
        ("times", "write `max: 2`"),
    ],
};

/// What calls read and change.
pub(super) const RESOURCES: Keys =
    table("`resources`", &[optional("reads", Texts), optional("writes", Texts)]);

/// What the tool needs to be available.
pub(super) const NEEDS: Keys = table(
    "`needs`",
    &[optional("bins", Texts), optional("env", Texts), optional("secrets", Texts)],
);

/// How output becomes a result.
pub(super) const OUTPUT: Keys = table(
    "`output`",
    &[
        optional("format", Choice(&["text", "json", "lines", "auto"])),
        optional("keep", Choice(&["both", "head", "tail"])),
        optional("redact", Texts),
    ],
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_names_every_key() {
        let reference = include_str!("../../docs/manifest.md");
        let tables = [
            &FILE,
            &DEFAULTS,
            &TOOL,
            &UPSTREAM,
            &PROMPT,
            &PROMPT_ARGUMENT,
            &PROMPT_MESSAGE,
            &OFFERED_RESOURCE,
            &ICON,
            &SANDBOX,
            &UPSTREAM_AUTH,
            &UPSTREAM_OVERRIDE,
            &UPSTREAM_RESOURCES,
            &UPSTREAM_PROMPTS,
            &UPSTREAM_TOOLS,
            &UPSTREAM_LIMITS,
            &ANNOTATIONS,
            &CONSTRAINT,
            &RUN,
            &HTTP,
            &HTTP_AUTH,
            &HTTP_BASIC,
            &HTTP_AUTH_HEADER,
            &HTTP_EXPECT,
            &LIMITS,
            &CACHE,
            &RETRY,
            &RESOURCES,
            &NEEDS,
            &OUTPUT,
            &TEST,
            &EXPECT,
        ];
        let keys =
            tables.iter().flat_map(|keys| keys.table.iter().map(|key| (keys.what, key.name)));
        let missing: Vec<_> = keys
            .filter(|(_, name)| {
                let written = [format!("`{name}`"), format!("{name}:"), format!(".{name}`")];
                !written.iter().any(|written| reference.contains(written))
            })
            .collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
