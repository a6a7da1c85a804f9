//! Reads a message that was not streamed.

use toolcrib_json::Cursor;

use super::super::call_ids::CallIds;
use super::super::item::{ModelItem, View};
use super::super::json::{ObjectWriter, member, objects, text};
use super::super::{Answer, DecoderSettings, ModelError, ProviderFailure, Wire};
use super::block::{Tokens, stop, view};

/// Reads the body of a message.
pub(in super::super) fn read_message(
    body: Cursor<'_>,
    settings: &DecoderSettings,
) -> Result<Answer, ModelError> {
    if let Some(failure) = failure(body) {
        return Err(failure);
    }
    if member(body, "content").is_none() {
        return Err(ModelError::member(body, "content", "is missing; it must be a list of blocks"));
    }
    let mut ids = CallIds::new(settings);
    let mut raws = Vec::new();
    for block in objects(body, "content")? {
        let block = block?;
        if raws.len() >= settings.limits.items {
            let limit = settings.limits.items;
            return Err(ModelError::too_large(format!("it has more than {limit} blocks")));
        }
        let new_id = match view(block)? {
            View::Call(call) => Some(ids.of(Some(call.id.as_str()))).filter(|id| *id != call.id),
            _ => None,
        };
        raws.push(match new_id {
            Some(id) => with_id(block, id.as_str()),
            None => block.source().to_owned(),
        });
    }
    let stop = stop(body)?.ok_or_else(|| {
        ModelError::member(body, "stop_reason", "is missing; it tells whether the answer is whole")
    })?;
    let mut tokens = Tokens::default();
    tokens.take(body)?;
    Ok(Answer {
        id: name(body, "id")?,
        model: name(body, "model")?,
        items: items(raws, settings)?,
        usage: tokens.usage(),
        stop,
    })
}

/// The block under another id.
fn with_id(block: Cursor<'_>, id: &str) -> String {
    let mut json = String::with_capacity(block.source().len() + id.len());
    let mut object = ObjectWriter::new(&mut json);
    for (key, value) in block.members() {
        if key.equals("id") {
            object.string("id", id);
        } else {
            object.raw(&key.key_text(), value.source());
        }
    }
    object.end();
    json
}

/// The failure that a body or an event reports.
pub(super) fn failure(body: Cursor<'_>) -> Option<ModelError> {
    let is_failure = member(body, "error").is_some()
        || body.get("type").is_some_and(|kind| kind.equals("error"));
    is_failure.then(|| ModelError::provider(ProviderFailure::of(None, body)))
}

/// A text member that names something; `None` if it is empty.
pub(super) fn name(body: Cursor<'_>, key: &str) -> Result<Option<String>, ModelError> {
    Ok(text(body, key)?.filter(|name| !name.is_empty()).map(Into::into))
}

/// The items of an answer. Text blocks without text are left out: the API refuses them in a request.
pub(super) fn items(
    raws: Vec<String>,
    settings: &DecoderSettings,
) -> Result<Vec<ModelItem>, ModelError> {
    let mut items = Vec::with_capacity(raws.len());
    for raw in raws {
        let item = ModelItem::read(Wire::Anthropic, &*settings.source, raw)?;
        if !matches!(item.view(), View::Message { text, .. } if text.is_empty()) {
            items.push(item);
        }
    }
    Ok(items)
}
