//! What a program prints, shown to whoever watches the call while the program runs.
//!
//! The program never waits for a watcher. What it prints is collected in a buffer of a fixed size, and a
//! second future hands it on. Where the watcher is slower than the program, lines are left out, and their
//! number of bytes is told. The result of the call is not affected.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use memchr::{memchr2, memrchr2};
use regex::{Captures, Regex};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use toolcrib_manifest::declaration::{OutputFormat, OutputSpec};
use toolcrib_sandbox::{OutputKind, OutputTap};
use toolcrib_tool::{CallContext, StatusUpdate, visible};

use crate::output::redact::Redaction;

/// Bytes of whole lines of each stream that wait to be shown.
const BUFFER: usize = 64 * 1024;
/// Bytes of the longest line that is shown.
const LONGEST_LINE: usize = 8 * 1024;
/// The time between two parts, so that a chatty program does not flood its watchers. Well below the
/// 100 ms after which a person notices a delay.
const PAUSE: Duration = Duration::from_millis(50);

/// Shows the output of one run of a program.
pub(crate) struct LiveOutput<'r> {
    buffer: Arc<Buffer>,
    redaction: &'r Redaction,
    progress: &'r [Regex],
    /// Standard output is data, which nobody reads line by line.
    is_data: bool,
    /// Bytes that may still be shown.
    left: usize,
}

impl<'r> LiveOutput<'r> {
    /// Nothing where nobody watches the call, or where a pattern could hide more than one line, which
    /// nobody can know before the last one. As many bytes are shown as a result may have characters.
    pub(crate) fn of(
        cx: &CallContext,
        output: &OutputSpec,
        redaction: &'r Redaction,
        progress: &'r [Regex],
    ) -> Option<Self> {
        if !cx.is_watched() || redaction.spans_lines() {
            return None;
        }
        let is_data = output.format == OutputFormat::Json;
        Some(Self { buffer: Arc::default(), redaction, progress, is_data, left: cx.output_chars() })
    }

    /// What collects the output.
    pub(crate) fn tap(&self) -> OutputTap {
        let buffer = Arc::clone(&self.buffer);
        Arc::new(move |kind, piece| buffer.push(kind, piece))
    }

    /// Does the work and shows meanwhile what the program prints. Whole lines that are still there at the
    /// end are shown without waiting for anybody.
    pub(crate) async fn beside<T>(mut self, cx: &CallContext, work: impl Future<Output = T>) -> T {
        let done = {
            let show = async {
                loop {
                    self.buffer.news.notified().await;
                    self.show(cx).await;
                    sleep(PAUSE).await;
                }
            };
            tokio::select! {
                biased;
                done = work => done,
                () = show => unreachable!("it shows what comes for as long as it is asked"),
            }
        };
        // What is said is said at the first poll; only then is a slow reader waited for.
        let _ = timeout(Duration::ZERO, self.show(cx)).await;
        done
    }

    async fn show(&mut self, cx: &CallContext) {
        let [stdout, stderr] = self.buffer.take();
        let stdout = self.text(cx, OutputKind::Stdout, &stdout);
        let stderr = self.text(cx, OutputKind::Stderr, &stderr);
        let output = async {
            if let Some(text) = stdout {
                cx.stream(text).await;
            }
        };
        // Never waits, so it is told even if the program ends while a slow reader is waited for.
        let errors = async {
            if let Some(text) = stderr {
                cx.status(StatusUpdate::doing().with_tip(text.trim_end_matches('\n')));
            }
        };
        tokio::join!(biased; output, errors);
    }

    /// What is to be shown of a part. Tells how far the program is, if the part says so.
    fn text(&mut self, cx: &CallContext, kind: OutputKind, part: &Part) -> Option<String> {
        let text = part.text(self.redaction)?;
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

    /// What the last line says that tells how far the program is. The line itself is shown as output.
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

/// What has been printed and not been shown.
#[derive(Default)]
struct Buffer {
    streams: Mutex<[Part; 2]>,
    news: Notify,
}

impl Buffer {
    fn push(&self, kind: OutputKind, piece: &[u8]) {
        let mut streams = self.streams();
        let part = &mut streams[usize::from(kind == OutputKind::Stderr)];
        if part.push(piece) {
            self.news.notify_one();
        }
    }

    fn take(&self) -> [Part; 2] {
        self.streams().each_mut().map(Part::take)
    }

    fn streams(&self) -> MutexGuard<'_, [Part; 2]> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lines of one stream.
#[derive(Default)]
struct Part {
    /// Whole lines, each with its end.
    whole: Vec<u8>,
    /// The beginning of a line.
    begun: Vec<u8>,
    /// Whether that line is too long to be shown.
    too_long: bool,
    /// Whether the line before ended with a carriage return, which a line feed may follow.
    returned: bool,
    /// Bytes that are left out.
    lost: u64,
}

impl Part {
    /// Takes a piece; says whether there is a new line or loss to show.
    fn push(&mut self, piece: &[u8]) -> bool {
        let mut rest = piece;
        let mut has_news = false;
        while let Some(at) = memchr2(b'\n', b'\r', rest) {
            if self.whole.len() >= BUFFER {
                // Nothing of these lines is kept: only the last, unfinished one matters.
                let last = memrchr2(b'\n', b'\r', rest).unwrap_or(at);
                self.lost += (self.begun.len() + last + 1) as u64;
                self.begun.clear();
                (self.too_long, self.returned) = (false, rest[last] == b'\r');
                rest = &rest[last + 1..];
                break;
            }
            let is_second_half = at == 0 && rest[0] == b'\n' && self.returned;
            self.returned = rest[at] == b'\r';
            if !is_second_half || !self.begun.is_empty() {
                self.begin(&rest[..at]);
                self.end_line();
                has_news = true;
            }
            rest = &rest[at + 1..];
        }
        if !rest.is_empty() {
            self.returned = false;
            self.begin(rest);
        }
        has_news
    }

    fn begin(&mut self, text: &[u8]) {
        if self.too_long || self.begun.len() + text.len() > LONGEST_LINE {
            self.too_long = true;
            self.lost += (self.begun.len() + text.len()) as u64;
            self.begun.clear();
        } else {
            self.begun.extend_from_slice(text);
        }
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.too_long) {
            return;
        }
        self.whole.append(&mut self.begun);
        self.whole.push(b'\n');
    }

    /// What there is to show; the unfinished line stays.
    fn take(&mut self) -> Self {
        Self {
            whole: std::mem::take(&mut self.whole),
            lost: std::mem::take(&mut self.lost),
            ..Self::default()
        }
    }

    fn text(&self, redaction: &Redaction) -> Option<String> {
        let whole = String::from_utf8_lossy(&self.whole);
        let mut text = String::with_capacity(whole.len());
        for line in whole.lines() {
            text.push_str(&visible(&redaction.text(line.to_owned())));
            text.push('\n');
        }
        if self.lost > 0 {
            // Writing to a string does not fail.
            let _ = writeln!(text, "[… {} bytes not shown live …]", self.lost);
        }
        (!text.is_empty()).then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use toolcrib_manifest::declaration::Keep;
    use toolcrib_tool::{BoxFuture, CallHost, Content, ToolDefinition};

    use super::*;

    /// Hears everything and never catches up.
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
    async fn a_reader_that_never_catches_up_is_told_of_both_streams_and_delays_nothing() {
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
        assert_eq!(live.beside(&cx, work).await, "done");
        assert_eq!(*reader.0.lock().unwrap(), ["a\n", "b", "c\n", "d"]);
    }

    fn shown(part: &mut Part) -> String {
        part.take().text(&Redaction::default()).unwrap_or_default()
    }

    #[test]
    fn only_whole_lines_are_shown_and_a_carriage_return_ends_one() {
        let mut part = Part::default();
        assert!(!part.push(b"a"));
        assert!(part.push(b"b\r\nc\n\n 10%\r 20%\rd"));
        assert_eq!(shown(&mut part), "ab\nc\n\n 10%\n 20%\n");
        assert!(part.push(b"\r"));
        // The other half of the line end.
        assert!(!part.push(b"\n"));
        assert_eq!(shown(&mut part), "d\n");
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let mut part = Part::default();
        part.push(&b"x".repeat(LONGEST_LINE + 1));
        part.push(b"yy\nshort\n");
        assert_eq!(
            shown(&mut part),
            format!("short\n[… {} bytes not shown live …]\n", LONGEST_LINE + 3)
        );

        let lines = b"0123456\n".repeat(2 * BUFFER / 8);
        part.push(&lines);
        part.push(b"rest");
        assert!(part.whole.len() <= BUFFER + LONGEST_LINE);
        let text = shown(&mut part);
        assert!(
            text.ends_with(&format!("[… {BUFFER} bytes not shown live …]\n")),
            "{}",
            text.len()
        );
        part.push(b" of it\n");
        assert_eq!(shown(&mut part), "rest of it\n");
    }

    proptest! {
        #[test]
        fn every_split_of_a_short_text_shows_the_same_lines(
            text in "[ab\r\n]{0,40}",
            at in 0_usize..40,
        ) {
            let at = at.min(text.len());
            let mut whole = Part::default();
            whole.push(text.as_bytes());
            let mut split = Part::default();
            split.push(&text.as_bytes()[..at]);
            split.push(&text.as_bytes()[at..]);
            prop_assert_eq!(shown(&mut whole), shown(&mut split));
            prop_assert_eq!(whole.begun, split.begun);
        }
    }
}
