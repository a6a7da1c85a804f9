//! The keys of tests.

use toolcrib_tool::ErrorKind;

use super::table;
use crate::fields::Expected::{Any, Choice, Integer, Mapping, Text, Texts};
use crate::fields::{Keys, optional, required};

/// A test.
pub(in crate::manifest) const TEST: Keys = table(
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
pub(in crate::manifest) const ANSWER: Keys = table(
    "`answer`",
    &[
        optional("status", Integer),
        optional("type", Text),
        optional("json", Any),
        optional("text", Text),
    ],
);

const EXIT: &str = "remove it: `expect: {}` is success, and `error: execution` is a failure";

/// What a test expects.
pub(in crate::manifest) const EXPECT: Keys = Keys {
    what: "`expect`",
    table: &[
        optional("error", Choice(&ERROR_KINDS)),
        optional("argv", Texts),
        optional("argv_contains", Texts),
        optional("url", Text),
        optional("body", Any),
        optional("text_contains", Texts),
        optional("text_matches", Text),
        optional("data", Any),
    ],
    instead: &[
        ("text", "write the texts that the result must contain: `text_contains: [x]`"),
        ("code", EXIT),
        ("exit", EXIT),
        ("exit_code", EXIT),
        ("exit_status", EXIT),
        ("output", "write the texts that the result must contain: `text_contains: [x]`"),
        ("status", EXIT),
        ("stderr", "write the texts that the result must contain: `text_contains: [x]`"),
        ("stdout", "write the texts that the result must contain: `text_contains: [x]`"),
    ],
};

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
