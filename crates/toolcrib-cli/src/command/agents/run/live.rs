//! The output of running calls, line by line.

use std::collections::HashMap;

use toolcrib::core::events::{Event, Payload};
use toolcrib::tool::fully_visible;

/// The longest part of a line that is held back until its end arrives, in bytes.
const MAX_HELD: usize = 2_000;

/// Makes lines of what calls report while they run.
#[derive(Default)]
pub(super) struct LiveOutput {
    calls: HashMap<String, ShownCall>,
}

#[derive(Default)]
struct ShownCall {
    /// The beginning of a line.
    held: String,
    /// The last status.
    status: String,
}

impl LiveOutput {
    /// The lines to show after an event of a call in `run`, with the tool's name in front.
    pub(super) fn lines(&mut self, run: &str, event: &Event) -> Vec<String> {
        let Some(id) = event.call_id() else {
            return match event.payload() {
                Payload::Lagged { lost } => {
                    vec![format!("{lost} parts of the output are left out")]
                }
                _ => Vec::new(),
            };
        };
        // Sub-agents may use the same ids.
        let key = format!("{run} {id}");
        let call = self.calls.entry(key.clone()).or_default();
        let mut lines = Vec::new();
        match event.payload() {
            Payload::Output(part) => {
                call.held.push_str(&part.as_text());
                while let Some(end) = call.held.find('\n') {
                    let line: String = call.held.drain(..=end).collect();
                    lines.push(line);
                }
                if call.held.len() > MAX_HELD {
                    lines.push(std::mem::take(&mut call.held));
                }
            }
            Payload::Status(status) => {
                let tip = status.tip.as_deref().unwrap_or_default();
                if !tip.is_empty() && tip != call.status {
                    tip.clone_into(&mut call.status);
                    lines.extend(tip.lines().map(str::to_owned));
                }
            }
            Payload::Completed(_) | Payload::Suspended { .. } => {
                let ended = self.calls.remove(&key).unwrap_or_default();
                lines.extend(Some(ended.held).filter(|held| !held.is_empty()));
            }
            _ => {}
        }
        let tool = fully_visible(event.tool().unwrap_or_default());
        lines.iter().map(|line| format!("{tool} │ {}", fully_visible(line.trim_end()))).collect()
    }
}
