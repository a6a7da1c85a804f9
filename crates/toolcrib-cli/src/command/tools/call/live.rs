//! Prints the output of a running call to the person at the terminal.

use std::io::{IsTerminal as _, stderr, stdout};

use toolcrib::TurnOptions;
use toolcrib::core::events::{CallStream, ChannelOptions, EventReader, Listeners, Payload};
use toolcrib::tool::Content;

use crate::screen;

/// Shows the output of a call as it arrives.
pub(super) struct LiveScreen {
    events: EventReader,
    /// Whether the result is printed to the terminal as well.
    has_stdout: bool,
    shown: ScreenContent,
}

/// What the terminal has shown of a call.
#[derive(Default)]
pub(super) struct ScreenContent {
    /// The lines of its output.
    output: String,
    /// Its other messages, with the last one at the end.
    messages: String,
    last: String,
}

impl ScreenContent {
    /// What of the text of a result the terminal has not shown yet.
    pub(super) fn rest_of<'t>(&self, text: &'t str) -> &'t str {
        let output = self.output.trim_end_matches('\n');
        let rest = text
            .strip_prefix(output)
            .filter(|rest| !output.is_empty() && (rest.is_empty() || rest.starts_with('\n')));
        let Some(rest) = rest.map(|rest| rest.trim_start_matches('\n')) else { return text };
        let errors = rest.strip_prefix("[stderr]\n").map(|errors| errors.trim_end_matches('\n'));
        if errors == Some(self.messages.trim_end_matches('\n')) { "" } else { rest }
    }
}

impl LiveScreen {
    /// Watches the calls of a turn, if there is a terminal. `is_data` means that a program reads
    /// the result.
    pub(super) fn watch(options: TurnOptions, is_data: bool) -> (TurnOptions, Option<Self>) {
        if is_data || !stderr().is_terminal() {
            return (options, None);
        }
        let (stream, events) = CallStream::new(&ChannelOptions::default());
        let screen =
            Self { events, has_stdout: stdout().is_terminal(), shown: ScreenContent::default() };
        (options.listeners(Listeners::new().with_stream(stream)), Some(screen))
    }

    /// Runs the work and shows its output meanwhile. Returns what the terminal has shown.
    pub(super) async fn show_during<T>(
        mut self,
        work: impl Future<Output = T>,
    ) -> (T, ScreenContent) {
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
        if self.has_stdout && !self.shown.output.is_empty() && !self.shown.output.ends_with('\n') {
            let _ = screen::out_part("\n");
        }
        (done, self.shown)
    }

    fn show(&mut self, payload: &Payload) {
        match payload {
            Payload::Output(Content::Text(part)) if self.has_stdout => {
                self.shown.output.push_str(part);
                // A closed terminal is noticed when the result is printed.
                let _ = screen::out_part(part);
            }
            Payload::Output(Content::Text(part)) => screen::note(part.trim_end_matches('\n')),
            Payload::Status(status) => {
                let tip = status.tip.as_deref().unwrap_or_default();
                if !tip.is_empty() && tip != self.shown.last {
                    self.shown.messages.push_str(tip);
                    self.shown.messages.push('\n');
                    tip.clone_into(&mut self.shown.last);
                    screen::note(tip);
                }
            }
            _ => {}
        }
    }
}
