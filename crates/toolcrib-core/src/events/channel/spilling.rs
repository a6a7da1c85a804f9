//! An overflow in the spill store, so that unread events do not stay in memory.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle as Runtime;

use super::overflow::{ChannelOverflow, OverflowEntry};
use crate::output::spill::{Handle, Owner, SpillStore, Spilled};

/// Bytes of events that are stored as one text, because the number of stored texts is limited and
/// events are small.
const PAGE_BYTES: usize = 256 * 1024;
/// Maximum number of pages being written. Beyond it, events are lost until the store has caught up.
const WRITING_MAX: usize = 4;

/// Stores events of one channel in a [`SpillStore`], for one owner and within the store's limits
/// for that identity. At most 256 KiB wait in memory, and at most four times as much is being
/// written.
///
/// Events that the store refuses or has evicted are lost, which is reported to the reader.
pub struct SpillOverflow {
    store: Arc<dyn SpillStore>,
    owner: Owner,
    /// The current page.
    current: String,
    current_chars: usize,
    number: u64,
    pages: HashMap<u64, Arc<Mutex<Page>>>,
    events: HashMap<u64, PagePosition>,
}

/// The position of an event in its page.
#[derive(Debug, Clone, Copy)]
struct PagePosition {
    page: u64,
    byte: usize,
    bytes: usize,
    char: usize,
    chars: usize,
}

enum Page {
    Writing(Arc<str>),
    Kept(Handle),
    Lost,
}

impl SpillOverflow {
    /// An overflow in this store.
    pub fn new(store: Arc<dyn SpillStore>, owner: Owner) -> Self {
        Self {
            store,
            owner,
            current: String::new(),
            current_chars: 0,
            number: 0,
            pages: HashMap::new(),
            events: HashMap::new(),
        }
    }

    /// Starts to write the current page. Returns whether there is room for another.
    fn turn_over(&mut self) -> bool {
        let writing = |page: &&Arc<Mutex<Page>>| matches!(*page_of(page), Page::Writing(_));
        let Ok(runtime) = Runtime::try_current() else { return false };
        if self.pages.values().filter(writing).count() >= WRITING_MAX {
            return false;
        }
        let text: Arc<str> = std::mem::take(&mut self.current).into();
        self.current_chars = 0;
        let page = Arc::new(Mutex::new(Page::Writing(Arc::clone(&text))));
        self.pages.insert(self.number, Arc::clone(&page));
        self.number += 1;
        let (store, owner) = (Arc::clone(&self.store), self.owner.clone());
        runtime.spawn(async move {
            let kept = store.put(&owner, Spilled::json(&*text)).await;
            *page_of(&page) = kept.map_or_else(
                |error| {
                    tracing::warn!(%error, "events that nobody has read yet are lost");
                    Page::Lost
                },
                Page::Kept,
            );
        });
        true
    }
}

fn page_of(page: &Arc<Mutex<Page>>) -> MutexGuard<'_, Page> {
    page.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ChannelOverflow for SpillOverflow {
    fn put(&mut self, key: u64, bytes: Vec<u8>) -> bool {
        let Ok(text) = String::from_utf8(bytes) else { return false };
        if self.current.len() + text.len() > PAGE_BYTES
            && !self.current.is_empty()
            && !self.turn_over()
        {
            return false;
        }
        let chars = text.chars().count();
        let (byte, char) = (self.current.len(), self.current_chars);
        let place = PagePosition { page: self.number, byte, bytes: text.len(), char, chars };
        self.current.push_str(&text);
        self.current_chars += chars;
        self.events.insert(key, place);
        true
    }

    fn take(&mut self, key: u64) -> OverflowEntry {
        let Some(place) = self.events.remove(&key) else { return OverflowEntry::Lost };
        let here = |text: &str| {
            let event = text.get(place.byte..place.byte + place.bytes);
            event.map_or(OverflowEntry::Lost, |event| {
                OverflowEntry::Ready(event.as_bytes().to_vec())
            })
        };
        if place.page == self.number {
            return here(&self.current);
        }
        let Some(page) = self.pages.get(&place.page) else { return OverflowEntry::Lost };
        let handle = match &*page_of(page) {
            Page::Writing(text) => return here(text),
            Page::Lost => return OverflowEntry::Lost,
            Page::Kept(handle) => *handle,
        };
        let (store, owner) = (Arc::clone(&self.store), self.owner.clone());
        OverflowEntry::Pending(Box::pin(async move {
            let read = store.read(&owner, &handle, place.char, place.chars).await.ok()?;
            Some(read.text.into_bytes())
        }))
    }
}

impl fmt::Debug for SpillOverflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpillOverflow")
            .field("events", &self.events.len())
            .field("pages", &self.pages.len())
            .finish_non_exhaustive()
    }
}
