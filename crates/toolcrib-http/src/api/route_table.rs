//! The list of all endpoints: only these are served, and all of them are documented.

use axum::http::StatusCode;
use axum::routing::{delete, get, post};
use schemars::{Schema, SchemaGenerator, json_schema};
use toolcrib_core::run::RunState;

use super::{
    EVENTS, agent_runs, approvals, calls, events, health, operations, responses, result, run_body,
    runs, tools,
};
use crate::api::endpoint::{Endpoint, schema_of};
use crate::api::reports;
use crate::auth::right::Access::{Open, With, WithOneOf};
use crate::observability::metrics;
use crate::serving::mcp;
use crate::{AgentRunReport, Right};

const OK: StatusCode = StatusCode::OK;
const WAITS: StatusCode = StatusCode::ACCEPTED;

const KEY_HELP: &str = "The same key with the same request gets the same answer for a day: nothing runs \
                        twice. A request with a key goes on if its client leaves.";

/// The maximum number of tools on a page.
pub(crate) const PAGE_MAX: usize = 100_000;

fn page(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "minimum": 1, "maximum": PAGE_MAX})
}

fn thousand(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "minimum": 1, "maximum": 1_000})
}

fn hundred(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "minimum": 1, "maximum": 100})
}

fn row(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "minimum": 1, "maximum": agent_runs::ROW_MAX})
}

fn cursor(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "pattern": "^[0-9]{1,15}-[0-9a-f]{32}$"})
}

fn words(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "pattern": "\\S"})
}

fn key(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "pattern": "^[!-~]{1,256}$"})
}

fn state(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": RunState::ALL.map(RunState::as_str)})
}

fn item(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "pattern": "^[0-9]{1,18}-[0-9]{1,9}$"})
}

fn switch(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "boolean"})
}

fn number(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "minimum": 0})
}

fn order(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": ["asc", "desc"]})
}

fn anything(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object"})
}

/// All endpoints.
pub(crate) fn endpoints() -> Vec<Endpoint> {
    let mut all = server_endpoints();
    all.extend(mcp_endpoints());
    all.extend(tool_endpoints());
    all.extend(run_endpoints());
    all.extend(agent_run_endpoints());
    all.extend(response_endpoints());
    #[cfg(feature = "websocket")]
    all.push(socket_endpoint());
    all.extend(conversation_endpoints());
    all.extend(approval_endpoints());
    all.extend(operator_endpoints());
    all
}

/// The server itself, and MCP.
fn server_endpoints() -> Vec<Endpoint> {
    let observe = With(Right::Observe);
    vec![
        Endpoint::new("get", "/health", "health", Open, get(health::health))
            .summary("Health of the server, in numbers")
            .answers::<health::HealthBody>(OK, "The server is alive."),
        Endpoint::new("get", "/ready", "ready", Open, get(health::ready))
            .summary("Whether the server accepts calls")
            .answers::<health::HealthBody>(OK, "The server accepts calls.")
            .answers::<health::HealthBody>(
                StatusCode::SERVICE_UNAVAILABLE,
                "The server is stopping and accepts no more calls.",
            ),
        Endpoint::new("get", "/openapi.json", "openapi", Open, get(operations::openapi))
            .summary("This document")
            .answers_as(OK, "application/json", "OpenAPI 3.1.", Some(anything)),
        Endpoint::new("get", "/metrics", "metrics", observe, get(metrics::metrics))
            .summary("Metrics for Prometheus")
            .answers_as(OK, metrics::MEDIA_TYPE, "The text format of Prometheus.", None),
    ]
}

/// MCP over all tools, and over one toolset.
fn mcp_endpoints() -> Vec<Endpoint> {
    const TOOLSET: &str = "A name of `toolsets` in the server's config.";
    let call = With(Right::Call);
    let message = |endpoint: Endpoint| {
        endpoint
            .answers_as(OK, "application/json", "A JSON-RPC answer.", Some(anything))
            .answers_as(OK, EVENTS, "A JSON-RPC answer.", None)
            .answers_without_body(WAITS, "A notification or a response was accepted.")
            .takes::<mcp::Message>()
            .example(r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}"#)
            .problems([404, 405, 406])
            .json_rpc()
    };
    let stream = |endpoint: Endpoint| {
        endpoint
            .answers_as(OK, EVENTS, "Messages of JSON-RPC.", None)
            .problems([404, 405, 406, 409])
            .json_rpc()
    };
    let end = |endpoint: Endpoint| {
        endpoint
            .answers_without_body(StatusCode::NO_CONTENT, "The session has ended.")
            .problems([404, 405])
            .json_rpc()
    };
    let within = "/mcp/{toolset}";
    vec![
        message(Endpoint::new("post", "/mcp", "mcp", call, post(mcp::serve)))
            .summary("An MCP message over streamable HTTP"),
        stream(Endpoint::new("get", "/mcp", "mcpStream", call, get(mcp::serve)))
            .summary("Notifications and requests of the server in an MCP session"),
        end(Endpoint::new("delete", "/mcp", "mcpEnd", call, delete(mcp::serve)))
            .summary("End an MCP session"),
        message(Endpoint::new("post", within, "mcpWithin", call, post(mcp::serve_within)))
            .summary("An MCP message, limited to the tools of one toolset")
            .path_parameter("toolset", TOOLSET),
        stream(Endpoint::new("get", within, "mcpWithinStream", call, get(mcp::serve_within)))
            .summary("Notifications and requests of the server in a session with one toolset")
            .path_parameter("toolset", TOOLSET),
        end(Endpoint::new("delete", within, "mcpWithinEnd", call, delete(mcp::serve_within)))
            .summary("End an MCP session with one toolset")
            .path_parameter("toolset", TOOLSET),
    ]
}

/// Tools and their calls.
fn tool_endpoints() -> Vec<Endpoint> {
    let call = With(Right::Call);
    vec![
        Endpoint::new("get", "/v1/tools", "listTools", call, get(tools::list))
            .summary("The tools, sorted by name")
            .query(
                "after",
                "Start after this name: `next` of the previous page.",
                schema_of::<String>,
            )
            .query("limit", "The maximum number of tools. Default: all.", page)
            .answers::<tools::ToolList>(OK, "The tools."),
        Endpoint::new("get", "/v1/prompt", "promptText", call, get(tools::prompt))
            .summary("The tools as a prompt for models without tool support")
            .query("notes", "Whether to note which tools often fail. Default: false.", switch)
            .answers_as(OK, tools::PROMPT_MEDIA_TYPE, "The text; empty if there are no tools.", None),
        Endpoint::new("get", "/v1/tools/{name}", "describeTool", call, get(tools::describe))
            .summary("One tool")
            .path_parameter("name", "The tool's name.")
            .answers::<tools::Described>(OK, "The tool."),
        Endpoint::new("get", "/v1/search", "searchTools", call, get(tools::search))
            .summary("Tools that match a query, best match first")
            .query("q", "What the tool is for.", words)
            .required()
            .query("limit", "The maximum number of tools. Default 10.", thousand)
            .answers::<tools::SearchResult>(OK, "The matching tools."),
        Endpoint::new("post", "/v1/tools/{name}/call", "callTool", call, post(calls::call))
            .summary("Call a tool")
            .path_parameter("name", "The tool's name.")
            .header("Idempotency-Key", KEY_HELP, key)
            .problems([409])
            .takes::<calls::CallRequest>()
            .body_optional()
            .example(r#"{"arguments": {"expression": "6 * 7"}}"#)
            .problems([424, 504])
            .answers::<result::CallResult>(OK, "The call has succeeded.")
            .answers_as(
                OK,
                EVENTS,
                "Its events as they occur; the last one, `result` or `problem`, contains the answer.",
                None,
            )
            .answers::<run_body::RunBody>(WAITS, "The call is suspended and stored as a run."),
        Endpoint::new("post", "/v1/batch", "callTools", call, post(calls::batch))
            .summary("Call several tools at once")
            .header("Idempotency-Key", KEY_HELP, key)
            .problems([409])
            .takes::<calls::BatchRequest>()
            .example(r#"{"calls": [{"tool": "calculator", "arguments": {"expression": "6 * 7"}}]}"#)
            .answers::<calls::BatchResult>(
                OK,
                "One answer per call, in their order, including failed calls.",
            )
            .answers_as(
                OK,
                EVENTS,
                "Their events, one call after another; the last one, `result`, contains the answers.",
                None,
            )
            .answers::<run_body::RunBody>(WAITS, "Some calls are suspended; all are stored as a run."),
    ]
}

/// Runs.
fn run_endpoints() -> Vec<Endpoint> {
    let call = With(Right::Call);
    // A client that has both depends on its right to approve for as long as the request runs.
    let resolve = WithOneOf(&[Right::Approve, Right::Call]);
    vec![
        Endpoint::new("post", "/v1/runs", "startRun", call, post(runs::start))
            .summary("Call tools as a stored run, or let an agent work in one")
            .header("Idempotency-Key", KEY_HELP, key)
            .problems([409])
            .takes::<agent_runs::StartRequest>()
            .example(r#"{"calls": [{"tool": "pick_file", "arguments": {}}]}"#)
            .problems([501])
            .answers::<agent_runs::AnyRun>(StatusCode::CREATED, "The run."),
        Endpoint::new("get", "/v1/runs", "listRuns", call, get(agent_runs::list))
            .summary("The runs of this client's identity, oldest first")
            .query("after", "Start after this run: `next` of the previous page.", cursor)
            .query("limit", "The maximum number of runs. Default 20.", hundred)
            .query("status", "Only runs in this state. Default: all.", state)
            .problems([501])
            .answers::<agent_runs::RunList>(OK, "The runs."),
        Endpoint::new("get", "/v1/runs/{id}", "showRun", call, get(runs::show))
            .summary("The state of a run")
            .path_parameter("id", "The run's id.")
            .problems([409, 410, 501])
            .answers::<agent_runs::AnyRun>(OK, "The run."),
        Endpoint::new(
            "post",
            "/v1/runs/{id}/submit_tool_outputs",
            "submitToolOutputs",
            call,
            post(runs::submit),
        )
        .summary("Submit the outputs of all calls that wait for the client")
        .header("Idempotency-Key", KEY_HELP, key)
        .path_parameter("id", "The run's id.")
        .problems([409, 410, 501])
        .takes::<runs::SubmittedOutputs>()
        .example(r#"{"tool_outputs": [{"tool_call_id": "call_1", "output": "notes.txt"}]}"#)
        .answers::<agent_runs::AnyRun>(OK, "The continued run."),
        Endpoint::new("post", "/v1/runs/{id}/resolve", "resolveCall", resolve, post(runs::resolve))
            .summary(
                "Answer a tool's question (right `call`), or decide on a call that waits for approval \
                 (right `approve`)",
            )
            .header("Idempotency-Key", KEY_HELP, key)
            .path_parameter("id", "The run's id.")
            .problems([409, 410, 501])
            .takes::<runs::ResolveRequest>()
            .example(r#"{"id": "0123456789abcdef0123456789abcdef", "decision": "approve"}"#)
            .answers::<agent_runs::AnyRun>(OK, "The continued run."),
        Endpoint::new("post", "/v1/runs/{id}/cancel", "cancelRun", call, post(runs::cancel))
            .summary("Cancel all waiting calls of a run, and the work of an agent")
            .header("Idempotency-Key", KEY_HELP, key)
            .path_parameter("id", "The run's id.")
            .problems([409, 410, 501])
            .answers::<agent_runs::AnyRun>(OK, "The run, which has ended."),
        Endpoint::new("delete", "/v1/runs/{id}", "removeRun", call, delete(runs::remove))
            .summary(
                "Cancel the waiting calls of a run of calls and delete it, or delete the run of an agent \
                 that has ended",
            )
            .path_parameter("id", "The run's id.")
            .problems([409, 410, 501])
            .answers::<agent_runs::AnyRun>(OK, "The deleted run."),
    ]
}

/// What only runs of agents have.
fn agent_run_endpoints() -> Vec<Endpoint> {
    let call = With(Right::Call);
    vec![
        Endpoint::new("post", "/v1/runs/{id}/resume", "resumeRun", call, post(agent_runs::resume))
            .summary("Continue the run of an agent, or say something more to it")
            .header("Idempotency-Key", KEY_HELP, key)
            .path_parameter("id", "The run's id.")
            .problems([409, 410, 501])
            .takes::<agent_runs::ResumeRequest>()
            .body_optional()
            .example(r#"{"input": "And then?", "background": false}"#)
            .answers::<AgentRunReport>(OK, "The run."),
        Endpoint::new("post", "/v1/runs/{id}/steer", "steerRun", call, post(agent_runs::steer))
            .summary("Tell an agent something while it works or waits")
            .header("Idempotency-Key", KEY_HELP, key)
            .path_parameter("id", "The run's id.")
            .problems([409, 410, 501])
            .takes::<agent_runs::SteerRequest>()
            .example(r#"{"input": "In German, please."}"#)
            .answers::<AgentRunReport>(
                OK,
                "The input is stored: the model reads it with its next request. A run at rest is not continued.",
            ),
        Endpoint::new("get", "/v1/runs/{id}/events", "runEvents", call, get(agent_runs::events))
            .summary("The rows of the journal of an agent's run")
            .path_parameter("id", "The run's id.")
            .query("after", "Start after this row. Default: at the beginning.", row)
            .query("limit", "The maximum number of rows. Default 100.", thousand)
            .last_event_id("As `after`, for a stream that is taken up again.", row)
            .problems([410, 501])
            .answers::<agent_runs::RowList>(OK, "The rows; none if there are no more.")
            .answers_as(
                OK,
                EVENTS,
                "The rows, and what happens until nobody works on the run: the last event, `run`, says where it \
                 stands.",
                None,
            ),
        Endpoint::new("get", "/v1/runs/{id}/items", "runItems", call, get(agent_runs::items))
            .summary("The conversation of an agent's run")
            .path_parameter("id", "The run's id.")
            .query("after", "Start after this item: `next` of the previous page.", item)
            .query("limit", "The maximum number of items. Default 100.", thousand)
            .problems([410, 501])
            .answers::<agent_runs::ItemList>(OK, "The items."),
    ]
}

/// OpenAI's Responses API over a `WebSocket`.
#[cfg(feature = "websocket")]
fn socket_endpoint() -> Endpoint {
    Endpoint::new("get", "/v1/responses", "openResponses", With(Right::Call), get(responses::open))
        .summary("Open a WebSocket, on which a client asks for one response after another")
        .answers_without_body(
            StatusCode::SWITCHING_PROTOCOLS,
            "The WebSocket is open. Each message of the client is a `response.create`, with the members \
             of the body of `POST /v1/responses`; each message of the server is an event of a response, or an \
             `error`.",
        )
        .problems([426, 501])
        .openai()
}

/// OpenAI's Responses API.
fn response_endpoints() -> Vec<Endpoint> {
    use responses::schema;
    const ID: &str = "The `id` of a response.";
    let call = With(Right::Call);
    let about =
        |endpoint: Endpoint| endpoint.path_parameter("id", ID).problems([410, 501]).openai();
    vec![
        Endpoint::new("post", "/v1/responses", "createResponse", call, post(responses::create))
            .summary("Ask an agent or a model, with OpenAI's protocol")
            .header("Idempotency-Key", KEY_HELP, key)
            .takes::<responses::ResponseBody>()
            .example(r#"{"model": "coder", "input": "What is in notes.txt?"}"#)
            .problems([404, 409, 501])
            .answers_as(OK, "application/json", "The response.", Some(schema::response))
            .answers_as(OK, EVENTS, "Its events, with `stream`.", None)
            .openai(),
        about(Endpoint::new(
            "get",
            "/v1/responses/{id}",
            "showResponse",
            call,
            get(responses::show),
        ))
        .summary("A response as it is now")
        .query("stream", "Whether to answer with its events. Default: false.", switch)
        .query("starting_after", "Only events after this number.", number)
        .answers_as(OK, "application/json", "The response.", Some(schema::response))
        .answers_as(OK, EVENTS, "Its events, with `stream`.", None),
        about(Endpoint::new(
            "delete",
            "/v1/responses/{id}",
            "removeResponse",
            call,
            delete(responses::remove),
        ))
        .summary("Remove a response on which nobody works")
        .problems([409])
        .answers_as(OK, "application/json", "It is removed.", Some(schema::removed)),
        about(Endpoint::new(
            "post",
            "/v1/responses/{id}/cancel",
            "cancelResponse",
            call,
            post(responses::cancel),
        ))
        .summary("Cancel a response that is being made")
        .problems([409])
        .answers_as(OK, "application/json", "The response.", Some(schema::response)),
        about(Endpoint::new(
            "get",
            "/v1/responses/{id}/input_items",
            "responseInputItems",
            call,
            get(responses::input_items),
        ))
        .summary("What the request of a response said")
        .query(
            "after",
            "Start after this item: `last_id` of the previous page.",
            schema_of::<String>,
        )
        .query("limit", "The maximum number of items. Default 20.", hundred)
        .query("order", "`desc`, the default, or `asc` for the oldest first.", order)
        .answers_as(OK, "application/json", "The items.", Some(schema::list)),
        Endpoint::new(
            "post",
            "/v1/chat/completions",
            "createChatCompletion",
            call,
            post(responses::complete),
        )
        .summary("Ask an agent or a model, as a chat completion of OpenAI's")
        .header("Idempotency-Key", KEY_HELP, key)
        .takes::<responses::ChatBody>()
        .example(r#"{"model": "coder", "messages": [{"role": "user", "content": "Hello."}]}"#)
        .problems([404, 409, 501])
        .answers_as(OK, "application/json", "The completion.", Some(schema::completion))
        .answers_as(OK, EVENTS, "Its chunks, with `stream`.", None)
        .openai(),
        Endpoint::new("get", "/v1/models", "listModels", call, get(responses::models))
            .summary("The agents and models that a request can name")
            .problems([501])
            .answers_as(OK, "application/json", "The list.", Some(schema::list))
            .openai(),
    ]
}

/// What OpenAI's Responses API does with conversations.
fn conversation_endpoints() -> Vec<Endpoint> {
    use responses::schema;
    let call = With(Right::Call);
    vec![
        Endpoint::new(
            "post",
            "/v1/responses/compact",
            "compactConversation",
            call,
            post(responses::compact),
        )
        .summary("Make a conversation shorter: a summary takes its place")
        .header("Idempotency-Key", KEY_HELP, key)
        .takes::<responses::CompactBody>()
        .example(r#"{"model": "coder", "input": "What is in notes.txt?"}"#)
        .problems([404, 409, 501])
        .answers_as(OK, "application/json", "The conversation in short.", Some(schema::compaction))
        .openai(),
        Endpoint::new(
            "post",
            "/v1/responses/input_tokens",
            "countInputTokens",
            call,
            post(responses::input_tokens),
        )
        .summary("Estimate the tokens of a request, without asking the model")
        .takes::<responses::CountBody>()
        .example(r#"{"model": "coder", "input": "What is in notes.txt?"}"#)
        .problems([404, 501])
        .answers_as(OK, "application/json", "The number.", Some(schema::count))
        .openai(),
    ]
}

/// Calls of others that wait for approval.
fn approval_endpoints() -> Vec<Endpoint> {
    const ID: &str = "The `id` of a call that waits for approval.";
    let approve = With(Right::Approve);
    vec![
        Endpoint::new("get", "/v1/approvals", "listApprovals", approve, get(approvals::list))
            .summary(
                "The calls that wait for approval, oldest first: of this client's tenant (the \
                 operator: of all tenants) and of tools within its toolset, whoever made them",
            )
            .answers::<approvals::ApprovalList>(OK, "The calls."),
        Endpoint::new("get", "/v1/approvals/{id}", "showApproval", approve, get(approvals::show))
            .summary("A call that waits for approval")
            .path_parameter("id", ID)
            .answers::<approvals::ApprovalBody>(OK, "The call."),
        Endpoint::new(
            "post",
            "/v1/approvals/{id}",
            "decideApproval",
            approve,
            post(approvals::decide),
        )
        .summary("Approve the call, with other arguments if need be, or deny it")
        .header("Idempotency-Key", KEY_HELP, key)
        .path_parameter("id", ID)
        .takes::<approvals::DecideRequest>()
        .example(r#"{"decision": "approve"}"#)
        .problems([409])
        .answers::<approvals::DecisionBody>(
            OK,
            "The decision was accepted. The call continues with its caller's rights, and its caller gets the answer.",
        ),
    ]
}

/// For operators.
fn operator_endpoints() -> Vec<Endpoint> {
    let (observe, operate) = (With(Right::Observe), With(Right::Operate));
    vec![
        Endpoint::new("get", "/v1/status", "status", observe, get(operations::status))
            .summary("Files, upstream servers, and what a restart would change")
            .answers::<reports::ServerStatus>(OK, "The status."),
        Endpoint::new("get", "/v1/stats", "stats", observe, get(operations::stats))
            .summary("The outcomes of calls, by tool")
            .answers::<operations::Stats>(OK, "Counts and durations."),
        Endpoint::new("get", "/v1/audit", "auditTail", observe, get(operations::audit))
            .summary("The last records of the audit log, oldest first")
            .query("limit", "The maximum number of records. Default 100.", thousand)
            .problems([404])
            .answers::<operations::AuditTail>(OK, "The records."),
        Endpoint::new(
            "get",
            "/v1/names/{name}",
            "nameStatus",
            observe,
            get(operations::name_status),
        )
        .summary("Who owns a name, who else declares it, and what a restart would change")
        .path_parameter("name", "The name.")
        .answers::<reports::NameStatus>(OK, "The status of the name."),
        Endpoint::new(
            "post",
            "/v1/names/{name}/release",
            "releaseName",
            operate,
            post(operations::release_name),
        )
        .summary("End the reservation of a name that its owner gave up")
        .problems([404, 409])
        .path_parameter("name", "The name.")
        .answers::<reports::ReleasedName>(OK, "Whether it was reserved, and who has it now."),
        Endpoint::new(
            "post",
            "/v1/tools/{name}/reset",
            "resetTool",
            operate,
            post(operations::reset_tool),
        )
        .summary("End the pause of a tool whose calls timed out repeatedly, for everybody, or restart an upstream MCP server")
        .path_parameter("name", "The name of the tool or of the MCP server.")
        .answers::<operations::Reset>(OK, "The tool can be called again, or the server is being restarted."),
        Endpoint::new(
            "get",
            "/v1/events",
            "watchEvents",
            WithOneOf(&[Right::Operate, Right::Call]),
            get(events::events),
        )
        .problems([404, 422])
        .summary("Events of the server: calls that start, produce output and end; tools that are paused")
        .answers_as(
            OK,
            EVENTS,
            "Events from now on: with the right `operate` those of everybody within this client's tenant \
             and toolset, else of this client's identity. Whoever reads too slowly is told by \
             `stream.lagged` how many were lost.",
            None,
        ),
        Endpoint::new("post", "/v1/reload", "reload", operate, post(operations::reload))
            .summary("Reload the config and the manifests")
            .problems([409])
            .answers::<reports::Reloaded>(OK, "The changes."),
    ]
}
