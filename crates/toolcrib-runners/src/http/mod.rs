//! A declared request as a tool.

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

use self::answer::Hidden;
use crate::expansion::context::ContextChecks;
use crate::expansion::values::Values;
use crate::host::LookedAt;
use crate::output::redact::Redaction;
use crate::{RunnerHost, ServerValues};

pub use request::{HttpHeader, HttpRequest};

/// Sends the request of a declaration, once per try of a call, and makes a result of the answer.
///
/// Where it may go is decided when the connection is made, by [`toolcrib_net`]. Failures after which
/// the same call may succeed later say so ([`retryable`](ToolError::retryable)): 429, 503 of tools
/// that are idempotent, and what kept the request from being sent at all.
///
/// Where the host lends a [`RecordedAnswer`], nothing is sent, and that is the answer.
#[derive(Debug)]
pub struct HttpRunner {
    declaration: Declaration,
    host: RunnerHost,
    /// What is compiled from the declaration, or what is wrong with it.
    compiled: Result<Compiled, String>,
}

#[derive(Debug)]
struct Compiled {
    spec: HttpSpec,
    checks: ContextChecks,
    redaction: Redaction,
    client: Client,
}

impl HttpRunner {
    /// A runner of the declaration's request. Of a tool that sends none, every call fails.
    pub fn new(declaration: &Declaration, host: &RunnerHost) -> Self {
        let compile = || {
            let spec = declaration.http().ok_or("this tool sends no request")?;
            Ok(Compiled {
                spec: spec.clone(),
                checks: ContextChecks::new(&declaration.context)?,
                redaction: Redaction::new(&declaration.output.redact)?,
                client: client(declaration, spec),
            })
        };
        Self { declaration: declaration.clone(), host: host.clone(), compiled: compile() }
    }

    /// Why no call can succeed: a pattern or a schema of the declaration that is none. A loader
    /// finds these earlier.
    pub(crate) fn defect(&self) -> Option<&str> {
        self.compiled.as_ref().err().map(String::as_str)
    }

    /// What a call with these arguments would send, the host's values checked; sends nothing.
    ///
    /// Fails with kind
    /// - `invalid_args` if a value cannot stand where it is put: a segment `..` or none in the path, a
    ///   control character, a line end in a header;
    /// - `missing_context` or `unavailable` if a value of the host or the server is not there;
    /// - `denied` if a value of the host has a form that an argument may not have either.
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
        let values = Values { declaration: &self.declaration, arguments, cx, server };
        request::build(&compiled.spec, &self.declaration.output, values)
    }

    fn compiled(&self) -> Result<&Compiled, ToolError> {
        self.compiled.as_ref().map_err(|defect| ToolError::unavailable(defect.as_str()))
    }

    async fn run(&self, arguments: Arguments, cx: &CallContext) -> Result<ToolOutcome, ToolError> {
        // Asked of the host itself: a recording takes the place of the server, and whether there is one
        // says nothing about how long an answer holds.
        let recorded = cx.host().services().and_then(Services::get::<RecordedAnswer>);
        if let Some(recorded) = recorded {
            // As for a plan: what is not sent needs no secret.
            let request = self.request_of(&LookedAt(&self.host), &arguments, cx)?;
            return self.outcome(&request.answered(&recorded)?, cx);
        }
        let request = self.request(&arguments, cx)?;
        let compiled = self.compiled()?;
        let annotations = self.declaration.definition.annotations();
        let mut sent = request.to_net()?;
        // A redirect that the author expects is the answer itself.
        for status in compiled.spec.ok_status.iter().copied() {
            if let Ok(status) = StatusCode::from_u16(status) {
                sent = sent.keep(status);
            }
        }
        let response = compiled
            .client
            .send(sent)
            .await
            .map_err(|error| failure::unanswered(error, &compiled.spec, annotations))?;
        self.outcome(&response, cx)
    }

    fn outcome(&self, response: &Response, cx: &CallContext) -> Result<ToolOutcome, ToolError> {
        let compiled = self.compiled()?;
        answer::outcome(
            response,
            &compiled.spec,
            &self.declaration.output,
            &Hidden { redaction: &compiled.redaction, masks: cx.byte_masks() },
            self.declaration.definition.annotations(),
        )
        .map(ToolOutcome::Done)
    }
}

/// A client with the limits and the addresses of a declaration. Nobody else uses its connections.
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
        // A call that is cancelled or out of time is dropped, and its connection with it.
        Box::pin(self.run(arguments, cx))
    }

    fn validates(&self) -> bool {
        false
    }

    fn plan(&self, arguments: &Arguments, cx: &CallContext) -> Result<Option<Plan>, ToolError> {
        let request = self.request_of(&LookedAt(&self.host), arguments, cx)?;
        Ok(Some(Plan::Request(RequestPlan {
            method: request.method.as_str().to_owned(),
            url: request.shown_url,
            headers: request.headers.into_iter().map(|header| header.name).collect(),
            body: request.body,
        })))
    }
}
