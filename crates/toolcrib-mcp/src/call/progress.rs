//! Reports on a running call: progress notifications and log messages to its client, or the status
//! of the task that it has become.
#![expect(deprecated, reason = "clients of today sample, log and have roots")]

use rmcp::RoleServer;
use rmcp::model::{
    LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken,
};
use rmcp::service::{Peer, RequestContext};
use serde_json::Value;
use toolcrib_core::events::{CallStream, ChannelOptions, Event, EventReader, Listeners, Payload};
use toolcrib_tool::{Content, Phase, StatusUpdate};

use crate::call::tasks::TaskHandle;

/// How much progress rises when a tool that reports numbers sends a status without one.
const SMALL_STEP: f64 = 1e-6;

/// Reports the events of one call.
pub(crate) struct ProgressReporter {
    reader: EventReader,
    listeners: Listeners,
    recipient: Recipient,
}

/// The recipient of the reports.
enum Recipient {
    /// The client that made the request.
    Client(ReportedClient),
    /// A task, which reports to clients that poll it.
    Task(TaskHandle),
}

struct ReportedClient {
    peer: Peer<RoleServer>,
    token: Option<ProgressToken>,
    level: Option<LoggingLevel>,
    /// The progress last reported to the client: it may only rise.
    progress: Option<f64>,
    /// Whether the tool has reported a number.
    has_numbers: bool,
    /// The total, if the tool has reported one.
    total: Option<f64>,
    last_text: Option<String>,
}

impl ProgressReporter {
    /// Creates a reporter for a call whose client wants reports, or that `may_become_a_task`;
    /// `None` for other calls. `level` is the log level of the client's connection.
    pub(crate) fn of(
        context: &RequestContext<RoleServer>,
        level: Option<LoggingLevel>,
        may_become_a_task: bool,
    ) -> Option<Self> {
        let token = context.meta.get_progress_token();
        let level = context.meta.log_level().or(level);
        if token.is_none() && level.is_none() && !may_become_a_task {
            return None;
        }
        let (stream, reader) = CallStream::new(&ChannelOptions::default());
        let peer = context.peer.clone();
        let client = ReportedClient {
            peer,
            token,
            level,
            progress: None,
            has_numbers: false,
            total: None,
            last_text: None,
        };
        let recipient = Recipient::Client(client);
        Some(Self { reader, listeners: Listeners::new().with_stream(stream), recipient })
    }

    /// Redirects reports to the task that the call has become, including the latest status.
    pub(crate) fn for_task(self, task: TaskHandle) -> Self {
        if let Recipient::Client(ReportedClient { last_text: Some(last_text), .. }) =
            &self.recipient
        {
            task.say(last_text);
        }
        Self { recipient: Recipient::Task(task), ..self }
    }

    /// The listeners to open the call's turn with.
    pub(crate) fn listeners(&self) -> Listeners {
        self.listeners.clone()
    }

    /// Reports while `work` runs, including everything that was sent before it ended.
    pub(crate) async fn beside<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        let done = loop {
            tokio::select! {
                biased;
                Some(event) = self.reader.next() => self.recipient.hear(&event).await,
                done = &mut work => break done,
            }
        };
        // Report only what is there now: a thread that could not be stopped may go on sending.
        let end = tokio::time::Duration::ZERO;
        while let Ok(Some(event)) = tokio::time::timeout(end, self.reader.next()).await {
            self.recipient.hear(&event).await;
        }
        done
    }
}

impl Recipient {
    async fn hear(&mut self, event: &Event) {
        match self {
            Self::Client(client) => client.hear(event).await,
            Self::Task(task) => {
                if let Payload::Status(status) = event.payload()
                    && let Some(tip) = &status.tip
                {
                    task.say(tip);
                }
            }
        }
    }
}

impl ReportedClient {
    async fn hear(&mut self, event: &Event) {
        let status = match event.payload() {
            Payload::Status(status) => status,
            Payload::Output(Content::Text(part)) => return self.tell_output(event, part).await,
            _ => return,
        };
        let news =
            status.tip.as_ref().filter(|text| self.last_text.as_ref() != Some(*text)).cloned();
        self.tell_progress(status, news.as_deref()).await;
        if let Some(text) = news {
            self.log(LoggingLevel::Info, event.tool(), &text).await;
            self.last_text = Some(text);
        }
        if let (Phase::Error, Some(error)) = (status.phase, &status.error) {
            self.log(LoggingLevel::Error, event.tool(), error).await;
        }
    }

    /// Reports a part of the output: as a log message, and as a step of progress for clients
    /// without a log level.
    async fn tell_output(&mut self, event: &Event, part: &str) {
        let part = part.trim_end_matches('\n');
        if part.is_empty() {
            return;
        }
        if self.level.is_none() {
            self.tell_progress(&StatusUpdate::doing().with_tip(part), Some(part)).await;
        }
        self.log(LoggingLevel::Info, event.tool(), part).await;
    }

    async fn tell_progress(&mut self, status: &StatusUpdate, news: Option<&str>) {
        let Some(token) = &self.token else { return };
        let number = |name: &str| status.params.get(name).and_then(Value::as_f64);
        let said = number("progress");
        self.has_numbers |= said.is_some();
        let progress = match (said, self.progress) {
            (Some(said), None) => said,
            (Some(said), Some(reported)) if said > reported => said,
            // Progress has to rise with each notification.
            (_, Some(reported)) if news.is_some() && self.has_numbers => reported + SMALL_STEP,
            // For a tool that reports no numbers, each status counts as one.
            (None, reported) if news.is_some() => reported.unwrap_or(0.0) + 1.0,
            _ => return,
        };
        self.progress = Some(progress);
        self.total = number("total").or(self.total);
        let mut notice = ProgressNotificationParam::new(token.clone(), progress);
        // More than the total would make no sense: what is reported after the end has none.
        if let Some(total) = self.total.filter(|total| progress <= *total) {
            notice = notice.with_total(total);
        }
        if let Some(tip) = &status.tip {
            notice = notice.with_message(tip.clone());
        }
        // A client that has disconnected has dropped the call, too.
        let _ = self.peer.notify_progress(notice).await;
    }

    async fn log(&self, level: LoggingLevel, tool: Option<&str>, text: &str) {
        if self.level.is_none_or(|wanted| rank(level) < rank(wanted)) {
            return;
        }
        let mut message = LoggingMessageNotificationParam::new(level, text.into());
        if let Some(tool) = tool {
            message = message.with_logger(tool);
        }
        let _ = self.peer.notify_logging_message(message).await;
    }
}

/// The severity of a level; levels are declared in ascending order.
fn rank(level: LoggingLevel) -> u8 {
    level as u8
}
