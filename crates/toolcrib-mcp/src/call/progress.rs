//! What a running call tells its client: progress, where it asked for that, and log messages; or the
//! task that it has become.
#![expect(deprecated, reason = "clients of today sample, log and have roots")]

use rmcp::RoleServer;
use rmcp::model::{
    LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken,
};
use rmcp::service::{Peer, RequestContext};
use serde_json::Value;
use toolcrib_core::events::{CallStream, ChannelOptions, Event, EventReader, Listeners, Payload};
use toolcrib_tool::{Content, Phase, StatusUpdate};

use crate::call::tasks::KeptTask;

/// By how much progress rises when a tool that counts says something without a number.
const LITTLE: f64 = 1e-6;

/// Tells of one call.
pub(crate) struct Narration {
    reader: EventReader,
    listeners: Listeners,
    told: Told,
}

/// Who is told.
enum Told {
    /// The client whose request the call is.
    Client(Client),
    /// A task, which says it to whoever asks.
    Task(KeptTask),
}

struct Client {
    peer: Peer<RoleServer>,
    token: Option<ProgressToken>,
    level: Option<LoggingLevel>,
    /// How far the call is, as the client was told: progress only rises.
    progress: Option<f64>,
    /// How far it will go, if the tool said so.
    total: Option<f64>,
    tip: Option<String>,
}

impl Narration {
    /// For a call whose client wants to hear of it, or that `may_become_a_task`; `None` for others.
    /// `level` is what the client's connection was set to.
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
        let client = Client { peer, token, level, progress: None, total: None, tip: None };
        let told = Told::Client(client);
        Some(Self { reader, listeners: Listeners::new().with_stream(stream), told })
    }

    /// Tells the task that the call has become: what was said last, and all from now on.
    pub(crate) fn for_task(self, task: KeptTask) -> Self {
        if let Told::Client(Client { tip: Some(tip), .. }) = &self.told {
            task.say(tip);
        }
        Self { told: Told::Task(task), ..self }
    }

    /// Who the call has to tell.
    pub(crate) fn listeners(&self) -> Listeners {
        self.listeners.clone()
    }

    /// Tells the client while `work` goes on, and of all that was said before it ended.
    pub(crate) async fn beside<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        let done = loop {
            tokio::select! {
                biased;
                Some(event) = self.reader.next() => self.told.hear(&event).await,
                done = &mut work => break done,
            }
        };
        // What is there now and no more: a thread that could not be stopped may go on talking.
        let end = tokio::time::Duration::ZERO;
        while let Ok(Some(event)) = tokio::time::timeout(end, self.reader.next()).await {
            self.told.hear(&event).await;
        }
        done
    }
}

impl Told {
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

impl Client {
    async fn hear(&mut self, event: &Event) {
        let status = match event.payload() {
            Payload::Status(status) => status,
            Payload::Output(Content::Text(part)) => return self.tell_output(event, part).await,
            _ => return,
        };
        let news = status.tip.as_ref().filter(|tip| self.tip.as_ref() != Some(*tip)).cloned();
        self.tell_progress(status, news.as_deref()).await;
        if let Some(tip) = news {
            self.log(LoggingLevel::Info, event.tool(), &tip).await;
            self.tip = Some(tip);
        }
        if let (Phase::Error, Some(error)) = (status.phase, &status.error) {
            self.log(LoggingLevel::Error, event.tool(), error).await;
        }
    }

    /// A part of the output: a log message, and a step of the progress for clients without a log.
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
        let progress = match (number("progress"), self.progress) {
            (Some(said), None) => said,
            (Some(said), Some(told)) if said > told => said,
            // Progress has to rise with each notification.
            (_, Some(told)) if news.is_some() && self.total.is_some() => told + LITTLE,
            // A tool that gives no numbers is counted by what it says.
            (None, told) if news.is_some() => told.unwrap_or(0.0) + 1.0,
            _ => return,
        };
        self.progress = Some(progress);
        self.total = number("total").or(self.total);
        let mut notice = ProgressNotificationParam::new(token.clone(), progress);
        if let Some(total) = self.total {
            notice = notice.with_total(total);
        }
        if let Some(tip) = &status.tip {
            notice = notice.with_message(tip.clone());
        }
        // A client that is gone has dropped the call, too.
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

/// How bad it is; the levels are declared from the mildest on.
fn rank(level: LoggingLevel) -> u8 {
    level as u8
}
