//! Live output: shows the clients that watch a call what its program prints, or what its worker reports, while it runs.
//!
//! The program never waits for a watcher. Its output is collected in a buffer of a fixed size, and a second future
//! sends it. If the watcher is slower than the program, lines are omitted, and the number of omitted bytes is reported.
//! The result of the call is not affected.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use regex::{Captures, Regex};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use toolcrib_manifest::declaration::{OutputFormat, OutputSpec};
use toolcrib_sandbox::{LONGEST_LINE, LineBuffer, OutputKind, OutputTap};
use toolcrib_tool::{ByteMask, CallContext, StatusUpdate, visible};

use crate::output::redact_patterns::Redaction;

/// How many progress updates of a worker may wait to be shown. A further update replaces the last one.
const UPDATES: usize = 16;
/// The time between two updates, so that a program with much output does not flood its watchers. Well below the 100 ms
/// after which a person notices a delay.
const PAUSE: Duration = Duration::from_millis(50);

/// Shows the output of one run of a program, or what a worker reports about one call.
pub(crate) struct LiveOutput<'r> {
    buffer: Arc<OutputBuffer>,
    redaction: &'r Redaction,
    progress: &'r [Regex],
    /// Whether no text of standard output is shown: it is data, which nobody reads line by line, or a pattern could
    /// match more than one line of it.
    is_data: bool,
    /// Whether the text consists of a worker's chunks, which are shown before their line ends.
    is_chunks: bool,
    /// How many more bytes may be shown.
    left: usize,
}

impl<'r> LiveOutput<'r> {
    /// `None` if nobody watches the call, or if a redaction pattern may match several lines: what it hides is then
    /// known only at the end. At most as many bytes are shown as a result may have characters.
    pub(crate) fn of(
        cx: &CallContext,
        output: &OutputSpec,
        redaction: &'r Redaction,
        progress: &'r [Regex],
    ) -> Option<Self> {
        if !cx.is_watched() || redaction.spans_lines() {
            return None;
        }
        Some(Self {
            buffer: Arc::default(),
            redaction,
            progress,
            is_data: output.format == OutputFormat::Json,
            is_chunks: false,
            left: cx.output_chars(),
        })
    }

    /// For a call of a worker; `None` if nobody watches the call. If a redaction pattern may match several lines, only
    /// numbers are shown.
    pub(crate) fn of_worker(cx: &CallContext, redaction: &'r Redaction) -> Option<Self> {
        cx.is_watched().then(|| Self {
            buffer: Arc::new(OutputBuffer::for_chunks(cx, redaction.is_empty())),
            redaction,
            progress: &[],
            is_data: redaction.spans_lines(),
            is_chunks: true,
            left: cx.output_chars(),
        })
    }

    /// The callback that collects the output.
    pub(crate) fn tap(&self) -> OutputTap {
        let buffer = Arc::clone(&self.buffer);
        Arc::new(move |kind, piece| buffer.push(kind, piece))
    }

    /// Collects the lines of a worker.
    pub(crate) fn worker_tap(&self, cx: &CallContext) -> WorkerTap {
        WorkerTap { buffer: Arc::clone(&self.buffer), cx: cx.clone() }
    }

    /// Runs the work and shows the program's output meanwhile. Complete lines that are left at the end, and a worker's
    /// last chunk, are sent without waiting for a slow reader.
    pub(crate) async fn run_and_show<T>(
        mut self,
        cx: &CallContext,
        work: impl Future<Output = T>,
    ) -> T {
        let done = {
            let show = async {
                loop {
                    self.buffer.changed.notified().await;
                    self.show(cx, false).await;
                    sleep(PAUSE).await;
                }
            };
            tokio::select! {
                biased;
                done = work => done,
                () = show => unreachable!("the loop never ends"),
            }
        };
        // Everything is sent at the first poll; only later polls would wait for a slow reader.
        self.buffer.end_chunks();
        let _ = timeout(Duration::ZERO, self.show(cx, true)).await;
        done
    }

    async fn show(&mut self, cx: &CallContext, is_over: bool) {
        // Redaction patterns need complete lines, or the rest when nothing follows.
        let with_partial_line = self.is_chunks && (is_over || self.redaction.is_empty());
        let PendingOutput { streams: [stdout, stderr], mut updates } =
            self.buffer.take(with_partial_line);
        let last_update = updates.pop_back();
        let stdout = self.text(cx, OutputKind::Stdout, &stdout);
        let stderr = self.text(cx, OutputKind::Stderr, &stderr);
        // Numbers come first, because without a number an MCP client is told how many lines there were.
        for update in updates.into_iter().map(|update| self.update(update)) {
            if update.tip.is_some() {
                cx.status(update);
            }
        }
        if let Some(update) = last_update {
            cx.status(self.update(update));
        }
        let output = async {
            if let Some(text) = stdout {
                cx.stream(text).await;
            }
        };
        // Does not wait, so it is sent even if the program ends while the other future waits for a slow reader.
        let errors = async {
            if let Some(text) = stderr {
                cx.status(StatusUpdate::doing().with_tip(text.trim_end_matches('\n')));
            }
        };
        tokio::join!(biased; output, errors);
    }

    /// The worker's update as it may be shown. Its message counts as output.
    fn update(&mut self, mut update: StatusUpdate) -> StatusUpdate {
        let message = update.tip.take().filter(|_| !self.is_data);
        if let Some(message) = message {
            let message = visible(&self.redaction.text(message)).into_owned();
            if let Some(left) = self.left.checked_sub(message.len()) {
                self.left = left;
                update.tip = Some(message);
            }
        }
        update
    }

    /// The text to show. Also reports the program's progress if the text contains it.
    fn text(&mut self, cx: &CallContext, kind: OutputKind, part: &LineBuffer) -> Option<String> {
        let shown = |line: String| visible(&self.redaction.text(line)).into_owned();
        let text = part.text(shown)?;
        if let Some(update) = self.progress_in(&text) {
            cx.status(update);
        }
        if self.left == 0 || (self.is_data && kind == OutputKind::Stdout) {
            return None;
        }
        let Some(left) = self.left.checked_sub(text.len()) else {
            self.left = 0;
            return Some("[… more output is not shown live …]\n".to_owned());
        };
        self.left = left;
        Some(text)
    }

    /// The progress in the last line that reports any. The line itself is shown as output.
    fn progress_in(&self, text: &str) -> Option<StatusUpdate> {
        if self.progress.is_empty() {
            return None;
        }
        text.lines().rev().find_map(|line| {
            let found = self.progress.iter().find_map(|pattern| pattern.captures(line))?;
            let number = |group: usize| found.get(group)?.as_str().parse::<f64>().ok();
            let done = number(1).map(Value::from).filter(Value::is_number)?;
            let update = StatusUpdate::doing().with_param("progress", done);
            let total = number(2).or_else(|| is_percentage(&found, line).then_some(100.0));
            Some(match total {
                Some(total) => update.with_param("total", total),
                None => update,
            })
        })
    }
}

/// Whether a `%` follows the first group.
fn is_percentage(found: &Captures<'_>, line: &str) -> bool {
    let end = found.get(1).map_or(line.len(), |group| group.end());
    line[end..].trim_start().starts_with('%')
}

/// Collects what a worker reports about one call. Never waits, and uses a bounded amount of memory.
#[derive(Clone)]
pub(crate) struct WorkerTap {
    buffer: Arc<OutputBuffer>,
    cx: CallContext,
}

impl WorkerTap {
    /// Adds a piece of output.
    pub(crate) fn chunk(&self, text: &str) {
        self.buffer.push_chunk(Some(text.as_bytes()));
        self.buffer.changed.notify_one();
    }

    /// Adds an update of the progress.
    pub(crate) fn update(&self, mut update: StatusUpdate) {
        update.tip = update.tip.map(|text| shortened(self.cx.masked(text)));
        let mut pending = self.buffer.pending();
        let replaces_last = pending.updates.back().is_some_and(|last| last.tip.is_none());
        if replaces_last || pending.updates.len() >= UPDATES {
            pending.updates.pop_back();
        }
        pending.updates.push_back(update);
        drop(pending);
        self.buffer.changed.notify_one();
    }
}

impl fmt::Debug for WorkerTap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerTap").finish_non_exhaustive()
    }
}

fn shortened(mut text: String) -> String {
    if text.len() > LONGEST_LINE {
        let end = (0..=LONGEST_LINE).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or_default());
        text.push('…');
    }
    text
}

/// Output that was printed but not yet shown.
#[derive(Default)]
struct OutputBuffer {
    pending: Mutex<PendingOutput>,
    changed: Notify,
    /// Masks secrets in a worker's chunks, before they are split into lines and escaped.
    chunk_mask: Mutex<Option<ByteMask>>,
}

#[derive(Default)]
struct PendingOutput {
    streams: [LineBuffer; 2],
    /// Progress that a worker reported.
    updates: VecDeque<StatusUpdate>,
}

impl OutputBuffer {
    /// For the chunks of a worker's call. `cuts_lines`: the beginning of a line that is too long is shown.
    fn for_chunks(cx: &CallContext, cuts_lines: bool) -> Self {
        let mut pending = PendingOutput::default();
        pending.streams[0] = LineBuffer::default().cutting_lines(cuts_lines);
        let chunk_mask = Mutex::new(cx.byte_masks().map(|masks| masks()));
        Self { pending: Mutex::new(pending), changed: Notify::new(), chunk_mask }
    }

    /// Adds a chunk; without one, what the mask held back, because a secret could have begun there.
    fn push_chunk(&self, chunk: Option<&[u8]>) {
        let mut mask = self.chunk_mask.lock().unwrap_or_else(PoisonError::into_inner);
        let mut masked = Vec::new();
        let piece = match &mut *mask {
            Some(mask) => {
                mask(chunk, &mut masked);
                &masked
            }
            None => chunk.unwrap_or_default(),
        };
        self.pending().streams[0].push(piece);
    }

    fn end_chunks(&self) {
        self.push_chunk(None);
    }

    fn push(&self, kind: OutputKind, piece: &[u8]) {
        let part = &mut self.pending().streams[usize::from(kind == OutputKind::Stderr)];
        if part.push(piece) {
            self.changed.notify_one();
        }
    }

    /// Takes what can be shown; with `with_partial_line`, also a line that has not ended.
    fn take(&self, with_partial_line: bool) -> PendingOutput {
        let mut pending = self.pending();
        PendingOutput {
            streams: pending.streams.each_mut().map(|stream| stream.take(with_partial_line)),
            updates: std::mem::take(&mut pending.updates),
        }
    }

    fn pending(&self) -> MutexGuard<'_, PendingOutput> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use toolcrib_manifest::declaration::Keep;
    use toolcrib_tool::{BoxFuture, CallHost, Content, ToolDefinition};

    use super::*;

    /// Receives everything and never catches up.
    #[derive(Default)]
    struct SlowReader(Mutex<Vec<String>>);

    impl CallHost for SlowReader {
        fn cancelled(&self) -> BoxFuture<'_, ()> {
            Box::pin(std::future::pending())
        }

        fn is_cancelled(&self) -> bool {
            false
        }

        fn is_watched(&self) -> bool {
            true
        }

        fn status(&self, update: StatusUpdate) {
            self.0.lock().unwrap().extend(update.tip);
        }

        fn stream(&self, part: Content) -> BoxFuture<'_, ()> {
            self.0.lock().unwrap().push(part.as_text().into_owned());
            Box::pin(std::future::pending())
        }
    }

    #[tokio::test]
    async fn a_slow_reader_gets_both_streams_and_delays_nothing() {
        let reader = Arc::new(SlowReader::default());
        let definition = ToolDefinition::builder("x").description("X.").build().unwrap();
        let host = Arc::clone(&reader) as Arc<dyn CallHost>;
        let cx = CallContext::builder("1", Arc::new(definition)).host(host).build();
        let output = OutputSpec {
            format: OutputFormat::Text,
            keep: Keep::Both,
            redact: vec![],
            progress: vec![],
        };
        let redaction = Redaction::default();
        let live = LiveOutput::of(&cx, &output, &redaction, &[]).unwrap();
        let tap = live.tap();
        let work = async {
            tap(OutputKind::Stdout, b"a\n");
            tap(OutputKind::Stderr, b"b\n");
            sleep(PAUSE).await;
            tap(OutputKind::Stdout, b"c\n");
            tap(OutputKind::Stderr, b"d\n");
            "done"
        };
        assert_eq!(live.run_and_show(&cx, work).await, "done");
        assert_eq!(*reader.0.lock().unwrap(), ["a\n", "b", "c\n", "d"]);
    }
}
