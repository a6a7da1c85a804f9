//! The keys of the format, one table per mapping.

use toolcrib_tool::{Approval, Dedupe, ErrorKind, IconTheme, TaskMode};

use crate::declaration::{HttpMethod, SandboxProfile};
use crate::fields::Expected::{
    Any, Bool, Choice, Duration, FlagOrMapping, Integer, List, Mapping, MappingLike, Rate, Schema,
    Size, Text, TextMapping, Texts,
};
#[cfg(not(feature = "cel"))]
use crate::fields::not_yet;
use crate::fields::{Key, Keys, optional, required};

const fn table(what: &'static str, table: &'static [Key]) -> Keys {
    Keys { what, table, instead: &[] }
}

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
        ("description", "it belongs to a tool: tools stand in the list `tools:`"),
        ("input", "it belongs to a tool: tools stand in the list `tools:`"),
        ("mcpServers", "MCP servers stand in the list `upstream:`, each with its own `name`"),
        ("servers", "MCP servers stand in the list `upstream:`, each with its own `name`"),
        ("upstreams", "write `upstream:` with a list"),
        ("name", "tools stand in the list `tools:`, each with its own `name`"),
        ("run", "it belongs to a tool: tools stand in the list `tools:`"),
        (
            "version",
            "the format's version is the key `toolcrib`; a tool's own is `version` in the tool",
        ),
    ],
};

/// The keys of a file that declare something: it needs one of them.
pub(super) const DECLARING: [&str; 4] = ["tools", "upstream", "prompts", "resources"];

/// What the tools of a file have in common. Limits stand in it directly.
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
        ("limits", "limits stand in `defaults` directly: `defaults: {timeout: 20s, rate: 30/min}`"),
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
        ("inputSchema", "the schema of the arguments is `input`"),
        ("input_schema", "the schema of the arguments is `input`"),
        ("max_concurrent", "write `limits: {concurrent: 4}`"),
        ("method", "write it inside `http: {method: POST, url: …}`"),
        ("parameters", "the schema of the arguments is `input`"),
        ("rate", "write `limits: {rate: 30/min}`"),
        ("rate_limit", "write `limits: {rate: 30/min}`"),
        ("read_only", "write `annotations: {read_only: true}`"),
        ("reads", "write `resources: {reads: […]}`"),
        ("retries", "write `retry: {max: 2}`"),
        ("timeout", "write `limits: {timeout: 30s}`"),
        ("ttl", "write `cache: {ttl: 30s}`"),
        ("url", "write it inside `http: {method: GET, url: …}`"),
        ("writes", "write `resources: {writes: […]}`"),
    ],
};

/// What a client tool takes.
pub(super) const CLIENT: Keys = Keys {
    what: "a client tool",
    table: &[
        required(
            "kind",
            Choice(&["local_shell", "text", "regex", "lark"]),
            "say what the client is given: `kind: local_shell`, `text`, `regex` or `lark`",
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

/// Another MCP server.
pub(super) const UPSTREAM: Keys = Keys {
    what: "an upstream",
    table: &[
        required("name", Text, "add `name:`; the server's tools are called <name>_<tool>"),
        optional("command", Texts),
        optional("env", TextMapping),
        optional("pass_env", Texts),
        optional("cwd", Text),
        optional("url", Text),
        optional("auth", MappingLike("{bearer: \"${secret.token}\"}")),
        optional("headers", TextMapping),
        optional("allow_private", Texts),
        optional("tools", MappingLike("{include: [\"get_*\"]}")),
        optional("trust_annotations", Bool),
        optional("connect_timeout", Duration),
        optional("limits", Mapping),
        optional("tags", Texts),
        optional("category", Text),
        APPROVAL_KEY,
        SANDBOX_KEY,
    ],
    instead: &[
        ("args", "the program and its arguments are one list: `command: [program, argument]`"),
        ("argv", "write `command: [program, argument]`"),
        ("bearer", "write `auth: {bearer: \"${secret.token}\"}`"),
        ("exclude", "write `tools: {exclude: [\"delete_*\"]}`"),
        ("include", "write `tools: {include: [\"get_*\"]}`"),
        ("run", "write `command: [program, argument]`"),
        ("timeout", "write `limits: {timeout: 60s}`"),
        ("token", "write `auth: {bearer: \"${secret.token}\"}`"),
        ("type", "`command` means standard input and output, `url` means HTTP: remove the key"),
        (
            "transport",
            "`command` means standard input and output, `url` means HTTP: remove the key",
        ),
    ],
};

/// A picture of a tool, a prompt or a resource.
pub(super) const ICON: Keys = Keys {
    what: "an icon",
    table: &[
        required("src", Text, "say where it is: `src: https://…`"),
        optional("mime_type", Text),
        optional("sizes", Texts),
        optional("theme", Choice(&[IconTheme::Light.as_str(), IconTheme::Dark.as_str()])),
    ],
    instead: &[
        ("file", "write `src:` with an https address, or the whole picture as `data:image/…`"),
        ("mimeType", "write `mime_type`"),
        ("size", "write `sizes: [48x48]`"),
        ("url", "write `src`"),
    ],
};

/// A prompt.
pub(super) const PROMPT: Keys = Keys {
    what: "a prompt",
    table: &[
        required("name", Text, "add `name:`, by which clients ask for the prompt"),
        optional("title", Text),
        ICONS_KEY,
        required("description", Text, "say what the prompt is good for: people choose by it"),
        optional("arguments", List),
        required("messages", List, "write messages: [{role: user, text: Review this.}]"),
    ],
    instead: &[
        ("args", "write `arguments: [{name: language}]`"),
        ("input", "write `arguments: [{name: language}]`: what prompts are told is text"),
        ("text", "write `messages: [{role: user, text: …}]`"),
        ("template", "write `messages: [{role: user, text: …}]`"),
    ],
};

/// Something a prompt has to be told.
pub(super) const PROMPT_ARGUMENT: Keys = table(
    "an argument of a prompt",
    &[
        required("name", Text, "add `name:`; the messages have it as ${args.name}"),
        optional("title", Text),
        optional("description", Text),
        optional("required", Bool),
        optional("suggest", Texts),
    ],
);

/// Who says what the user does not.
pub(super) const ASSISTANT: &str = "assistant";

/// A message of a prompt.
pub(super) const PROMPT_MESSAGE: Keys = Keys {
    what: "a message",
    table: &[
        required("role", Choice(&["user", ASSISTANT]), "say who says it: role: user"),
        optional("text", Text),
        optional("file", Text),
        optional("mime_type", Text),
        optional("resource", Text),
    ],
    instead: &[
        ("content", "write `text: …`, `file: …` or `resource: …`"),
        ("image", "write `file: picture.png` and `mime_type: image/png`"),
    ],
};

/// A resource that clients can read. Not `resources` of a tool.
pub(super) const OFFERED_RESOURCE: Keys = Keys {
    what: "a resource",
    table: &[
        optional("uri", Text),
        optional("template", Text),
        required("name", Text, "add `name:`, what programs call it"),
        optional("title", Text),
        ICONS_KEY,
        optional("description", Text),
        optional("mime_type", Text),
        optional("text", Text),
        optional("file", Text),
        optional("suggest", MappingLike("{name: [one, another]}")),
    ],
    instead: &[
        ("mimeType", "write `mime_type`"),
        ("path", "write `file: notes.txt`, below this file's folder"),
        ("uriTemplate", "write `template`"),
        ("uri_template", "write `template`"),
        ("url", "write `uri`"),
    ],
};

/// The value of `require` under which a program runs only where its profile is enforced.
pub(super) const REQUIRED: &str = "required";

/// Under what a program runs.
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

/// What is sent to an upstream to be let in.
pub(super) const UPSTREAM_AUTH: Keys = Keys {
    what: "`auth`",
    table: &[required("bearer", Text, "write `bearer: \"${secret.token}\"`")],
    instead: &[
        ("header", "headers stand beside `auth`: `headers: {X-Api-Key: \"${secret.key}\"}`"),
        ("token", "write `bearer: \"${secret.token}\"`"),
    ],
};

/// Which of an upstream's tools are taken.
pub(super) const UPSTREAM_TOOLS: Keys =
    table("`tools` of an upstream", &[optional("include", Texts), optional("exclude", Texts)]);

/// Limits of calls of an upstream's tools.
pub(super) const UPSTREAM_LIMITS: Keys = Keys {
    what: "`limits` of an upstream",
    table: &[
        optional("timeout", Duration),
        optional("memory", Size),
        optional("concurrent", Integer),
        optional("rate", Rate),
    ],
    instead: &[
        ("connect", "write `connect_timeout: 30s` beside `limits`"),
        ("output", "remove it: what a server may send at once is bounded, and the host cuts it"),
    ],
};

/// Hints about what a call does.
pub(super) const ANNOTATIONS: Keys = table(
    "`annotations`",
    &[
        optional("read_only", Bool),
        optional("destructive", Bool),
        optional("idempotent", Bool),
        optional("open_world", Bool),
    ],
);

/// A rule over arguments and context.
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

/// Shells whose text this crate can read: those that quote as POSIX says.
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
    ],
    instead: &[
        ("command", "the program and its arguments are one list: `argv: [program, argument]`"),
        ("cwd", "`cwd` stands beside `run`, in the tool"),
        ("profile", "it belongs to `sandbox`, beside `run`: `sandbox: {profile: workspace}`"),
        ("read", "it belongs to `sandbox`, beside `run`: `sandbox: {read: [/srv/data]}`"),
        ("sandbox", "`sandbox` stands beside `run`, in the tool"),
        ("write", "it belongs to `sandbox`, beside `run`: `sandbox: {write: [/srv/data]}`"),
        ("timeout", "the time limit stands beside `run`: `limits: {timeout: 30s}`"),
    ],
};

/// A request.
pub(super) const HTTP: Keys = Keys {
    what: "`http`",
    table: &[
        optional("method", Choice(&METHODS)),
        required("url", Text, "say where the request goes: url: https://tickets.example/api"),
        optional("query", TextMapping),
        optional("headers", TextMapping),
        optional("auth", MappingLike("{bearer: \"${secret.token}\"}")),
        optional("json", Any),
        optional("form", TextMapping),
        optional("text", Text),
        optional("expect", MappingLike("{status: [200]}")),
        optional("select", Text),
        optional("allow_private", Texts),
    ],
    instead: &[
        ("allow", "write `allow_private: [10.20.0.0/16]`"),
        ("authorization", "write `auth: {bearer: \"${secret.token}\"}`"),
        ("bearer", "write `auth: {bearer: \"${secret.token}\"}`"),
        ("body", "write `json: {…}`, `form: {…}` or `text: …`"),
        ("data", "write `json: {…}`, `form: {…}` or `text: …`"),
        ("host", "the host is a part of `url`"),
        ("output", "`output` stands beside `http`, in the tool"),
        ("params", "write `query: {name: value}`"),
        ("path", "the path is a part of `url`"),
        ("retry", "`retry` stands beside `http`, in the tool"),
        ("status", "write `expect: {status: [200]}`"),
        ("timeout", "the time limit stands beside `http`: `limits: {timeout: 20s}`"),
    ],
};

/// The credentials of a request: one of these.
pub(super) const HTTP_AUTH: Keys = Keys {
    what: "`auth`",
    table: &[
        optional("bearer", Text),
        optional("basic", MappingLike("{user: me, password: \"${secret.password}\"}")),
        optional("header", MappingLike("{name: X-Api-Key, value: \"${secret.key}\"}")),
    ],
    instead: &[
        ("password", "write `basic: {user: …, password: …}`"),
        ("query", "write it in `query` beside `auth`: it is taken out of what calls hand out"),
        ("token", "write `bearer: \"${secret.token}\"`"),
        ("user", "write `basic: {user: …, password: …}`"),
        ("username", "write `basic: {user: …, password: …}`"),
    ],
};

/// A user name and a password.
pub(super) const HTTP_BASIC: Keys = Keys {
    what: "`basic`",
    table: &[
        required("user", Text, "add `user:`; for a token without a name write user: \"\""),
        required("password", Text, "add `password: \"${secret.name}\"`"),
    ],
    instead: &[("username", "write `user`")],
};

/// A header that is a credential.
pub(super) const HTTP_AUTH_HEADER: Keys = table(
    "`header`",
    &[
        required("name", Text, "add the header's name: name: X-Api-Key"),
        required("value", Text, "add `value: \"${secret.name}\"`"),
    ],
);

/// What is a success.
pub(super) const HTTP_EXPECT: Keys = table("`expect` of `http`", &[optional("status", List)]);

/// The words of all methods.
const METHODS: [&str; HttpMethod::ALL.len()] = {
    let mut names = [""; HttpMethod::ALL.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = HttpMethod::ALL[at].as_str();
        at += 1;
    }
    names
};

/// The four ways to say what runs, and the other keys of `run` that go with each.
pub(super) const WAYS: [(&str, &[&str]); 4] = [
    ("argv", &["stdin", "env", "pass_env", "ok_exit", "retry_exit"]),
    ("script", &["args", "stdin", "env", "pass_env", "ok_exit", "retry_exit"]),
    ("shell", &["text", "vars", "stdin", "env", "pass_env", "ok_exit", "retry_exit"]),
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

/// How long answers are kept.
pub(super) const CACHE: Keys =
    table("`cache`", &[optional("ttl", Duration), optional("shared", Bool)]);

/// How often a failed call is tried again.
pub(super) const RETRY: Keys = Keys {
    what: "`retry`",
    table: &[
        required("max", Integer, "say how many times more: `retry: {max: 2}`"),
        optional("backoff", Duration),
    ],
    instead: &[
        ("exit", "the exit codes worth another try stand in `run: {retry_exit: [75]}`"),
        ("times", "write `max: 2`"),
    ],
};

/// What calls read and change.
pub(super) const RESOURCES: Keys =
    table("`resources`", &[optional("reads", Texts), optional("writes", Texts)]);

/// What must be there.
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

/// A test.
pub(super) const TEST: Keys = table(
    "a test",
    &[
        required("name", Text, "add `name:`, which the report shows"),
        optional("args", Mapping),
        optional("ctx", Mapping),
        optional("answer", Mapping),
        required("expect", Mapping, "add `expect:`; `expect: {}` expects success"),
    ],
);

/// The recorded answer of a test.
pub(super) const ANSWER: Keys = table(
    "`answer`",
    &[
        optional("status", Integer),
        optional("type", Text),
        optional("json", Any),
        optional("text", Text),
    ],
);

/// What a test expects.
pub(super) const EXPECT: Keys = table(
    "`expect`",
    &[
        optional("error", Choice(&ERROR_KINDS)),
        optional("argv", Texts),
        optional("argv_contains", Texts),
        optional("url", Text),
        optional("body", Any),
        optional("text_contains", Texts),
        optional("text_matches", Text),
        optional("data", Any),
    ],
);

/// Where a mapping with a table of its own stands, seen from its key.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    /// It is the value.
    Here,
    /// It is each item of a list.
    EachItem,
    /// It, or a text, is each item of a list.
    EachItemOrText,
    /// It is the value, unless that is true or false.
    HereOrFlag,
}

/// The mappings with tables of their own: under which key of which table.
const NESTED: &[(&Keys, &str, Place, &Keys)] = &[
    (&FILE, "defaults", Place::Here, &DEFAULTS),
    (&FILE, "tools", Place::EachItem, &TOOL),
    (&DEFAULTS, "cache", Place::Here, &CACHE),
    (&DEFAULTS, "retry", Place::Here, &RETRY),
    (&DEFAULTS, "resources", Place::Here, &RESOURCES),
    (&TOOL, "cache", Place::Here, &CACHE),
    (&TOOL, "retry", Place::Here, &RETRY),
    (&FILE, "upstream", Place::EachItem, &UPSTREAM),
    (&FILE, "prompts", Place::EachItem, &PROMPT),
    (&FILE, "resources", Place::EachItem, &OFFERED_RESOURCE),
    (&TOOL, "icons", Place::EachItem, &ICON),
    (&PROMPT, "icons", Place::EachItem, &ICON),
    (&OFFERED_RESOURCE, "icons", Place::EachItem, &ICON),
    (&PROMPT, "arguments", Place::EachItem, &PROMPT_ARGUMENT),
    (&PROMPT, "messages", Place::EachItem, &PROMPT_MESSAGE),
    (&TOOL, "sandbox", Place::Here, &SANDBOX),
    (&UPSTREAM, "sandbox", Place::Here, &SANDBOX),
    (&UPSTREAM, "auth", Place::Here, &UPSTREAM_AUTH),
    (&UPSTREAM, "tools", Place::Here, &UPSTREAM_TOOLS),
    (&UPSTREAM, "limits", Place::Here, &UPSTREAM_LIMITS),
    (&TOOL, "resources", Place::Here, &RESOURCES),
    (&TOOL, "client", Place::HereOrFlag, &CLIENT),
    (&TOOL, "annotations", Place::Here, &ANNOTATIONS),
    (&TOOL, "run", Place::Here, &RUN),
    (&TOOL, "limits", Place::Here, &LIMITS),
    (&TOOL, "needs", Place::Here, &NEEDS),
    (&TOOL, "output", Place::Here, &OUTPUT),
    (&TOOL, "tests", Place::EachItem, &TEST),
    (&TOOL, "constraints", Place::EachItem, &CONSTRAINT),
    (&RUN, "argv", Place::EachItemOrText, &ARGV_ENTRY),
    (&TOOL, "http", Place::Here, &HTTP),
    (&HTTP, "auth", Place::Here, &HTTP_AUTH),
    (&HTTP, "expect", Place::Here, &HTTP_EXPECT),
    (&HTTP_AUTH, "basic", Place::Here, &HTTP_BASIC),
    (&HTTP_AUTH, "header", Place::Here, &HTTP_AUTH_HEADER),
    (&RUN, "args", Place::EachItemOrText, &ARGV_ENTRY),
    (&TEST, "expect", Place::Here, &EXPECT),
    (&TEST, "answer", Place::Here, &ANSWER),
];

/// The table of what stands under a key of a table.
pub(super) fn nested(table: &Keys, key: &str) -> Option<(Place, &'static Keys)> {
    NESTED
        .iter()
        .find(|(outer, name, ..)| outer.what == table.what && *name == key)
        .map(|(_, _, place, inner)| (*place, *inner))
}

/// The strings of all kinds of error.
const ERROR_KINDS: [&str; ErrorKind::ALL.len()] = {
    let mut names = [""; ErrorKind::ALL.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = ErrorKind::ALL[at].as_str();
        at += 1;
    }
    names
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_names_every_key() {
        let reference = include_str!("../docs/manifest.md");
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
