//! Which table applies under which key of another table.

use super::{
    ANNOTATIONS, ANSWER, ARGV_ENTRY, CACHE, CLIENT, CONSTRAINT, DEFAULTS, EXPECT, FILE, HTTP,
    HTTP_AUTH, HTTP_AUTH_HEADER, HTTP_BASIC, HTTP_EXPECT, ICON, LIMITS, NEEDS, OFFERED_RESOURCE,
    OUTPUT, PROMPT, PROMPT_ARGUMENT, PROMPT_MESSAGE, RESOURCES, RETRY, RUN, SANDBOX, TEST, TOOL,
    UPSTREAM, UPSTREAM_AUTH, UPSTREAM_LIMITS, UPSTREAM_OVERRIDE, UPSTREAM_PROMPTS,
    UPSTREAM_RESOURCES, UPSTREAM_TOOLS,
};
use crate::fields::Keys;

/// How a mapping with its own table is nested in its key.
#[derive(Debug, Clone, Copy)]
pub(in crate::manifest) enum Place {
    /// As the value.
    Here,
    /// As each item of a list.
    EachItem,
    /// As each item of a list; items may also be texts.
    EachItemOrText,
    /// It is each value of a mapping whose keys are free.
    EachValue,
    /// As the value, unless that is a boolean.
    HereOrFlag,
}

/// The nested tables, by table and key.
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
    (&UPSTREAM, "resources", Place::Here, &UPSTREAM_RESOURCES),
    (&UPSTREAM, "prompts", Place::Here, &UPSTREAM_PROMPTS),
    (&UPSTREAM, "limits", Place::Here, &UPSTREAM_LIMITS),
    (&UPSTREAM_TOOLS, "override", Place::EachValue, &UPSTREAM_OVERRIDE),
    (&UPSTREAM_OVERRIDE, "annotations", Place::Here, &ANNOTATIONS),
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

/// The nested table of a key.
pub(in crate::manifest) fn nested(table: &Keys, key: &str) -> Option<(Place, &'static Keys)> {
    NESTED
        .iter()
        .find(|(outer, name, ..)| outer.what == table.what && *name == key)
        .map(|(_, _, place, inner)| (*place, *inner))
}
