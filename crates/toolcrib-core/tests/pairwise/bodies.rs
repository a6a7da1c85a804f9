//! The tools of a row: the one that is called, and those around it.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;
use toolcrib_tool::{
    Arguments, BoxFuture, CallContext, ErrorKind, InputRequest, IntoOutcome, StatusUpdate, Tool,
    ToolCall, ToolError, ToolFactory, ToolOutcome, ToolOutput,
};

use crate::factors::{Body, Ending, Looks, Output, Row, Secret, WindDown};
use crate::witness::{ObservedCall, Running, Seen, Witness};

/// The secret, which must never be shown.
pub(crate) const SECRET: &str = "hunter2-0123456789-swordfish";

/// How long the work takes, in milliseconds.
pub(crate) const WORK: u64 = 400;

/// How long a call that only occupies a slot takes.
pub(crate) const HOLD: u64 = 800;

/// How long a factory takes.
pub(crate) const MAKE: u64 = 700;

/// The time limit of the tool.
pub(crate) const LIMIT: u64 = 1_000;

/// How long a client may take to run its tool. The time starts when the call begins to wait for the
/// client, which may learn of it a second later from another server, or after the rest of the
/// batch.
pub(crate) const CLIENT_LIMIT: u64 = 10_000;

/// How long the tool may take to wind down.
pub(crate) const WIND_DOWN: u64 = 500;

/// The retry hint of a tool that fails.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(7);

/// The maximum number of characters that the tool may return.
pub(crate) const BUDGET: usize = 400;

/// The length of a long text, in characters.
const LONG: usize = 20_000;

/// The tool that is called.
pub(crate) struct Subject {
    pub(crate) witness: Arc<Witness>,
    pub(crate) row: Row,
    pub(crate) version: u32,
    /// Whether the instance was made for one call.
    pub(crate) is_own: bool,
}

impl Tool for Subject {
    fn call<'a>(
        &'a self,
        arguments: Arguments,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        Box::pin(async move {
            let call = cx.call_id().as_str();
            let observed = ObservedCall {
                version: self.version,
                arguments: arguments.as_str().to_owned(),
                project: text_of(cx.injected("project")),
                user: text_of(cx.value("user")).unwrap_or_default(),
            };
            let is_blocking = self.row.body == Body::Blocking;
            let running = self.witness.begin("subject", call, observed, is_blocking);
            match arguments.value()["mode"].as_str() {
                Some("quick") => "warm".into_outcome(),
                Some("hold") => {
                    self.spend(&running, HOLD, cx).await;
                    "held".into_outcome()
                }
                Some("hang") => {
                    self.spend(&running, u64::MAX, cx).await;
                    Err(ToolError::execution("it was ended"))
                }
                _ => self.work(&running, cx).await,
            }
        })
    }

    fn validates(&self) -> bool {
        false
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        if self.is_own {
            self.witness.see(Seen::Closed);
        }
        Box::pin(std::future::ready(()))
    }

    fn wind_down(&self) -> Duration {
        match self.row.wind_down {
            WindDown::Nothing => Duration::ZERO,
            WindDown::Some => Duration::from_millis(WIND_DOWN),
        }
    }
}

fn text_of(value: Option<&Value>) -> Option<String> {
    value.and_then(Value::as_str).map(str::to_owned)
}

impl Subject {
    /// Spends time as the body does. Returns whether the time was up, as opposed to a cancellation.
    async fn spend(&self, running: &Running<'_>, millis: u64, cx: &CallContext) -> bool {
        match self.row.body {
            Body::Blocking => running.block(millis, || cx.is_cancelled()),
            Body::Ready if millis == WORK => true,
            _ => {
                let work = sleep(Duration::from_millis(millis.min(1 << 40)));
                tokio::select! {
                    () = work => true,
                    () = cx.cancelled(), if self.row.wind_down == WindDown::Some => false,
                }
            }
        }
    }

    /// Reports progress to clients that watch the call. A secret spans two parts.
    async fn report(&self, cx: &CallContext) {
        let secret = if self.row.secret == Secret::Nowhere { "nothing" } else { SECRET };
        cx.status(StatusUpdate::doing().with_tip(format!("found {secret}")));
        let (begin, end) = secret.split_at(secret.len() / 2);
        cx.stream(format!("[read {begin}")).await;
        cx.stream(format!("{end}]")).await;
    }

    async fn work(
        &self,
        running: &Running<'_>,
        cx: &CallContext,
    ) -> Result<ToolOutcome, ToolError> {
        self.report(cx).await;
        let millis = if self.row.ending == Ending::Hangs { u64::MAX } else { WORK };
        if !self.spend(running, millis, cx).await {
            return Err(self.wind(running, cx).await);
        }
        if self.row.reaches_out() {
            running.leave_clock();
            let id = format!("{}.charge", cx.call_id().as_str());
            cx.call(ToolCall::new(id, "charge", "{}")).await;
        }
        let is_first = self.witness.runs_of(cx.call_id().as_str()) == 1;
        let text = self.text(cx);
        match self.row.ending {
            Ending::Fails => Err(ToolError::execution(text).with_retry_after(RETRY_AFTER)),
            Ending::Recovers if is_first => Err(ToolError::execution(text).with_retryable(true)),
            Ending::LeavesHalf if is_first => {
                cx.set_result("half of it");
                Err(ToolError::execution(text).with_retryable(true))
            }
            Ending::LeavesHalf => Ok(ToolOutput::new().into()),
            // Unlike `panic!`, this prints no message.
            Ending::Panics => resume_unwind(Box::new(text)),
            Ending::Asks | Ending::AsksInVain if cx.answer().is_none() => {
                let question = InputRequest::new("How many?", json!({"type": "integer"}));
                Ok(ToolOutcome::needs_input(question))
            }
            _ => Ok(self.output(text).into()),
        }
    }

    /// Ends a cancelled body, and then tries to call another tool from it.
    async fn wind(&self, running: &Running<'_>, cx: &CallContext) -> ToolError {
        if self.row.body == Body::Blocking {
            running.block(20, || false);
        } else {
            sleep(Duration::from_millis(20)).await;
        }
        self.witness.see(Seen::WoundDown { run: running.run });
        running.leave_clock();
        let id = format!("{}.charge", cx.call_id().as_str());
        cx.call(ToolCall::new(id, "charge", "{}")).await;
        self.report(cx).await;
        ToolError::new(ErrorKind::Cancelled, "it was wound down")
    }

    fn text(&self, cx: &CallContext) -> String {
        let value = |name, value: Option<&str>| format!("{name}={} ", value.unwrap_or("-"));
        let mut text = format!("version={} ", self.version);
        text += &value("user", cx.value("user").and_then(Value::as_str));
        text += &value("project", cx.injected("project").and_then(Value::as_str));
        if self.row.looks == Looks::Session {
            text += &value("session", cx.session());
        }
        fill(&mut text, &self.row);
        text
    }

    fn output(&self, text: String) -> ToolOutput {
        let output = ToolOutput::from(text);
        match self.row.output {
            Output::LargeData => output.with_data(json!({"rows": "y".repeat(10_000)})),
            _ => output,
        }
    }
}

/// Adds the secret, and the filler of a long text.
pub(crate) fn fill(text: &mut String, row: &Row) {
    match row.secret {
        Secret::Nowhere => {}
        Secret::Inside => *text += SECRET,
        // The first 70 % of the budget are kept: the secret crosses that boundary.
        Secret::AtCut => {
            let begin = BUDGET * 7 / 10 - SECRET.len() / 2;
            while text.len() < begin {
                text.push('x');
            }
            *text += SECRET;
        }
    }
    if row.output == Output::Long {
        text.push_str(&"x".repeat(LONG - text.len()));
    }
}

/// Creates an instance per call, slowly.
pub(crate) struct Maker {
    pub(crate) witness: Arc<Witness>,
    pub(crate) row: Row,
    pub(crate) version: u32,
}

impl ToolFactory for Maker {
    fn create<'a>(&'a self, _: &'a CallContext) -> BoxFuture<'a, Result<Arc<dyn Tool>, ToolError>> {
        Box::pin(async move {
            sleep(Duration::from_millis(MAKE)).await;
            self.witness.see(Seen::Made);
            let (witness, row, version) = (Arc::clone(&self.witness), self.row, self.version);
            Ok(Arc::new(Subject { witness, row, version, is_own: true }) as Arc<dyn Tool>)
        })
    }
}

/// Runs at the same time as the tool in a batch.
pub(crate) struct Neighbor(pub(crate) Arc<Witness>);

impl Tool for Neighbor {
    fn call<'a>(
        &'a self,
        arguments: Arguments,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        Box::pin(async move {
            let observed = ObservedCall {
                version: 1,
                arguments: arguments.as_str().to_owned(),
                project: None,
                user: text_of(cx.value("user")).unwrap_or_default(),
            };
            let running = self.0.begin("neighbor", cx.call_id().as_str(), observed, false);
            sleep(Duration::from_millis(150)).await;
            drop(running);
            "near".into_outcome()
        })
    }
}
