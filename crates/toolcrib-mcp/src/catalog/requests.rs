//! Answers `prompts/*`, `resources/*` and `completion/complete` from the catalog.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CompleteRequestParams, ErrorData, JsonObject, Reference};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use toolcrib_sandbox::ServedFile;
use toolcrib_tool::{Content, Icon, canonical_json};

use crate::McpServer;
use crate::catalog::{MessageContent, Offer, Prompt, Resource, ResourceContent};

/// The largest file that is served, in bytes.
const FILE_MAX: u64 = 16 * 1024 * 1024;
/// The maximum number of suggestions per answer.
const SUGGESTIONS_MAX: usize = 100;

/// The entries of `prompts/list`.
pub(crate) fn prompts<T: DeserializeOwned>(prompts: &[&Prompt]) -> Result<Vec<T>, ErrorData> {
    let entry = |prompt: &&Prompt| {
        let arguments: Vec<_> = prompt
            .arguments
            .iter()
            .map(|argument| {
                let mut entry = json!({"name": argument.name, "required": argument.required});
                set(&mut entry, "title", argument.title.as_deref());
                set(&mut entry, "description", argument.description.as_deref());
                entry
            })
            .collect();
        let mut entry = json!({"name": prompt.name, "description": prompt.description});
        set(&mut entry, "title", prompt.title.as_deref());
        set_icons(&mut entry, &prompt.icons);
        if !arguments.is_empty() {
            entry["arguments"] = arguments.into();
        }
        typed(entry)
    };
    prompts.iter().map(entry).collect()
}

/// The entries of `resources/list` and `resources/templates/list`.
pub(crate) fn resources<T: DeserializeOwned>(resources: &[&Resource]) -> Result<Vec<T>, ErrorData> {
    let entry = |resource: &&Resource| {
        let key = if resource.address.is_template() { "uriTemplate" } else { "uri" };
        let mut entry = json!({
            key: resource.address.as_str(),
            "name": resource.name,
            "mimeType": resource.mime_type,
        });
        set(&mut entry, "title", resource.title.as_deref());
        set_icons(&mut entry, &resource.icons);
        set(&mut entry, "description", resource.description.as_deref());
        typed(entry)
    };
    resources.iter().map(entry).collect()
}

/// The required arguments of a prompt that are missing.
pub(crate) struct MissingArguments<'a> {
    prompt: &'a Prompt,
    names: Vec<&'a str>,
}

impl MissingArguments<'_> {
    /// The question that asks for them.
    pub(crate) fn question(&self) -> (String, Value) {
        let wanted = |name: &&str| {
            let argument = self.prompt.arguments.iter().find(|known| known.name == **name)?;
            let mut property = json!({"type": "string"});
            set(&mut property, "title", argument.title.as_deref());
            set(&mut property, "description", argument.description.as_deref());
            Some(((*name).to_owned(), property))
        };
        let properties: Map<_, _> = self.names.iter().filter_map(wanted).collect();
        let schema = json!({"type": "object", "properties": properties, "required": self.names});
        let shown = self.prompt.title.as_deref().unwrap_or(&self.prompt.name);
        (format!("`{shown}` needs these arguments: {}", self.names.join(", ")), schema)
    }

    pub(crate) fn error(&self) -> ErrorData {
        let message = format!(
            "the prompt `{}` needs these arguments: {}",
            self.prompt.name,
            self.names.join(", ")
        );
        ErrorData::invalid_params(message, None)
    }
}

/// The prompt of that name.
pub(crate) fn prompt<'a>(offer: &'a Offer, name: &str) -> Result<&'a Prompt, ErrorData> {
    offer.prompt(name).ok_or_else(|| no_such_prompt(name))
}

/// The error for a name without a prompt.
pub(crate) fn no_such_prompt(name: &str) -> ErrorData {
    ErrorData::invalid_params(format!("there is no prompt `{name}`"), None)
}

/// The arguments of a prompt, or the missing ones as an error.
pub(crate) fn prompt_arguments<'a>(
    prompt: &'a Prompt,
    given: Option<&JsonObject>,
) -> Result<BTreeMap<String, String>, MissingArguments<'a>> {
    let given = |name: &str| match given?.get(name)? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        // Lenient clients send numbers instead of texts.
        other => Some(canonical_json(other)),
    };
    let mut values = BTreeMap::new();
    let mut names = Vec::new();
    for argument in &prompt.arguments {
        match given(&argument.name) {
            Some(value) => {
                values.insert(argument.name.clone(), value);
            }
            None if argument.required => names.push(argument.name.as_str()),
            None => {}
        }
    }
    if names.is_empty() { Ok(values) } else { Err(MissingArguments { prompt, names }) }
}

/// The messages of a prompt, as `prompts/get` answers, with secrets masked.
pub(crate) async fn messages<T: DeserializeOwned>(
    server: &McpServer,
    offer: &Offer,
    prompt: &Prompt,
    values: &BTreeMap<String, String>,
) -> Result<T, ErrorData> {
    let mut messages = Vec::new();
    for message in &prompt.messages {
        let content = match &message.content {
            MessageContent::Text(text) => {
                let text = server.masked(Content::Text(text.fill(values)));
                json!({"type": "text", "text": text.as_text()})
            }
            MessageContent::Resource(uri) => {
                let uri = uri.fill(values);
                json!({"type": "resource", "resource": contents(server, offer, &uri).await?})
            }
            MessageContent::File { file, mime_type } => {
                let bytes = read_file(server, file).await?;
                let kind = mime_type.split('/').next().unwrap_or_default();
                if ["image", "audio"].contains(&kind) {
                    json!({"type": kind, "data": STANDARD.encode(bytes), "mimeType": mime_type})
                } else {
                    let name = file.path().file_name().unwrap_or_default().to_string_lossy();
                    let uri = format!("file:///{name}");
                    json!({"type": "resource", "resource": content_value(&uri, mime_type, bytes)})
                }
            }
        };
        let role = if message.by_assistant { "assistant" } else { "user" };
        messages.push(json!({"role": role, "content": content}));
    }
    let description = &prompt.description;
    complete(json!({"description": description, "messages": messages}))
}

/// The content of an address, as `resources/read` answers.
pub(crate) async fn read<T: DeserializeOwned>(
    server: &McpServer,
    offer: &Offer,
    uri: &str,
) -> Result<T, ErrorData> {
    complete(json!({"contents": [contents(server, offer, uri).await?]}))
}

async fn contents(server: &McpServer, offer: &Offer, uri: &str) -> Result<Value, ErrorData> {
    let Some((resource, values)) = offer.resource(uri) else {
        return Err(not_found(uri));
    };
    let bytes = match &resource.content {
        ResourceContent::Text(text) => server.masked_bytes(text.fill(&values).as_bytes()),
        ResourceContent::File(file) => read_file(server, file).await?,
    };
    Ok(content_value(uri, &resource.mime_type, bytes))
}

/// The content as text where possible, else as bytes.
fn content_value(uri: &str, mime_type: &str, bytes: Vec<u8>) -> Value {
    let mut contents = json!({"uri": uri, "mimeType": mime_type});
    match String::from_utf8(bytes) {
        Ok(text) if is_text(mime_type) => contents["text"] = text.into(),
        Ok(text) => contents["blob"] = STANDARD.encode(text).into(),
        Err(error) => contents["blob"] = STANDARD.encode(error.as_bytes()).into(),
    }
    contents
}

fn is_text(mime_type: &str) -> bool {
    let essence = mime_type.split(';').next().unwrap_or_default().trim();
    let structured = ["json", "xml", "yaml", "toml", "javascript"];
    essence.starts_with("text/")
        || essence.split_once('/').is_some_and(|(_, kind)| {
            structured.iter().any(|known| {
                kind.strip_suffix(known).is_some_and(|before| {
                    before.is_empty() || before.ends_with('+') || before == "x-"
                })
            })
        })
}

/// Reads a file and masks secrets. The log tells the operator what is wrong with the file; the
/// client only learns that it cannot be read.
async fn read_file(server: &McpServer, file: &ServedFile) -> Result<Vec<u8>, ErrorData> {
    let wanted = file.clone();
    let read = tokio::task::spawn_blocking(move || wanted.read(FILE_MAX));
    let problem = match read.await {
        Ok(Ok(bytes)) => return Ok(server.masked_bytes(&bytes)),
        Ok(Err(error)) => error.to_string(),
        Err(error) => error.to_string(),
    };
    let path = file.path().display();
    tracing::warn!(file = %path, problem, "a file of the catalog cannot be read");
    Err(ErrorData::internal_error(
        "the file of this resource cannot be read: report this to the operator of the server",
        None,
    ))
}

/// The suggestions for a value that somebody has started to type.
pub(crate) fn suggestions<T: DeserializeOwned>(
    offer: &Offer,
    request: &CompleteRequestParams,
) -> Result<T, ErrorData> {
    let none = Vec::new();
    let argument = request.argument.name.as_str();
    let known = match &request.r#ref {
        Reference::Prompt(named) => {
            let prompt = prompt(offer, &named.name)?;
            let found = prompt.arguments.iter().find(|known| known.name == argument);
            found.map(|found| &found.suggest)
        }
        Reference::Resource(named) => {
            let resource = offer.resources.iter().find(|one| one.address.as_str() == named.uri);
            let resource = resource.ok_or_else(|| {
                let message = format!("there is no resource template `{}`", named.uri);
                ErrorData::invalid_params(message, None)
            })?;
            Some(resource.suggest.get(argument).unwrap_or(&none))
        }
        _ => None,
    };
    let known = known.ok_or_else(|| {
        ErrorData::invalid_params(format!("there is no argument `{argument}`"), None)
    })?;
    let begun = request.argument.value.to_lowercase();
    let fitting: Vec<_> =
        known.iter().filter(|value| value.to_lowercase().starts_with(&begun)).collect();
    let more = fitting.len() > SUGGESTIONS_MAX;
    let values = &fitting[..fitting.len().min(SUGGESTIONS_MAX)];
    complete(json!({"completion": {"values": values, "total": fitting.len(), "hasMore": more}}))
}

fn set(object: &mut Value, key: &str, text: Option<&str>) {
    if let Some(text) = text {
        object[key] = text.into();
    }
}

fn set_icons(object: &mut Value, icons: &[Icon]) {
    if !icons.is_empty() {
        object["icons"] = icons.iter().map(Icon::to_value).collect();
    }
}

/// The error for an address without a resource.
pub(crate) fn not_found(uri: &str) -> ErrorData {
    let data = json!({"uri": uri});
    ErrorData::resource_not_found("there is no resource at this address", Some(data))
}

/// A result that is complete, which later revisions require to be stated.
pub(crate) fn complete<T: DeserializeOwned>(mut value: Value) -> Result<T, ErrorData> {
    value["resultType"] = "complete".into();
    typed(value)
}

/// Converts to `rmcp`'s type. An error would mean that `rmcp` has another view of the protocol.
fn typed<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(|error| {
        ErrorData::internal_error(format!("the answer cannot be sent: {error}"), None)
    })
}
