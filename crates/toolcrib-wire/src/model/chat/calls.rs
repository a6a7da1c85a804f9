//! Puts the pieces of calls together, however a server numbers them.

use std::borrow::Cow;
use std::collections::HashMap;

use toolcrib_json::{Cursor, Kind};
use toolcrib_tool::CallId;

use super::super::call_ids::CallIds;
use super::super::json::{ObjectWriter, object, text, whole};
use super::super::limits::Budget;
use super::super::{DecoderSettings, Limits, ModelError, ModelEvent};
use super::message::{arguments, call_body};

/// The calls of one answer.
///
/// Calls are kept apart by their id, then by their index, then by their position. Servers omit either, number every
/// call 0, skip numbers, or repeat an id, a name or a whole call; a piece that names a tool begins a new call if the
/// one that it seems to belong to has complete arguments or another name.
#[derive(Debug)]
pub(super) struct Calls {
    drafts: Vec<Draft>,
    /// The latest call under an id, as the server gave it.
    by_id: HashMap<String, usize>,
    /// The latest call under an index.
    by_index: HashMap<u64, usize>,
    ids: CallIds,
    limits: Limits,
}

/// A call that the model still writes.
#[derive(Debug, Default)]
struct Draft {
    /// The first id that the server gave.
    given_id: Option<String>,
    /// Decided when the tool's name is known.
    id: Option<CallId>,
    index: Option<u64>,
    name: String,
    arguments: String,
    extent: Extent,
    is_custom: bool,
    /// Further members, as JSON text: some servers put signatures there.
    extra: Vec<(String, String)>,
    /// The server's own JSON, if the call came whole and needs no change.
    source: Option<String>,
}

/// How the call of a piece was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Match {
    /// By its id.
    Id,
    /// By its index or its position.
    Place,
}

/// Where a JSON object or list in pieces ends. Each byte is looked at once.
#[derive(Debug, Default)]
struct Extent {
    depth: usize,
    in_string: bool,
    after_backslash: bool,
    is_complete: bool,
}

impl Extent {
    fn extend(&mut self, text: &str) {
        for byte in text.bytes() {
            if self.in_string {
                let escaped = std::mem::take(&mut self.after_backslash);
                match byte {
                    b'\\' if !escaped => self.after_backslash = true,
                    b'"' if !escaped => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    self.is_complete |= self.depth == 0;
                }
                _ => {}
            }
        }
    }
}

impl Calls {
    pub(super) fn new(settings: &DecoderSettings) -> Self {
        Self {
            drafts: Vec::new(),
            by_id: HashMap::new(),
            by_index: HashMap::new(),
            ids: CallIds::new(settings),
            limits: settings.limits.clone(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.drafts.is_empty()
    }

    /// Takes one entry of a delta's `tool_calls`.
    pub(super) fn delta(
        &mut self,
        entry: Cursor<'_>,
        budget: &mut Budget,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let body = call_body(entry);
        self.piece(entry, body, budget, events)
    }

    /// Takes a delta's `function_call`, which came before `tool_calls` and has neither id nor index.
    pub(super) fn legacy_delta(
        &mut self,
        function: Cursor<'_>,
        budget: &mut Budget,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let function = object(function)?;
        self.piece(function, Some((function, "arguments")), budget, events)
    }

    /// Takes an entry of a complete message's `tool_calls`.
    pub(super) fn whole(
        &mut self,
        entry: Cursor<'_>,
        budget: &mut Budget,
    ) -> Result<(), ModelError> {
        let at = self.add(None)?;
        let given = text(entry, "id")?.filter(|id| !id.is_empty());
        let body = call_body(entry).ok_or_else(|| {
            ModelError::member(entry, "function", "is missing; it must be an object")
        })?;
        self.fill(at, entry, Some(body), given.as_deref(), budget, &mut Vec::new())?;
        let draft = &mut self.drafts[at];
        let kept_id = draft.id.as_ref().is_some_and(|id| given.as_deref() == Some(id.as_str()));
        let plain = body.0.get(body.1).is_some_and(|arguments| arguments.kind().is_string())
            && !draft.arguments.trim().is_empty()
            && entry.get("type").is_some();
        if kept_id && plain {
            draft.source = Some(entry.source().to_owned());
        }
        Ok(())
    }

    /// Ends all calls. Returns the JSON of each.
    pub(super) fn finish(self, events: &mut Vec<ModelEvent>) -> Result<Vec<String>, ModelError> {
        let mut all = Vec::with_capacity(self.drafts.len());
        for (call, draft) in self.drafts.into_iter().enumerate() {
            let Some(id) = draft.id else {
                let at = "/choices/0/delta/tool_calls/0/function/name".to_owned();
                return Err(ModelError::at(
                    at,
                    format!("never came for call {call}; every call must name its tool"),
                ));
            };
            events.push(ModelEvent::CallFinished { call });
            all.push(draft.source.unwrap_or_else(|| {
                let arguments = if draft.arguments.trim().is_empty() && !draft.is_custom {
                    "{}"
                } else {
                    &draft.arguments
                };
                let (kind, key) =
                    if draft.is_custom { ("custom", "input") } else { ("function", "arguments") };
                let mut json = String::with_capacity(arguments.len() + 96);
                let mut call = ObjectWriter::new(&mut json);
                call.string("id", id.as_str());
                call.string("type", kind);
                let mut body = ObjectWriter::new(call.key(kind));
                body.string("name", &draft.name);
                body.string(key, arguments);
                body.end();
                for (key, value) in &draft.extra {
                    call.raw(key, value);
                }
                call.end();
                json
            }));
        }
        Ok(all)
    }

    fn piece(
        &mut self,
        entry: Cursor<'_>,
        body: Option<(Cursor<'_>, &'static str)>,
        budget: &mut Budget,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let id = text(entry, "id")?.filter(|id| !id.is_empty());
        let index = whole(entry, "index")?;
        let name = match body {
            Some((body, _)) => text(object(body)?, "name")?.filter(|name| !name.is_empty()),
            None => None,
        };
        let mut found = self.find(id.as_deref(), index, name.as_deref());
        if let Some((at, Match::Id)) = found
            && name.is_some()
            && self.drafts[at].extent.is_complete
        {
            let delta = match body {
                Some((body, key)) => arguments(body, key)?.unwrap_or_default(),
                None => Cow::default(),
            };
            if delta.trim().is_empty() || delta == self.drafts[at].arguments {
                // Some servers end with the whole call once more.
                return Ok(());
            }
            found = None;
        }
        let at = match found {
            Some((at, _)) => at,
            None => self.add(index)?,
        };
        self.fill(at, entry, body, id.as_deref(), budget, events)
    }

    /// The call that a piece belongs to, and how it was found; `None` if the piece begins a new call.
    fn find(
        &self,
        id: Option<&str>,
        index: Option<u64>,
        name: Option<&str>,
    ) -> Option<(usize, Match)> {
        if let Some(&at) = id.and_then(|id| self.by_id.get(id)) {
            let draft = &self.drafts[at];
            // One id for two calls: only the index or the name tells them apart.
            let other_place = index.is_some() && draft.index.is_some() && index != draft.index;
            let other_name = !draft.name.is_empty() && name.is_some_and(|name| draft.name != name);
            let begins_anew =
                name.is_some() && draft.extent.is_complete && (other_place || other_name);
            return (!begins_anew).then_some((at, Match::Id));
        }
        let at = match index {
            Some(index) => *self.by_index.get(&index)?,
            None => self.drafts.len().checked_sub(1)?,
        };
        let draft = &self.drafts[at];
        if id.is_some() && draft.given_id.is_some() {
            return None;
        }
        let begins_anew = name.is_some_and(|name| {
            draft.extent.is_complete || (!draft.name.is_empty() && draft.name != name)
        });
        (!begins_anew).then_some((at, Match::Place))
    }

    fn add(&mut self, index: Option<u64>) -> Result<usize, ModelError> {
        if self.drafts.len() >= self.limits.items {
            let limit = self.limits.items;
            return Err(ModelError::too_large(format!("it has more than {limit} calls")));
        }
        let at = self.drafts.len();
        if let Some(index) = index {
            self.by_index.insert(index, at);
        }
        self.drafts.push(Draft { index, ..Draft::default() });
        Ok(at)
    }

    /// Adds a piece to a call.
    fn fill(
        &mut self,
        at: usize,
        entry: Cursor<'_>,
        body: Option<(Cursor<'_>, &'static str)>,
        id: Option<&str>,
        budget: &mut Budget,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let draft = &mut self.drafts[at];
        if let Some(id) = id
            && draft.given_id.as_deref() != Some(id)
        {
            budget.take(id.len())?;
            self.by_id.insert(id.to_owned(), at);
            draft.given_id.get_or_insert_with(|| id.to_owned());
        }
        for (key, value) in entry.members() {
            let key = key.key_text();
            // Objects only: the plain members of deltas are counters and the like.
            let is_extra = !matches!(&*key, "id" | "index" | "type" | "function" | "custom");
            if is_extra && value.kind() == Kind::Object {
                budget.take(value.source().len())?;
                draft.extra.retain(|(known, _)| *known != *key);
                draft.extra.push((key.into_owned(), value.source().to_owned()));
            }
        }
        let Some((body, key)) = body else { return Ok(()) };
        draft.is_custom |= key == "input";
        let body = object(body)?;
        if draft.name.is_empty()
            && let Some(name) = text(body, "name")?
        {
            budget.take(name.len())?;
            draft.name.push_str(&name);
        }
        let delta = arguments(body, key)?.unwrap_or_default();
        if draft.arguments.len() + delta.len() > self.limits.argument_bytes {
            let limit = self.limits.argument_bytes;
            return Err(ModelError::too_large(format!(
                "the arguments of call {at} have more than {limit} bytes"
            )));
        }
        budget.take(delta.len())?;
        draft.extent.extend(&delta);
        draft.arguments.push_str(&delta);
        if draft.id.is_some() {
            if !delta.is_empty() {
                events.push(ModelEvent::Arguments { call: at, delta: delta.into_owned() });
            }
        } else if !draft.name.is_empty() {
            self.start(at, events);
        }
        Ok(())
    }

    /// Decides the id of a call whose tool is known, and reports the call.
    fn start(&mut self, at: usize, events: &mut Vec<ModelEvent>) {
        let draft = &mut self.drafts[at];
        let id = self.ids.of(draft.given_id.as_deref());
        draft.id = Some(id.clone());
        events.push(ModelEvent::CallStarted { call: at, id, name: draft.name.clone() });
        if !draft.arguments.is_empty() {
            events.push(ModelEvent::Arguments { call: at, delta: draft.arguments.clone() });
        }
    }
}
