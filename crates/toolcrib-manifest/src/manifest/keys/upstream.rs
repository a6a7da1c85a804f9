//! The keys of other MCP servers as sources of tools.

use super::{APPROVAL_KEY, SANDBOX_KEY};
use crate::fields::Expected::{
    Bool, Duration, Integer, Mapping, MappingLike, Rate, Size, Text, TextMapping, Texts,
};
use crate::fields::{Keys, optional, required};

/// Another MCP server.
pub(in crate::manifest) const UPSTREAM: Keys = Keys {
    what: "an upstream",
    table: &[
        required("name", Text, "add `name:`; the server's tools are called <name>_<tool>"),
        optional("command", Texts),
        optional("env", TextMapping),
        optional("pass_env", Texts),
        optional("keep_home", Bool),
        optional("cwd", Text),
        optional("url", Text),
        optional("auth", MappingLike("{bearer: \"${secret.token}\"}")),
        optional("headers", TextMapping),
        optional("allow_private", Texts),
        optional("tools", MappingLike("{include: [\"get_*\"]}")),
        optional("resources", MappingLike("{include: [\"docs://*\"]}")),
        optional("prompts", MappingLike("{include: [\"review_*\"]}")),
        optional("trust_annotations", Bool),
        optional("connect_timeout", Duration),
        optional("limits", Mapping),
        optional("tags", Texts),
        optional("category", Text),
        APPROVAL_KEY,
        SANDBOX_KEY,
    ],
    instead: &[
        (
            "args",
            "append its entries to the end of `command`, which is one list: `command: [program, argument]`",
        ),
        ("argv", "write `command: [program, argument]`"),
        ("bearer", "write `auth: {bearer: \"${secret.token}\"}`"),
        ("exclude", "write `tools: {exclude: [\"delete_*\"]}`"),
        ("cache", "write `keep_home: true`: a HOME of its own is kept between starts"),
        ("include", "write `tools: {include: [\"get_*\"]}`"),
        ("override", "write `tools: {override: {get_issue: {name: issue}}}`"),
        ("prefix", "write `tools: {prefix: gh}`"),
        ("run", "write `command: [program, argument]`"),
        ("timeout", "write `limits: {timeout: <time>}`"),
        ("token", "write `auth: {bearer: \"${secret.token}\"}`"),
        ("type", "`command` means standard input and output, `url` means HTTP: remove the key"),
        (
            "transport",
            "`command` means standard input and output, `url` means HTTP: remove the key",
        ),
    ],
};

/// What is sent to an upstream to be let in.
pub(in crate::manifest) const UPSTREAM_AUTH: Keys = Keys {
    what: "`auth`",
    table: &[required("bearer", Text, "write `bearer: \"${secret.token}\"`")],
    instead: &[
        ("header", "headers belong beside `auth`: `headers: {X-Api-Key: \"${secret.key}\"}`"),
        ("token", "write `bearer: \"${secret.token}\"`"),
    ],
};

/// Which of an upstream's tools are offered, and how.
pub(in crate::manifest) const UPSTREAM_TOOLS: Keys = Keys {
    what: "`tools` of an upstream",
    table: &[
        optional("include", Texts),
        optional("exclude", Texts),
        optional("prefix", Text),
        optional("override", MappingLike("{get_issue: {name: issue}}")),
    ],
    instead: &[
        ("namespace", "write `prefix: gh`"),
        ("overrides", "write `override: {get_issue: {name: issue}}`"),
        ("rename", "write `override: {get_issue: {name: issue}}`"),
    ],
};

/// Which of an upstream's resources are offered.
pub(in crate::manifest) const UPSTREAM_RESOURCES: Keys = super::table(
    "`resources` of an upstream",
    &[optional("include", Texts), optional("exclude", Texts)],
);

/// Which of an upstream's prompts are offered.
pub(in crate::manifest) const UPSTREAM_PROMPTS: Keys = super::table(
    "`prompts` of an upstream",
    &[optional("include", Texts), optional("exclude", Texts)],
);

/// What replaces the server's words about one tool.
pub(in crate::manifest) const UPSTREAM_OVERRIDE: Keys = Keys {
    what: "an override of a tool",
    table: &[
        optional("name", Text),
        optional("title", Text),
        optional("description", Text),
        optional("annotations", MappingLike("{read_only: true}")),
        APPROVAL_KEY,
    ],
    instead: &[
        ("destructive", "write `annotations: {destructive: false}`"),
        ("hints", "write `annotations: {read_only: true}`"),
        ("read_only", "write `annotations: {read_only: true}`"),
    ],
};

/// Limits of calls of an upstream's tools.
pub(in crate::manifest) const UPSTREAM_LIMITS: Keys = Keys {
    what: "`limits` of an upstream",
    table: &[
        optional("timeout", Duration),
        optional("memory", Size),
        optional("concurrent", Integer),
        optional("rate", Rate),
    ],
    instead: &[
        ("connect", "write `connect_timeout: 30s` beside `limits`"),
        ("output", "remove it: the host limits the size of results"),
    ],
};
