//! Prompts and resources, as a manifest declares them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use toolcrib_tool::{Icon, Origin};

use crate::template::Template;

/// A prompt: messages that a person chooses to begin with.
///
/// Templates in it refer to its arguments and to nothing else.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptDeclaration {
    /// Its name, with the file's namespace in front.
    pub name: String,
    /// What people are shown instead of the name.
    pub title: Option<String>,
    /// Pictures of it, for people.
    pub icons: Vec<Icon>,
    /// What it is good for.
    pub description: String,
    /// What it has to be told, in order.
    pub arguments: Vec<PromptArgument>,
    /// The messages, in order; at least one.
    pub messages: Vec<PromptMessage>,
    /// Where its name stands.
    pub origin: Origin,
}

/// Something a prompt has to be told: a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptArgument {
    /// Its name, in `${args.name}`.
    pub name: String,
    /// What people are shown instead of the name.
    pub title: Option<String>,
    /// What it means.
    pub description: Option<String>,
    /// Whether the prompt is nothing without it. Others are empty where they are not given.
    pub required: bool,
    /// Values to suggest while somebody writes.
    pub suggest: Vec<String>,
}

/// One message of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptMessage {
    /// Whether the assistant says it, and not the user.
    pub by_assistant: bool,
    /// What is said.
    pub content: MessageContent,
}

/// What a message says.
#[derive(Debug, Clone, PartialEq)]
pub enum MessageContent {
    /// A text.
    Text(Template),
    /// A file beside the manifest: a picture, a sound or anything else, as its type says.
    File {
        /// Its path; a relative one is below the manifest's folder.
        path: PathBuf,
        /// Its mime type.
        mime_type: String,
    },
    /// A resource that this server has, embedded: its address.
    Resource(Template),
}

/// A resource: something that clients can read, by its address.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceDeclaration {
    /// Its address, or a template of addresses: `notes://{name}`.
    pub uri: String,
    /// The names of the template's variables, in order; none for an address.
    pub variables: Vec<String>,
    /// What programs call it.
    pub name: String,
    /// What people are shown instead of the name.
    pub title: Option<String>,
    /// Pictures of it, for people.
    pub icons: Vec<Icon>,
    /// What is in it.
    pub description: Option<String>,
    /// The type of what is in it.
    pub mime_type: String,
    /// What is in it.
    pub content: ResourceContent,
    /// Values to suggest for the variables while somebody writes.
    pub suggest: BTreeMap<String, Vec<String>>,
    /// Where its address stands.
    pub origin: Origin,
}

/// What is in a resource.
#[derive(Debug, Clone, PartialEq)]
pub enum ResourceContent {
    /// A text, with the values of the address's variables in it.
    Text(Template),
    /// A file, as it is when it is read; a relative path is below the manifest's folder.
    File(PathBuf),
}
