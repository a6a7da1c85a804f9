//! Prompts and resources of manifests, as MCP clients see them.

use std::path::Path;

use toolcrib_manifest::declaration::{self, PromptDeclaration, ResourceDeclaration};
use toolcrib_manifest::template::{Piece, Reference, Template};
use toolcrib_mcp::catalog::{
    Address, CatalogText, MessageContent, Prompt, PromptArgument, PromptMessage, Resource,
    ResourceContent, TextPiece,
};
use toolcrib_runners::{RunnerHost, TrustDecision, served_file};

/// `word` is the operator's trust decision, which determines where its files may be.
pub(crate) fn prompt(
    declared: &PromptDeclaration,
    word: Option<&TrustDecision>,
    host: &RunnerHost,
) -> Prompt {
    let file = |path: &Path| served_file(path, &declared.origin.file, word, host);
    let arguments = declared.arguments.iter().map(|argument| PromptArgument {
        name: argument.name.clone(),
        title: argument.title.clone(),
        description: argument.description.clone(),
        required: argument.required,
        suggest: argument.suggest.clone(),
    });
    let messages = declared.messages.iter().map(|message| PromptMessage {
        by_assistant: message.by_assistant,
        content: match &message.content {
            declaration::MessageContent::Text(template) => MessageContent::Text(text(template)),
            declaration::MessageContent::Resource(uri) => MessageContent::Resource(text(uri)),
            declaration::MessageContent::File { path, mime_type } => {
                MessageContent::File { file: file(path), mime_type: mime_type.clone() }
            }
        },
    });
    Prompt {
        name: declared.name.clone(),
        title: declared.title.clone(),
        icons: declared.icons.clone(),
        description: declared.description.clone(),
        arguments: arguments.collect(),
        messages: messages.collect(),
    }
}

/// As [`prompt`].
pub(crate) fn resource(
    declared: &ResourceDeclaration,
    word: Option<&TrustDecision>,
    host: &RunnerHost,
) -> Resource {
    let file = |path: &Path| served_file(path, &declared.origin.file, word, host);
    Resource {
        address: Address::new(declared.uri.as_str()),
        name: declared.name.clone(),
        title: declared.title.clone(),
        icons: declared.icons.clone(),
        description: declared.description.clone(),
        mime_type: declared.mime_type.clone(),
        content: match &declared.content {
            declaration::ResourceContent::Text(template) => ResourceContent::Text(text(template)),
            declaration::ResourceContent::File(path) => ResourceContent::File(file(path)),
        },
        suggest: declared.suggest.clone(),
    }
}

/// The loader accepts only references to arguments.
fn text(template: &Template) -> CatalogText {
    let pieces = template.pieces.iter().map(|piece| match piece {
        Piece::Literal(text) => TextPiece::Literal(text.clone()),
        Piece::Reference(Reference::Arg(name)) => TextPiece::Value(name.clone()),
        Piece::Reference(other) => TextPiece::Literal(other.to_string()),
    });
    CatalogText { pieces: pieces.collect() }
}
