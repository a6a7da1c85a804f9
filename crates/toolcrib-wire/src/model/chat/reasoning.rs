//! Puts the pieces of a model's reasoning together, in the members in which the server sent them.

use toolcrib_json::{Cursor, Kind};

use super::super::json::{ObjectWriter, member, objects, text, write_string};
use super::super::limits::Budget;
use super::super::{Limits, ModelError, ModelEvent};
use super::{REASONING_DETAILS, REASONING_TEXTS};

/// The reasoning of one answer.
#[derive(Debug, Default)]
pub(super) struct Reasoning {
    /// The texts of [`REASONING_TEXTS`].
    texts: [Option<String>; REASONING_TEXTS.len()],
    details: Vec<Detail>,
}

/// An entry of `reasoning_details`. Pieces with the same type and index are one entry.
#[derive(Debug)]
struct Detail {
    /// The source texts of `type` and `index`.
    identity: (String, String),
    /// The members as JSON text. Texts that come in pieces are joined.
    members: Vec<(String, Member)>,
}

#[derive(Debug)]
enum Member {
    Json(String),
    Text(String),
}

/// The members of a detail that come in pieces.
const PIECEWISE: [&str; 2] = ["text", "summary"];

impl Reasoning {
    /// Takes the members of a message or a delta.
    pub(super) fn take(
        &mut self,
        message: Cursor<'_>,
        limits: &Limits,
        budget: &mut Budget,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let mut shown = false;
        for (kept, key) in self.texts.iter_mut().zip(REASONING_TEXTS) {
            let Some(delta) = text(message, key)? else { continue };
            budget.take(delta.len())?;
            kept.get_or_insert_default().push_str(&delta);
            // Servers that fill both members repeat themselves.
            if !std::mem::replace(&mut shown, true) && !delta.is_empty() {
                events.push(ModelEvent::Reasoning { delta: delta.into_owned() });
            }
        }
        for detail in objects(message, REASONING_DETAILS)? {
            let detail = detail?;
            budget.take(detail.source().len())?;
            self.detail(detail, limits)?;
            let piece = PIECEWISE.into_iter().find_map(|key| member(detail, key)?.as_str());
            if let Some(piece) = piece.filter(|piece| !shown && !piece.is_empty()) {
                events.push(ModelEvent::Reasoning { delta: piece.into_owned() });
            }
        }
        Ok(())
    }

    fn detail(&mut self, detail: Cursor<'_>, limits: &Limits) -> Result<(), ModelError> {
        let source = |key: &str| member(detail, key).map_or("", Cursor::source).to_owned();
        let identity = (source("type"), source("index"));
        if self.details.last().is_none_or(|last| last.identity != identity) {
            if self.details.len() >= limits.items {
                let limit = limits.items;
                return Err(ModelError::too_large(format!(
                    "it has more than {limit} entries of reasoning"
                )));
            }
            self.details.push(Detail { identity, members: Vec::new() });
        }
        let Some(known) = self.details.last_mut() else { return Ok(()) };
        for (key, value) in detail.members() {
            let key = key.key_text();
            let piece = value.as_str().filter(|_| PIECEWISE.contains(&&*key));
            let kept = known.members.iter_mut().find(|(name, _)| *name == *key);
            match (kept, piece) {
                (Some((_, Member::Text(text))), Some(piece)) => text.push_str(&piece),
                // A signature comes with one piece and is null in the others.
                (Some(_), None) if value.kind() == Kind::Null => {}
                (Some((_, kept)), piece) => *kept = Member::new(value, piece.as_deref()),
                (None, piece) => {
                    known.members.push((key.into_owned(), Member::new(value, piece.as_deref())));
                }
            }
        }
        Ok(())
    }

    /// An object with the members, if there are any.
    pub(super) fn finish(self) -> Option<String> {
        if self.texts.iter().all(Option::is_none) && self.details.is_empty() {
            return None;
        }
        let mut json = String::new();
        let mut object = ObjectWriter::new(&mut json);
        for (text, key) in self.texts.iter().zip(REASONING_TEXTS) {
            if let Some(text) = text {
                object.string(key, text);
            }
        }
        if !self.details.is_empty() {
            let list = object.key(REASONING_DETAILS);
            for (position, detail) in self.details.iter().enumerate() {
                list.push(if position == 0 { '[' } else { ',' });
                let mut entry = ObjectWriter::new(list);
                for (key, member) in &detail.members {
                    match member {
                        Member::Json(json) => entry.raw(key, json),
                        Member::Text(text) => write_string(entry.key(key), text),
                    }
                }
                entry.end();
            }
            list.push(']');
        }
        object.end();
        Some(json)
    }
}

impl Member {
    fn new(value: Cursor<'_>, piece: Option<&str>) -> Self {
        match piece {
            Some(text) => Self::Text(text.to_owned()),
            None => Self::Json(value.source().to_owned()),
        }
    }
}
