//! The keys of prompts, resources and icons.

use toolcrib_tool::IconTheme;

use super::{ICONS_KEY, table};
use crate::fields::Expected::{Bool, Choice, List, MappingLike, Text, Texts};
use crate::fields::{Keys, optional, required};

/// A picture of a tool, a prompt or a resource.
pub(in crate::manifest) const ICON: Keys = Keys {
    what: "an icon",
    table: &[
        required("src", Text, "add its URL: `src: https://…`"),
        optional("mime_type", Text),
        optional("sizes", Texts),
        optional("theme", Choice(&[IconTheme::Light.as_str(), IconTheme::Dark.as_str()])),
    ],
    instead: &[
        ("file", "write `src:` with an https address, or the whole image as `data:image/…`"),
        ("mimeType", "write `mime_type`"),
        ("size", "write `sizes: [48x48]`"),
        ("url", "write `src`"),
    ],
};

/// A prompt.
pub(in crate::manifest) const PROMPT: Keys = Keys {
    what: "a prompt",
    table: &[
        required("name", Text, "add `name:`, by which clients ask for the prompt"),
        optional("title", Text),
        ICONS_KEY,
        required("description", Text, "say what the prompt is for: people choose by it"),
        optional("arguments", List),
        required("messages", List, "write messages: [{role: user, text: Review this.}]"),
    ],
    instead: &[
        ("args", "write `arguments: [{name: language}]`"),
        ("input", "write `arguments: [{name: language}]`: arguments of prompts are texts"),
        ("text", "write `messages: [{role: user, text: …}]`"),
        ("template", "write `messages: [{role: user, text: …}]`"),
    ],
};

/// Something a prompt has to be told.
pub(in crate::manifest) const PROMPT_ARGUMENT: Keys = table(
    "an argument of a prompt",
    &[
        required("name", Text, "add `name:`; messages refer to it as ${args.name}"),
        optional("title", Text),
        optional("description", Text),
        optional("required", Bool),
        optional("suggest", Texts),
    ],
);

/// Who says what the user does not.
pub(in crate::manifest) const ASSISTANT: &str = "assistant";

/// A message of a prompt.
pub(in crate::manifest) const PROMPT_MESSAGE: Keys = Keys {
    what: "a message",
    table: &[
        required("role", Choice(&["user", ASSISTANT]), "add its author: role: user"),
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
pub(in crate::manifest) const OFFERED_RESOURCE: Keys = Keys {
    what: "a resource",
    table: &[
        optional("uri", Text),
        optional("template", Text),
        required("name", Text, "add `name:`, its name for programs"),
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
