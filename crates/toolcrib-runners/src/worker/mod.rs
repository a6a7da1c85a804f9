//! Runs a declared worker as a tool: a program that keeps running answers one JSON line for each call, and may say
//! before how far it is.

mod content;
mod protocol;
mod question;
mod running;
mod supervisor;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use toolcrib_manifest::declaration::Declaration;
use toolcrib_tool::{
    Arguments, BoxFuture, CallContext, CommandPlan, Content, Data, ErrorKind, Plan, Tool,
    ToolError, ToolOutcome, ToolOutput,
};

use self::protocol::{Answered, WorkerReply};
use self::running::WorkerExit;
use self::supervisor::WorkerSupervisor;
use crate::command::explain::{ConfinedRun, explain};
use crate::confinement::planned_limits;
use crate::expansion::context;
use crate::expansion::context::ContextChecks;
use crate::output::live::LiveOutput;
use crate::output::redact_patterns::{CallRedaction, Redaction};
use crate::output::streams::shown;
use crate::trust::TrustRenewal;
use crate::{DecidingFiles, RunnerHost};

/// What a worker must do, for one that has never written a line of the protocol.
const NEVER_ANSWERED: &str = "This worker has never answered: it must read one line from standard input for each call, without waiting \
     for its end, and write one JSON line with the call's `id` to standard output, such as `{\"id\": 1, \"output\": \"…\"}`, \
     and flush it.";

/// Sends the calls of a declaration to its own worker.
///
/// The program starts with the first call, in its own session. It is ended, with everything it started, when it has
/// been idle, has answered its maximum of calls, misbehaves, or the tool is [closed](Tool::close). When a worker ends,
/// its calls fail with the reason, and the next call starts another. After a worker that ended before it wrote a
/// valid line, the next start waits for 100 ms, doubled each further time, up to 30 s.
///
/// Panics outside a tokio runtime with I/O and time enabled.
#[derive(Debug)]
pub struct WorkerRunner {
    declaration: Declaration,
    host: RunnerHost,
    supervisor: Option<Arc<WorkerSupervisor>>,
    /// The compiled declaration, or why it cannot be compiled.
    compiled: Result<CompiledWorker, String>,
}

#[derive(Debug)]
struct CompiledWorker {
    checks: ContextChecks,
    redaction: Redaction,
}

impl WorkerRunner {
    /// A runner for the declaration's worker. If the tool has none, every call fails.
    pub fn new(declaration: &Declaration, host: &RunnerHost) -> Self {
        let compile = || {
            Ok(CompiledWorker {
                checks: ContextChecks::new(&declaration.context)?,
                redaction: Redaction::new(&declaration.output.redact)?,
            })
        };
        let worker = declaration.worker();
        Self {
            declaration: declaration.clone(),
            host: host.clone(),
            supervisor: worker.map(|worker| {
                let deciding = DecidingFiles::of_tool(declaration, host);
                let sandbox = declaration.sandbox.clone();
                let renewal = TrustRenewal::of_tool(declaration, host);
                Arc::new(WorkerSupervisor::new(
                    worker.clone(),
                    sandbox,
                    host.clone(),
                    deciding,
                    renewal,
                ))
            }),
            compiled: compile(),
        }
    }

    /// Why no call can succeed: an invalid pattern or schema in the declaration.
    pub(crate) fn defect(&self) -> Option<&str> {
        self.compiled.as_ref().err().map(String::as_str)
    }

    async fn run(&self, arguments: Arguments, cx: &CallContext) -> Result<ToolOutcome, ToolError> {
        let CompiledWorker { checks, redaction } =
            self.compiled.as_ref().map_err(|defect| ToolError::unavailable(defect.as_str()))?;
        let Some(supervisor) = &self.supervisor else {
            return Err(ToolError::unavailable("no worker answers this tool"));
        };
        checks.check(cx)?;
        let (id, mut exchange) = supervisor.begin(cx.byte_masks()).await?;
        let tool = self.declaration.definition.name();
        let answered = Answered::of(cx);
        let line = protocol::call(id, tool, arguments.as_str(), &self.context(cx), answered);
        let live_output = LiveOutput::of_worker(cx, redaction);
        let redaction = CallRedaction { patterns: redaction, cx };
        if let Some(shown) = &live_output {
            exchange.watch(shown.worker_tap(cx));
        }
        let ended = async {
            tokio::select! {
                biased;
                answer = exchange.run(&line) => Some(answer),
                () = cx.cancelled() => None,
            }
        };
        let answer = match live_output {
            Some(shown) => shown.run_and_show(cx, ended).await,
            None => ended.await,
        };
        match answer {
            Some(Ok(WorkerReply::Success { output, content, data })) => {
                let result = success(output, content, data, redaction);
                Ok(ToolOutcome::Done(result.with_meta("sandbox", exchange.sandbox().clone())))
            }
            Some(Ok(WorkerReply::Question(request))) => {
                Ok(ToolOutcome::needs_input(question::shown(*request, redaction)))
            }
            Some(Ok(WorkerReply::Failure { message, retryable })) => {
                let message = redaction.shown(message);
                let hint = if retryable {
                    "The same call may succeed a little later."
                } else {
                    "If the message is about an argument, correct it; otherwise tell the user. The same \
                     call is likely to fail again."
                };
                Err(ToolError::execution(message).with_retryable(retryable).with_hint(hint))
            }
            Some(Err(gone)) => {
                let error = self.failed(&gone, redaction);
                let never = exchange.worker_has_never_answered();
                Err(if never { error.with_hint(NEVER_ANSWERED) } else { error })
            }
            None => {
                let never = exchange.worker_has_never_answered();
                exchange.cancel().await;
                let late = cx.deadline().is_some_and(|deadline| Instant::now() >= deadline);
                let kind = if late { ErrorKind::Timeout } else { ErrorKind::Cancelled };
                let error = ToolError::new(kind, "the worker did not answer in time");
                // The host shows the hint with its own message about the time limit.
                Err(if late && never { error.with_hint(NEVER_ANSWERED) } else { error })
            }
        }
    }

    /// What a call would do: the worker, and the length of the line that it is sent.
    fn planned(&self, arguments: &Arguments, cx: &CallContext) -> Result<Option<Plan>, ToolError> {
        let CompiledWorker { checks, .. } =
            self.compiled.as_ref().map_err(|defect| ToolError::unavailable(defect.as_str()))?;
        checks.check(cx)?;
        let Some(worker) = self.declaration.worker() else { return Ok(None) };
        let tool = self.declaration.definition.name();
        let context = self.context(cx);
        let line = protocol::call(1, tool, arguments.as_str(), &context, Answered::of(cx));
        let folder = std::path::absolute(&worker.folder).unwrap_or_else(|_| worker.folder.clone());
        Ok(Some(Plan::Command(CommandPlan {
            argv: worker.argv.clone(),
            env: worker.env.keys().cloned().collect(),
            pass_env: worker.pass_env.clone(),
            stdin_bytes: line.len(),
            stdin_arguments: false,
            cwd: folder.to_string_lossy().into_owned(),
            output_bytes: worker.line_bytes,
            sandbox: self.declaration.sandbox.profile.as_str().to_owned(),
            limits: planned_limits(&self.declaration.sandbox, &self.host),
            worker: true,
        })))
    }

    /// The error for a call whose worker has ended, with the worker's last output.
    fn failed(&self, gone: &WorkerExit, redaction: CallRedaction<'_>) -> ToolError {
        let worker = self.declaration.worker();
        let own_home = worker.is_some_and(|worker| {
            worker.env.contains_key("HOME") || worker.pass_env.iter().any(|name| name == "HOME")
        });
        let sandbox = &self.declaration.sandbox;
        let host = &self.host;
        let confined = ConfinedRun { sandbox, host, program: "", exit: None, own_home };
        let stderr = shown(&gone.stderr, redaction.patterns);
        let error = failed(gone, &stderr, redaction);
        match explain(confined, &stderr) {
            Some(lacked) => error.with_hint(lacked),
            None => error,
        }
    }

    /// The declared context values, by the declaration's names.
    fn context(&self, cx: &CallContext) -> Map<String, Value> {
        let parameters = &self.declaration.context;
        let value = |name: &str| context::value(parameters, cx, name).map(Cow::into_owned);
        let named = parameters.iter().map(|parameter| parameter.name.as_str());
        named.filter_map(|name| Some((name.to_owned(), value(name)?))).collect()
    }
}

fn success(
    output: Option<String>,
    content: Vec<Content>,
    data: Option<Data>,
    redaction: CallRedaction<'_>,
) -> ToolOutput {
    let parts = output.map(Content::Text).into_iter().chain(content);
    let mut result = parts.fold(ToolOutput::new(), |result, part| {
        result.with_content(content::shown(part, redaction))
    });
    if let Some(data) = data {
        let data = redaction.data(data);
        // Shown escaped where the raw data would control a terminal.
        if result.content().is_empty()
            && let Some(escaped) = redaction.escaped_json(&data)
        {
            result = result.with_content(escaped);
        }
        result = result.with_exact_data(data);
    }
    result
}

/// The error for a call whose worker has ended.
fn failed(gone: &WorkerExit, stderr: &str, redaction: CallRedaction<'_>) -> ToolError {
    let error = ToolError::execution(format!(
        "the worker {}",
        redaction.shown(gone.reason.clone())
    ))
    .with_hint(
        "The next call starts the worker anew. If that fails in the same way, use other arguments or tell \
         the user.",
    );
    if stderr.is_empty() {
        error
    } else {
        error.with_partial(ToolOutput::from(format!("[stderr]\n{stderr}")))
    }
}

impl Tool for WorkerRunner {
    fn call<'a>(
        &'a self,
        arguments: Arguments,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        Box::pin(self.run(arguments, cx))
    }

    fn validates(&self) -> bool {
        false
    }

    fn plan(&self, arguments: &Arguments, cx: &CallContext) -> Result<Option<Plan>, ToolError> {
        self.planned(arguments, cx)
    }

    fn code(&self) -> Option<String> {
        self.supervisor.as_ref().map(|supervisor| supervisor.code())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        if let Some(supervisor) = &self.supervisor {
            supervisor.close();
        }
        Box::pin(std::future::ready(()))
    }

    fn wind_down(&self) -> Duration {
        running::CANCEL_WAIT + Duration::from_millis(100)
    }
}
