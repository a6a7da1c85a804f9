//! Reads a response that was not streamed, and makes items of their JSON.

use toolcrib_json::{Cursor, Kind};

use super::super::call_ids::CallIds;
use super::super::item::{ModelItem, View};
use super::super::json::{ObjectWriter, member, objects, parsed, text};
use super::super::{Answer, DecoderSettings, ModelError, ProviderFailure, StopReason, Usage, Wire};
use super::item::{is_call, stop, usage, view};

/// Reads the body of a response.
pub(in super::super) fn read_response(
    body: Cursor<'_>,
    settings: &DecoderSettings,
) -> Result<Answer, ModelError> {
    if let Some(failure) = failure(body) {
        return Err(failure);
    }
    let stop = stop(body)?;
    if member(body, "output").is_none() {
        return Err(ModelError::member(body, "output", "is missing; it must be a list of items"));
    }
    let mut ids = CallIds::new(settings);
    let mut raws = Vec::new();
    for item in objects(body, "output")? {
        let item = item?;
        if raws.len() >= settings.limits.items {
            let limit = settings.limits.items;
            return Err(ModelError::too_large(format!("it has more than {limit} items")));
        }
        let new_id = match view(item)? {
            View::Call(call) => Some(ids.of(Some(call.id.as_str()))).filter(|id| *id != call.id),
            _ => None,
        };
        raws.push(match new_id {
            Some(id) => with_members(item, &[("call_id", id.as_str())]),
            None => item.source().to_owned(),
        });
    }
    let named = Named { id: name(body, "id")?, model: name(body, "model")? };
    answer(named, raws, stop, usage(body)?, settings)
}

/// How the provider names an answer.
#[derive(Debug, Default)]
pub(super) struct Named {
    pub(super) id: Option<String>,
    pub(super) model: Option<String>,
}

/// An answer of these items. An end with calls is a stop for them; a call that is marked as incomplete keeps all from
/// running.
pub(super) fn answer(
    named: Named,
    raws: Vec<String>,
    stop: StopReason,
    usage: Option<Usage>,
    settings: &DecoderSettings,
) -> Result<Answer, ModelError> {
    let mut items = Vec::with_capacity(raws.len());
    let mut stop = stop;
    for raw in raws {
        let item = ModelItem::read(Wire::Responses, &*settings.source, raw)?;
        if matches!(item.view(), View::Call(_)) && stop.completes_calls() {
            let tape = parsed(item.raw().as_bytes())?;
            let is_incomplete =
                tape.root().get("status").is_some_and(|status| status.equals("incomplete"));
            stop = if is_incomplete {
                StopReason::Other("incomplete".to_owned())
            } else {
                StopReason::Calls
            };
        }
        items.push(item);
    }
    Ok(Answer { id: named.id, model: named.model, items, usage, stop })
}

/// The failure in a body without a response.
pub(super) fn failure(body: Cursor<'_>) -> Option<ModelError> {
    let is_response = body.get("status").is_some_and(|status| status.kind().is_string());
    let is_failure = !is_response
        && (member(body, "error").is_some()
            || body.get("type").is_some_and(|kind| kind.equals("error")));
    is_failure.then(|| ModelError::provider(ProviderFailure::of(None, body)))
}

/// A text member that names something; `None` if it is empty.
pub(super) fn name(body: Cursor<'_>, key: &str) -> Result<Option<String>, ModelError> {
    Ok(text(body, key)?.filter(|name| !name.is_empty()).map(Into::into))
}

/// The item with other texts for some members.
pub(super) fn with_members(item: Cursor<'_>, changes: &[(&str, &str)]) -> String {
    let mut json = String::with_capacity(item.source().len() + 64);
    let mut object = ObjectWriter::new(&mut json);
    for (name, value) in item.members() {
        let key = name.key_text();
        if !changes.iter().any(|(changed, _)| *changed == key) {
            object.raw(&key, value.source());
        }
    }
    for (key, value) in changes {
        object.string(key, value);
    }
    object.end();
    json
}

/// The member that tells a call from others, `call_id`; only calls have it.
pub(super) fn call_id(item: Cursor<'_>) -> Option<String> {
    is_call(item).then(|| item.get("call_id")?.as_str().map(Into::into)).flatten()
}

/// Whether the type of an item is `kind`.
pub(super) fn is_kind(item: Cursor<'_>, kind: &str) -> bool {
    item.kind() == Kind::Object && item.get("type").is_some_and(|own| own.equals(kind))
}
