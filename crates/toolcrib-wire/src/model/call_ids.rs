//! Ids of calls that are unique in a conversation.

use std::collections::HashSet;
use std::sync::Arc;

use toolcrib_tool::CallId;

use super::{DecoderSettings, ModelEvent};

/// The characters of the longest id that a call keeps. Clients' own ids may be as long.
const MAX_CHARS: usize = 256;

/// Decides the ids of one answer's calls.
#[derive(Debug)]
pub(super) struct CallIds {
    used: HashSet<CallId>,
    taken: Arc<HashSet<CallId>>,
    prefix: String,
    next_number: usize,
    /// How many calls were started.
    started: usize,
}

/// A call that was reported.
#[derive(Debug)]
pub(super) struct StartedCall {
    /// Its position among the calls of the answer.
    pub(super) position: usize,
    /// Another id, if the server's own is taken.
    pub(super) new_id: Option<CallId>,
}

impl CallIds {
    pub(super) fn new(settings: &DecoderSettings) -> Self {
        Self {
            used: HashSet::new(),
            taken: Arc::clone(&settings.taken_call_ids),
            prefix: settings.call_id_prefix.clone(),
            next_number: 0,
            started: 0,
        }
    }

    /// The id of a call: the one that the server gave, or a new one if it gave none, one that another call has, or one
    /// that is too long for logs.
    pub(super) fn of(&mut self, given: Option<&str>) -> CallId {
        let fits = |id: &&str| !id.is_empty() && id.chars().nth(MAX_CHARS).is_none();
        let given = given.filter(fits).map(CallId::new);
        if let Some(id) = given.filter(|id| self.is_free(id)) {
            self.used.insert(id.clone());
            return id;
        }
        loop {
            let id = CallId::new(format!("{}_{}", self.prefix, self.next_number));
            self.next_number += 1;
            if self.is_free(&id) {
                self.used.insert(id.clone());
                return id;
            }
        }
    }

    /// Decides the id of the next call, and reports the call.
    pub(super) fn start(
        &mut self,
        given: &str,
        name: String,
        events: &mut Vec<ModelEvent>,
    ) -> StartedCall {
        let (id, position) = (self.of(Some(given)), self.started);
        self.started += 1;
        events.push(ModelEvent::CallStarted { call: position, id: id.clone(), name });
        StartedCall { position, new_id: Some(id).filter(|id| id.as_str() != given) }
    }

    fn is_free(&self, id: &CallId) -> bool {
        !self.used.contains(id) && !self.taken.contains(id)
    }
}
