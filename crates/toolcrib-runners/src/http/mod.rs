//! Runs a declared HTTP request as a tool.

mod answer;
mod failure;
mod request;
mod url;
mod values;

use toolcrib_manifest::declaration::{Declaration, HttpSpec, RecordedAnswer};
use toolcrib_net::{AddressPolicy, Client, Limits, Response, StatusCode};
use toolcrib_tool::{
    Arguments, BoxFuture, CallContext, Plan, RequestPlan, Services, Tool, ToolError, ToolOutcome,
};

use self::answer::ResponseMasking;
use crate::expansion::context::ContextChecks;
use crate::expansion::values::CallValues;
use crate::host::PlanningHost;
use crate::output::redact_patterns::Redaction;
use crate::{RunnerHost, ServerValues};

pub use request::{HttpHeader, HttpRequest};

/// Sends the request of a declaration once for each attempt of a call, and turns the response into a result.
///
/// [`toolcrib_net`] decides when it connects which addresses are allowed. A failure after which the same call may
/// succeed later is [`retryable`](ToolError::retryable): 429, 503 for idempotent tools, and failures before the request
/// was sent.
///
/// If the host supplies a [`RecordedAnswer`], it is used as the response, and nothing is sent.
#[derive(Debug)]
pub struct HttpRunner {
    declaration: Declaration,
    host: RunnerHost,
    /// The compiled declaration, or why it cannot be compiled.
    compiled: Result<CompiledRequest, String>,
}

#[derive(Debug)]
struct CompiledRequest {
    spec: HttpSpec,
    checks: ContextChecks,
    redaction: Redaction,
    client: Client,
}

impl HttpRunner {
    /// A runner for the declaration's request. If the tool sends no request, every call fails.
    pub fn new(declaration: &Declaration, host: &RunnerHost) -> Self {
        let compile = || {
            let spec = declaration.http().ok_or("this tool sends no request")?;
            Ok(CompiledRequest {
                spec: spec.clone(),
                checks: ContextChecks::new(&declaration.context)?,
                redaction: Redaction::new(&declaration.output.redact)?,
                client: client(declaration, spec),
            })
        };
        Self { declaration: declaration.clone(), host: host.clone(), compiled: compile() }
    }

    /// Why no call can succeed: an invalid pattern or schema in the declaration. A loader finds these earlier.
    pub(crate) fn defect(&self) -> Option<&str> {
        self.compiled.as_ref().err().map(String::as_str)
    }

    /// What a call with these arguments would send, after checking the host's values; sends nothing.
    ///
    /// Fails with kind
    /// - `invalid_args` if a value is not allowed at its position: `..` or an empty segment in the path, a control
    ///   character, a line end in a header;
    /// - `missing_context` or `unavailable` if a value of the host or the server is missing;
    /// - `denied` if a value of the host breaks the rules for arguments.
    pub fn request(
        &self,
        arguments: &Arguments,
        cx: &CallContext,
    ) -> Result<HttpRequest, ToolError> {
        self.request_of(&self.host, arguments, cx)
    }

    fn request_of(
        &self,
        server: &dyn ServerValues,
        arguments: &Arguments,
        cx: &CallContext,
    ) -> Result<HttpRequest, ToolError> {
        let compiled = self.compiled()?;
        compiled.checks.check(cx)?;
        let arguments = arguments.tape()?.root();
        let values = CallValues { declaration: &self.declaration, arguments, cx, server };
        request::build(&compiled.spec, &self.declaration.output, values)
    }

    fn compiled(&self) -> Result<&CompiledRequest, ToolError> {
        self.compiled.as_ref().map_err(|defect| ToolError::unavailable(defect.as_str()))
    }

    async fn run(&self, arguments: Arguments, cx: &CallContext) -> Result<ToolOutcome, ToolError> {
        // Read from the host directly, without marking the call as dependent on it: a recording replaces the server,
        // and its presence says nothing about how long the result may be cached.
        let recorded = cx.host().services().and_then(Services::get::<RecordedAnswer>);
        if let Some(recorded) = recorded {
            // As for a plan: a request that is not sent needs no secrets.
            let request = self.request_of(&PlanningHost(&self.host), &arguments, cx)?;
            return self.outcome(&request.answered(&recorded)?, cx);
        }
        let request = self.request(&arguments, cx)?;
        let compiled = self.compiled()?;
        let annotations = self.declaration.definition.annotations();
        let mut sent = request.to_net()?;
        // An expected redirect is itself the response.
        for status in compiled.spec.ok_status.iter().copied() {
            if let Ok(status) = StatusCode::from_u16(status) {
                sent = sent.keep(status);
            }
        }
        let response = compiled
            .client
            .send(sent)
            .await
            .map_err(|error| failure::without_response(error, &compiled.spec, annotations))?;
        self.outcome(&response, cx)
    }

    fn outcome(&self, response: &Response, cx: &CallContext) -> Result<ToolOutcome, ToolError> {
        let compiled = self.compiled()?;
        answer::outcome(
            response,
            &compiled.spec,
            &self.declaration.output,
            &ResponseMasking { redaction: &compiled.redaction, masks: cx.byte_masks() },
            self.declaration.definition.annotations(),
        )
        .map(ToolOutcome::Done)
    }
}

/// A client with the limits and allowed addresses of a declaration. Its connections are not shared.
fn client(declaration: &Declaration, spec: &HttpSpec) -> Client {
    let mut limits = Limits::default();
    limits.total = declaration.definition.timeout().unwrap_or(limits.total);
    limits.connect = limits.connect.min(limits.total);
    limits.bytes = spec.transfer_bytes;
    let ranges = spec.allow_private.iter();
    let policy = ranges.fold(AddressPolicy::public(), |policy, range| policy.allow(*range));
    Client::builder().addresses(policy).limits(limits).build()
}

impl Tool for HttpRunner {
    fn call<'a>(
        &'a self,
        arguments: Arguments,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        // When a call is cancelled or times out, its future is dropped, and the connection with it.
        Box::pin(self.run(arguments, cx))
    }

    fn validates(&self) -> bool {
        false
    }

    fn plan(&self, arguments: &Arguments, cx: &CallContext) -> Result<Option<Plan>, ToolError> {
        let request = self.request_of(&PlanningHost(&self.host), arguments, cx)?;
        Ok(Some(Plan::Request(RequestPlan {
            method: request.method.as_str().to_owned(),
            url: request.shown_url,
            headers: request.headers.into_iter().map(|header| header.name).collect(),
            body: request.body,
        })))
    }
}
