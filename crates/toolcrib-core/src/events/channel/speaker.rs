//! One call on a channel.

use std::sync::Arc;

use super::floor::SpeakerId;
use crate::events::channel::shared::SharedChannel;
use crate::events::event::Occurrence;

/// Emits a call's events on a channel until it ends or is dropped, which releases the floor.
pub(crate) struct Speaker {
    shell: Arc<SharedChannel>,
    id: SpeakerId,
}

impl Speaker {
    /// A new speaker; `position` is its index in the order of the calls.
    pub(crate) fn new(shell: &Arc<SharedChannel>, position: usize) -> Self {
        Self { shell: Arc::clone(shell), id: shell.join(position) }
    }

    pub(crate) fn shell(&self) -> &SharedChannel {
        &self.shell
    }

    /// Emits an event that is presented only before the first word. Never waits.
    pub(crate) fn announce(&self, occurrence: Arc<Occurrence>) {
        self.shell.announce(self.id, occurrence);
    }

    /// Says something. Never waits.
    pub(crate) fn say(&self, occurrence: Arc<Occurrence>) {
        self.shell.say(self.id, occurrence);
    }

    /// Completes when the reader has caught up, if this speaker holds the floor, otherwise at once.
    pub(crate) async fn room(&self) {
        self.shell.room(self.id).await;
    }

    /// Ends the speaker.
    pub(crate) fn end(&self) {
        self.shell.end(self.id);
    }
}

impl Drop for Speaker {
    fn drop(&mut self) {
        self.end();
    }
}
