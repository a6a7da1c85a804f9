//! What a call prints while it runs, for the person at the terminal.

use std::io::{IsTerminal as _, stderr, stdout};

use toolcrib::TurnOptions;
use toolcrib::core::events::{CallStream, ChannelOptions, EventReader, Listeners, Payload};
use toolcrib::tool::Content;

use crate::screen;

/// Shows the output of a call as it comes.
pub(super) struct LiveScreen {
    events: EventReader,
    /// Whether the result goes to the terminal as well.
    has_stdout: bool,
    /// The output that was shown there.
    shown: String,
    /// The last message of the call.
    tip: String,
}

impl LiveScreen {
    /// Watches the calls of a turn, if there is a terminal to show them on. `is_data`: the result is read
    /// by a program.
    pub(super) fn watch(options: TurnOptions, is_data: bool) -> (TurnOptions, Option<Self>) {
        if is_data || !stderr().is_terminal() {
            return (options, None);
        }
        let (stream, events) = CallStream::new(&ChannelOptions::default());
        let screen = Self {
            events,
            has_stdout: stdout().is_terminal(),
            shown: String::new(),
            tip: String::new(),
        };
        (options.listeners(Listeners::new().with_stream(stream)), Some(screen))
    }

    /// Does the work and shows meanwhile what it prints. The text that the terminal shows already is the
    /// second value.
    pub(super) async fn beside<T>(mut self, work: impl Future<Output = T>) -> (T, String) {
        let mut work = std::pin::pin!(work);
        let done = loop {
            tokio::select! {
                biased;
                Some(event) = self.events.next() => self.show(event.payload()),
                done = &mut work => break done,
            }
        };
        let end = std::time::Duration::ZERO;
        while let Ok(Some(event)) = tokio::time::timeout(end, self.events.next()).await {
            self.show(event.payload());
        }
        (done, self.shown)
    }

    fn show(&mut self, payload: &Payload) {
        match payload {
            Payload::Output(Content::Text(part)) if self.has_stdout => {
                self.shown.push_str(part);
                // A terminal that is gone is noticed when the result is printed.
                let _ = screen::out(part);
            }
            Payload::Output(Content::Text(part)) => screen::note(part.trim_end_matches('\n')),
            Payload::Status(status) => {
                let tip = status.tip.as_deref().unwrap_or_default();
                if !tip.is_empty() && tip != self.tip {
                    self.tip = tip.to_owned();
                    // A line of standard output that tells how far the call is was shown as such.
                    if !status.params.contains_key("progress") {
                        screen::note(tip);
                    }
                }
            }
            _ => {}
        }
    }
}
