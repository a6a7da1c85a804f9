//! Declared prompts and resources.

use std::collections::BTreeMap;
use std::path::PathBuf;

use toolcrib_tool::{Icon, Origin};

use crate::template::Template;

/// A prompt: messages with which a person can start a conversation.
///
/// Its templates can refer only to its arguments.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptDeclaration {
    /// Its name, with the file's namespace as a prefix.
    pub name: String,
    /// A title that people see instead of the name.
    pub title: Option<String>,
    /// Its icons.
    pub icons: Vec<Icon>,
    /// A description of the prompt.
    pub description: String,
    /// Its arguments, in order.
    pub arguments: Vec<PromptArgument>,
    /// The messages, in order; at least one.
    pub messages: Vec<PromptMessage>,
    /// The place of its name.
    pub origin: Origin,
}

/// An argument of a prompt, which is a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptArgument {
    /// Its name, in `${args.name}`.
    pub name: String,
    /// A title that people see instead of the name.
    pub title: Option<String>,
    /// A description of the argument.
    pub description: Option<String>,
    /// Whether it is required. Optional arguments that are not given are empty.
    pub required: bool,
    /// Suggested values for completion.
    pub suggest: Vec<String>,
}

/// A message of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptMessage {
    /// Whether the assistant, and not the user, is its author.
    pub by_assistant: bool,
    /// Its content.
    pub content: MessageContent,
}

/// The content of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum MessageContent {
    /// A text.
    Text(Template),
    /// A file beside the manifest: an image, audio or another file, depending on its type.
    File {
        /// Its path; a relative path is resolved against the manifest's folder.
        path: PathBuf,
        /// Its MIME type.
        mime_type: String,
    },
    /// An embedded resource of this server, by its URI.
    Resource(Template),
}

/// A resource, which clients can read by its URI.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceDeclaration {
    /// Its URI, or a URI template: `notes://{name}`.
    pub uri: String,
    /// The names of the template's variables, in order; empty for a URI.
    pub variables: Vec<String>,
    /// Its name for programs.
    pub name: String,
    /// A title that people see instead of the name.
    pub title: Option<String>,
    /// Its icons.
    pub icons: Vec<Icon>,
    /// A description of its content.
    pub description: Option<String>,
    /// The MIME type of its content.
    pub mime_type: String,
    /// A description of its content.
    pub content: ResourceContent,
    /// Suggested values of the variables, for completion.
    pub suggest: BTreeMap<String, Vec<String>>,
    /// The place of its URI.
    pub origin: Origin,
}

/// The content of a resource.
#[derive(Debug, Clone, PartialEq)]
pub enum ResourceContent {
    /// A text, with the values of the URI's variables inserted.
    Text(Template),
    /// A file, which is read for each request; a relative path is resolved against the manifest's
    /// folder.
    File(PathBuf),
}
