//! The input of a request.

use std::collections::HashSet;

use serde_json::json;
use toolcrib_json::{Cursor, Kind};
use toolcrib_tool::Content;

use super::input_item::{ApprovalAnswer, InputItem, InputKind, Submission};
use super::kinds::{Calls, kind_of, refuse};
use crate::api::ApiError;
use crate::api::fields::{list, wrong_type, wrong_value};
use crate::model::{Input, Item, Role};

/// Collects the items of an input.
#[derive(Debug, Default)]
pub(crate) struct Inputs {
    items: Vec<InputItem>,
    calls: Calls,
    answered: HashSet<String>,
}

impl Inputs {
    /// Reads the member `input`: a text, or a list of items.
    pub(crate) fn read(value: Cursor<'_>) -> Result<Vec<InputItem>, ApiError> {
        let mut inputs = Self::default();
        if let Some(text) = value.as_str() {
            let content = vec![Content::text(&*text)];
            let raw = json!({"type": "message", "role": "user", "content": text}).to_string();
            let kind = InputKind::Message(Input { role: Role::User, content });
            return Ok(vec![InputItem::new(0, kind, raw)]);
        }
        if value.kind() != Kind::Array {
            return Err(wrong_type(value, "a string or a list of items"));
        }
        for (index, item) in list(value)?.enumerate() {
            refuse(item)?;
            let kind = kind_of(index, item, &inputs.calls)?;
            inputs
                .push(index, kind, item.source())
                .map_err(|problem| wrong_value(item, problem))?;
        }
        Ok(inputs.items)
    }

    /// Adds an item, or tells why it cannot stand here.
    pub(crate) fn push(
        &mut self,
        index: usize,
        kind: InputKind,
        raw: impl Into<std::sync::Arc<str>>,
    ) -> Result<(), String> {
        match &kind {
            InputKind::Call(call) => {
                let id = call.id.as_str();
                if self.calls.insert(id.to_owned(), call.name.clone()).is_some() {
                    return Err(format!("is a second call with the id {id:?}"));
                }
            }
            InputKind::Output(Submission { answer, .. }) => {
                let id = answer.call_id.as_str();
                if !self.answered.insert(id.to_owned()) {
                    return Err(format!("is a second output of the call {id:?}"));
                }
            }
            _ => {}
        }
        self.items.push(InputItem::new(index, kind, raw));
        Ok(())
    }

    /// The tool of a call before.
    pub(crate) fn tool_of(&self, call_id: &str) -> Option<String> {
        self.calls.get(call_id).cloned()
    }

    pub(crate) fn into_items(self) -> Vec<InputItem> {
        self.items
    }
}

/// The outputs of calls that are not in the same input: they answer calls of an earlier response.
pub(crate) fn submissions(items: &[InputItem]) -> impl Iterator<Item = &Submission> {
    items.iter().filter_map(|item| match &item.kind {
        InputKind::Output(submission) if submission.tool.is_none() => Some(submission),
        _ => None,
    })
}

pub(crate) fn approvals(items: &[InputItem]) -> impl Iterator<Item = &ApprovalAnswer> {
    items.iter().filter_map(|item| match &item.kind {
        InputKind::Approval(approval) => Some(approval),
        _ => None,
    })
}

/// The ids of the calls without an output in the same input, in order.
pub(crate) fn unanswered(items: &[InputItem]) -> Vec<&str> {
    let answered: HashSet<&str> = items
        .iter()
        .filter_map(|item| match &item.kind {
            InputKind::Output(submission) => Some(submission.answer.call_id.as_str()),
            _ => None,
        })
        .collect();
    let calls = items.iter().filter_map(|item| match &item.kind {
        InputKind::Call(call) => Some(call.id.as_str()),
        _ => None,
    });
    calls.filter(|id| !answered.contains(id)).collect()
}

/// The items for a conversation with a model.
pub(crate) fn history(items: &[InputItem], source: &str) -> Vec<Item> {
    items.iter().flat_map(|item| item.items(source)).collect()
}
