//! The event numbers and item ids of a stream.

use std::collections::HashSet;
use std::sync::Arc;

use super::event::{Body, EventName, ResponseEvent};

/// Numbers events, and assigns positions and ids to items.
pub(super) struct Numbering {
    new_id: Box<dyn FnMut() -> String + Send>,
    taken_ids: HashSet<Arc<str>>,
    pub(super) next_sequence_number: u64,
    pub(super) next_output_index: u64,
}

/// The item of an event.
#[derive(Debug, Clone)]
pub(super) struct ItemPosition {
    pub(super) item_id: Arc<str>,
    pub(super) output_index: u64,
}

impl Numbering {
    pub(super) fn new(new_id: impl FnMut() -> String + Send + 'static) -> Self {
        Self {
            new_id: Box::new(new_id),
            taken_ids: HashSet::new(),
            next_sequence_number: 0,
            next_output_index: 0,
        }
    }

    pub(super) fn take_sequence_number(&mut self) -> u64 {
        let number = self.next_sequence_number;
        self.next_sequence_number += 1;
        number
    }

    pub(super) fn take_output_index(&mut self) -> u64 {
        let index = self.next_output_index;
        self.next_output_index += 1;
        index
    }

    /// The position of a new item, with an id that is unique in the stream even if the id source repeats itself.
    pub(super) fn place(&mut self, prefix: &str) -> ItemPosition {
        let mut id = format!("{prefix}{}", (self.new_id)());
        while self.taken_ids.contains(id.as_str()) {
            id.push('_');
        }
        self.place_as(id)
    }

    /// The position of a new item with this id.
    pub(super) fn place_as(&mut self, id: impl Into<Arc<str>>) -> ItemPosition {
        let item_id: Arc<str> = id.into();
        self.taken_ids.insert(Arc::clone(&item_id));
        ItemPosition { item_id, output_index: self.take_output_index() }
    }

    pub(super) fn event(
        &mut self,
        name: EventName,
        place: &ItemPosition,
        body: Body,
    ) -> ResponseEvent {
        ResponseEvent {
            name,
            sequence_number: self.take_sequence_number(),
            output_index: place.output_index,
            item_id: Arc::clone(&place.item_id),
            body,
        }
    }
}
