//! One call's place on a channel.

use std::sync::Arc;

use super::floor::SpeakerId;
use crate::events::channel::shared::SharedChannel;
use crate::events::event::Occurrence;

/// Speaks on a channel until it ends or is dropped, which releases the floor.
pub(crate) struct Speaker {
    shell: Arc<SharedChannel>,
    id: SpeakerId,
}

impl Speaker {
    /// A speaker among others; `position` is its place in the order of the calls.
    pub(crate) fn new(shell: &Arc<SharedChannel>, position: usize) -> Self {
        Self { shell: Arc::clone(shell), id: shell.join(position) }
    }

    pub(crate) fn shell(&self) -> &SharedChannel {
        &self.shell
    }

    /// Says what is presented only together with a first word. Never waits.
    pub(crate) fn announce(&self, occurrence: Arc<Occurrence>) {
        self.shell.announce(self.id, occurrence);
    }

    /// Says something. Never waits.
    pub(crate) fn say(&self, occurrence: Arc<Occurrence>) {
        self.shell.say(self.id, occurrence);
    }

    /// Completes when the reader has caught up, if this one holds the floor; else at once.
    pub(crate) async fn room(&self) {
        self.shell.room(self.id).await;
    }

    /// Has nothing more to say.
    pub(crate) fn end(&self) {
        self.shell.end(self.id);
    }
}

impl Drop for Speaker {
    fn drop(&mut self) {
        self.end();
    }
}
