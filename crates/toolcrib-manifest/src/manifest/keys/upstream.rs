//! The keys of other MCP servers as sources of tools.

use super::{APPROVAL_KEY, SANDBOX_KEY, table};
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

/// What is sent to an upstream to be let in.
pub(in crate::manifest) const UPSTREAM_AUTH: Keys = Keys {
    what: "`auth`",
    table: &[required("bearer", Text, "write `bearer: \"${secret.token}\"`")],
    instead: &[
        ("header", "headers stand beside `auth`: `headers: {X-Api-Key: \"${secret.key}\"}`"),
        ("token", "write `bearer: \"${secret.token}\"`"),
    ],
};

/// Which of an upstream's tools are taken.
pub(in crate::manifest) const UPSTREAM_TOOLS: Keys =
    table("`tools` of an upstream", &[optional("include", Texts), optional("exclude", Texts)]);

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
        ("output", "remove it: what a server may send at once is bounded, and the host cuts it"),
    ],
};
