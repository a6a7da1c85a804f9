//! Corrections made to a model's text before it was accepted or refused; usually none.

use serde_json::Value;
use toolcrib_tool::{CHANGED_ARGUMENTS, ToolError, ToolOutput};

use super::coerce::Coercion;
use super::repair::Repair;
use crate::output::excerpt::shorten;

/// How many items of one kind a note lists; the rest are counted.
const LISTED: usize = 20;

/// How many characters of a pointer or a name a note shows.
const SHOWN: usize = 200;

/// Corrections made to a model's text. They are listed in the notes of the result, even if the call
/// failed, because the model's text differs from what was run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Corrections(Option<Box<AppliedCorrections>>);

#[derive(Debug, Clone, Default)]
struct AppliedCorrections {
    repaired: Vec<String>,
    stripped: Vec<String>,
    coerced: Vec<String>,
    /// The arguments that an approver has put in the place of the model's.
    changed: Option<Value>,
}

impl Corrections {
    /// The text was not valid JSON and was repaired.
    pub(crate) fn repaired(&mut self, repairs: &[Repair]) {
        let repairs = list(repairs.len(), repairs.iter().map(ToString::to_string));
        self.note(|mended| &mut mended.repaired, repairs);
    }

    /// Members that a model may not set were removed.
    pub(crate) fn stripped(&mut self, names: Vec<String>) {
        let names = list(names.len(), names.into_iter());
        self.note(|mended| &mut mended.stripped, names);
    }

    /// Values were converted to another type.
    pub(crate) fn coerced(&mut self, coercions: &[Coercion]) {
        let coercions = list(coercions.len(), coercions.iter().map(ToString::to_string));
        self.note(|mended| &mut mended.coerced, coercions);
    }

    /// Whoever approved the call changed its arguments to these, which are masked.
    pub(crate) fn changed(&mut self, arguments: Value) {
        self.0.get_or_insert_default().changed = Some(arguments);
    }

    /// Whether whoever approved the call changed its arguments.
    pub(crate) fn has_change(&self) -> bool {
        self.0.as_deref().is_some_and(|mended| mended.changed.is_some())
    }

    fn note(
        &mut self,
        of: impl FnOnce(&mut AppliedCorrections) -> &mut Vec<String>,
        items: Vec<String>,
    ) {
        if !items.is_empty() {
            of(self.0.get_or_insert_default()).extend(items);
        }
    }

    /// The corrections, one clause each.
    pub(crate) fn clauses(&self) -> Vec<String> {
        let Self(Some(mended)) = self else { return Vec::new() };
        let stripped = mended.stripped.iter().map(|name| format!("removed `{name}`"));
        let repaired = mended.repaired.iter().cloned();
        repaired.chain(stripped).chain(mended.coerced.iter().cloned()).collect()
    }

    /// Adds the corrections to a call's outcome.
    pub(crate) fn noted(
        &self,
        outcome: Result<ToolOutput, ToolError>,
    ) -> Result<ToolOutput, ToolError> {
        match outcome {
            Ok(output) => {
                let with =
                    |output: ToolOutput, (key, note): (&str, Value)| output.with_meta(key, note);
                Ok(self.notes().fold(output, with))
            }
            Err(error) => Err(self.noted_in(error)),
        }
    }

    /// Adds the corrections to an error.
    pub(crate) fn noted_in(&self, error: ToolError) -> ToolError {
        self.notes().fold(error, |error, (key, note)| error.with_note(key, note))
    }

    fn notes(&self) -> impl Iterator<Item = (&'static str, Value)> {
        let mended = self.0.as_deref();
        let changed = mended.and_then(|mended| mended.changed.clone());
        let lists = mended.map(|AppliedCorrections { repaired, stripped, coerced, .. }| {
            [("repaired", repaired), ("stripped", stripped), ("coerced", coerced)]
        });
        let lists = lists.into_iter().flatten().filter(|(_, items)| !items.is_empty());
        let lists = lists.map(|(key, items)| (key, Value::from(items.clone())));
        lists.chain(changed.map(|arguments| (CHANGED_ARGUMENTS, arguments)))
    }
}

fn list(count: usize, items: impl Iterator<Item = String>) -> Vec<String> {
    let items = items.take(LISTED).map(|item| shorten(&item, SHOWN).into_owned());
    let more = count.checked_sub(LISTED).filter(|more| *more > 0);
    items.chain(more.map(|more| format!("and {more} more"))).collect()
}
