//! The keys of the format, one table per mapping.

use toolcrib_tool::ErrorKind;

use crate::fields::Expected::{
    Any, Bool, Choice, Duration, Integer, List, Mapping, Schema, Size, Text, TextMapping, Texts,
};
use crate::fields::{Key, Keys, not_yet, optional, required};

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
        required("tools", List, "add `tools:` with a list of tools; `tools: []` declares none"),
        not_yet("upstream", "this version does not connect to other MCP servers; remove the key"),
    ],
    instead: &[
        ("name", "tools stand in the list `tools:`, each with its own `name`"),
        (
            "version",
            "the format's version is the key `toolcrib`; a tool's own is `version` in the tool",
        ),
    ],
};

/// What the tools of a file have in common.
pub(super) const DEFAULTS: Keys = table(
    "`defaults`",
    &[
        optional("timeout", Duration),
        optional("output", Size),
        optional("tags", Texts),
        optional("category", Text),
    ],
);

/// A tool.
pub(super) const TOOL: Keys = Keys {
    what: "a tool",
    table: &[
        required("name", Text, "add `name:`, by which models call the tool"),
        optional("title", Text),
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
        optional("context", Mapping),
        optional("run", Mapping),
        optional("cwd", Text),
        optional("limits", Mapping),
        optional("needs", Mapping),
        optional("output", Mapping),
        optional("tests", List),
        optional("final_output", Bool),
        optional("terminal", Bool),
        optional("hidden", Bool),
        optional("parallel", Bool),
        not_yet("http", "this version runs commands only; call a program such as curl with `run`"),
        not_yet("client", "this version runs commands only; remove the tool"),
        not_yet(
            "sandbox",
            "this version cannot confine a program further; remove the key only if the program may run without",
        ),
        not_yet("constraints", "this version cannot check them; say it in the schema of `input`"),
        not_yet("cache", "this version runs every call; remove the key"),
        not_yet(
            "approval",
            "this version cannot ask anyone; do not serve a tool that needs approval",
        ),
        not_yet("dedupe", "this version runs every call; remove the key"),
        not_yet("retry", "this version runs a call once; remove the key"),
        not_yet(
            "resources",
            "this version cannot keep calls apart; `parallel: false` runs the tool alone",
        ),
    ],
    instead: &[
        ("args", "the schema of the arguments is `input`; the program's are `run: {argv: […]}`"),
        ("arguments", "the schema of the arguments is `input`"),
        ("argv", "write it inside `run: {argv: […]}`"),
        ("cmd", "write `run: {argv: […]}`"),
        ("command", "write `run: {argv: […]}`"),
        ("env", "write it inside `run: {env: …}`"),
        ("inputSchema", "the schema of the arguments is `input`"),
        ("input_schema", "the schema of the arguments is `input`"),
        ("parameters", "the schema of the arguments is `input`"),
        ("read_only", "write `annotations: {read_only: true}`"),
        ("timeout", "write `limits: {timeout: 30s}`"),
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

/// How a program is started.
pub(super) const RUN: Keys = Keys {
    what: "`run`",
    table: &[
        optional("argv", List),
        optional("stdin", Text),
        optional("env", TextMapping),
        optional("pass_env", Texts),
        optional("ok_exit", List),
        not_yet(
            "script",
            "this version runs argument vectors only: write `argv: [sh, script.sh, …]`",
        ),
        not_yet(
            "shell",
            "this version runs argument vectors only: put the text into a file and run that",
        ),
        not_yet("worker", "this version starts the program for every call: use `argv`"),
    ],
    instead: &[
        ("command", "the program and its arguments are one list: `argv: [program, argument]`"),
        ("cwd", "`cwd` stands beside `run`, in the tool"),
        ("timeout", "the time limit stands beside `run`: `limits: {timeout: 30s}`"),
    ],
};

/// An entry of `argv` that is not a text.
pub(super) const ARGV_ENTRY: Keys = table(
    "an entry of `argv`",
    &[optional("if", Text), optional("then", Texts), optional("each", Text)],
);

/// Limits of one call.
pub(super) const LIMITS: Keys = table(
    "`limits`",
    &[
        optional("timeout", Duration),
        optional("output", Size),
        not_yet(
            "concurrent",
            "this version cannot limit it; `parallel: false` runs the tool alone",
        ),
        not_yet("rate", "this version cannot limit it; remove the key"),
    ],
);

/// What must be there.
pub(super) const NEEDS: Keys = table(
    "`needs`",
    &[optional("bins", Texts), optional("env", Texts), optional("secrets", Texts)],
);

/// How output becomes a result.
pub(super) const OUTPUT: Keys = table(
    "`output`",
    &[
        optional("format", Choice(&["text", "json", "lines"])),
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
        required("expect", Mapping, "add `expect:`; `expect: {}` expects success"),
    ],
);

/// What a test expects.
pub(super) const EXPECT: Keys = table(
    "`expect`",
    &[
        optional("error", Choice(&ERROR_KINDS)),
        optional("argv", Texts),
        optional("argv_contains", Texts),
        optional("text_contains", Texts),
        optional("text_matches", Text),
        optional("data", Any),
    ],
);

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
