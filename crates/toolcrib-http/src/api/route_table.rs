//! Every endpoint there is. What is not in these lists is not served, and all that is in them is
//! documented.

use axum::http::StatusCode;
use axum::routing::{delete, get, post};
use schemars::{Schema, SchemaGenerator, json_schema};

use super::{EVENTS, approvals, calls, events, health, operations, result, run_body, runs, tools};
use crate::Right;
use crate::api::endpoint::{Endpoint, schema_of};
use crate::api::reports;
use crate::auth::right::Access::{Open, With, WithOneOf};
use crate::observability::metrics;
use crate::serving::mcp;

const OK: StatusCode = StatusCode::OK;
const WAITS: StatusCode = StatusCode::ACCEPTED;

const KEY_HELP: &str = "The same key with the same request gets the same answer for a day: nothing runs \
                        twice. A request with a key goes on if its client leaves.";

/// Most tools of one page.
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

fn cursor(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "pattern": "^[0-9]{1,15}-[0-9a-f]{32}$"})
}

fn words(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "pattern": "\\S"})
}

fn key(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "pattern": "^[!-~]{1,256}$"})
}

fn switch(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "boolean"})
}

fn anything(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object"})
}

/// All of them.
pub(crate) fn endpoints() -> Vec<Endpoint> {
    let mut all = about();
    all.extend(spoken());
    all.extend(called());
    all.extend(kept());
    all.extend(approved());
    all.extend(operated());
    all
}

/// The server itself, and MCP.
fn about() -> Vec<Endpoint> {
    let observe = With(Right::Observe);
    vec![
        Endpoint::new("get", "/health", "health", Open, get(health::health))
            .summary("Whether the server lives, and how it stands in numbers")
            .answers::<health::HealthBody>(OK, "It lives."),
        Endpoint::new("get", "/ready", "ready", Open, get(health::ready))
            .summary("Whether calls are taken")
            .answers::<health::HealthBody>(OK, "Calls are taken.")
            .answers::<health::HealthBody>(
                StatusCode::SERVICE_UNAVAILABLE,
                "The server is stopping, and takes no more calls.",
            ),
        Endpoint::new("get", "/openapi.json", "openapi", Open, get(operations::openapi))
            .summary("This document")
            .answers_as(OK, "application/json", "OpenAPI 3.1.", Some(anything)),
        Endpoint::new("get", "/metrics", "metrics", observe, get(metrics::metrics))
            .summary("Counts and durations for Prometheus")
            .answers_as(OK, metrics::MEDIA_TYPE, "The text format of Prometheus.", None),
    ]
}

/// MCP: over all tools, and over one toolset.
fn spoken() -> Vec<Endpoint> {
    const TOOLSET: &str = "A name of `toolsets` in the server's config.";
    let call = With(Right::Call);
    let message = |endpoint: Endpoint| {
        endpoint
            .answers_as(OK, "application/json", "A JSON-RPC answer.", Some(anything))
            .answers_as(OK, EVENTS, "A JSON-RPC answer.", None)
            .answers_without_body(WAITS, "A notification or a response was taken.")
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
            .answers_without_body(StatusCode::NO_CONTENT, "It has ended.")
            .problems([404, 405])
            .json_rpc()
    };
    let within = "/mcp/{toolset}";
    vec![
        message(Endpoint::new("post", "/mcp", "mcp", call, post(mcp::serve)))
            .summary("A message of MCP over streamable HTTP"),
        stream(Endpoint::new("get", "/mcp", "mcpStream", call, get(mcp::serve)))
            .summary("What an MCP session has to tell without being asked"),
        end(Endpoint::new("delete", "/mcp", "mcpEnd", call, delete(mcp::serve)))
            .summary("End an MCP session"),
        message(Endpoint::new("post", within, "mcpWithin", call, post(mcp::serve_within)))
            .summary("The same over the tools of one toolset")
            .path_parameter("toolset", TOOLSET),
        stream(Endpoint::new("get", within, "mcpWithinStream", call, get(mcp::serve_within)))
            .summary("What such a session has to tell without being asked")
            .path_parameter("toolset", TOOLSET),
        end(Endpoint::new("delete", within, "mcpWithinEnd", call, delete(mcp::serve_within)))
            .summary("End such a session")
            .path_parameter("toolset", TOOLSET),
    ]
}

/// Tools and their calls.
fn called() -> Vec<Endpoint> {
    let call = With(Right::Call);
    vec![
        Endpoint::new("get", "/v1/tools", "listTools", call, get(tools::list))
            .summary("The tools, sorted by name")
            .query(
                "after",
                "Begin behind this name: the `next` of the page before.",
                schema_of::<String>,
            )
            .query("limit", "At most so many. Default: all.", page)
            .answers::<tools::ToolList>(OK, "The tools."),
        Endpoint::new("get", "/v1/prompt", "promptText", call, get(tools::prompt))
            .summary("The tools as a text for models that know no tools")
            .query("notes", "Whether tools that fail often say so. Default: false.", switch)
            .answers_as(OK, tools::PROMPT_MEDIA_TYPE, "The text; empty for no tools.", None),
        Endpoint::new("get", "/v1/tools/{name}", "describeTool", call, get(tools::describe))
            .summary("One tool")
            .path_parameter("name", "The tool's name.")
            .answers::<tools::Described>(OK, "The tool."),
        Endpoint::new("get", "/v1/search", "searchTools", call, get(tools::search))
            .summary("The tools that words fit, the best first")
            .query("q", "What the tool is for.", words)
            .required()
            .query("limit", "At most so many. Default 10.", thousand)
            .answers::<tools::Found>(OK, "What was found."),
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
                "Its events as they come; the last, `result` or `problem`, carries the answer.",
                None,
            )
            .answers::<run_body::RunBody>(WAITS, "The call waits for somebody, as a run."),
        Endpoint::new("post", "/v1/batch", "callTools", call, post(calls::batch))
            .summary("Call several tools at once")
            .header("Idempotency-Key", KEY_HELP, key)
            .problems([409])
            .takes::<calls::BatchRequest>()
            .example(r#"{"calls": [{"tool": "calculator", "arguments": {"expression": "6 * 7"}}]}"#)
            .answers::<calls::BatchResult>(
                OK,
                "An answer for each call, in their order. Calls that have failed are among them.",
            )
            .answers_as(
                OK,
                EVENTS,
                "Their events, a call after the other; the last, `result`, carries the answers.",
                None,
            )
            .answers::<run_body::RunBody>(WAITS, "Some calls wait for somebody, as a run."),
    ]
}

/// Runs.
fn kept() -> Vec<Endpoint> {
    let call = With(Right::Call);
    let approve = With(Right::Approve);
    vec![
        Endpoint::new("post", "/v1/runs", "startRun", call, post(runs::start))
            .summary("Call tools, and keep what becomes of it")
            .header("Idempotency-Key", KEY_HELP, key)
            .problems([409])
            .takes::<calls::BatchRequest>()
            .example(r#"{"calls": [{"tool": "pick_file", "arguments": {}}]}"#)
            .problems([501])
            .answers::<run_body::RunBody>(StatusCode::CREATED, "The run: over, or waiting."),
        Endpoint::new("get", "/v1/runs", "listRuns", call, get(runs::list))
            .summary("The runs of this client's identity, the oldest first")
            .query("after", "Begin behind this run: the `next` of the page before.", cursor)
            .query("limit", "At most so many. Default 20.", hundred)
            .problems([501])
            .answers::<run_body::RunList>(OK, "The runs."),
        Endpoint::new("get", "/v1/runs/{id}", "showRun", call, get(runs::show))
            .summary("How far a run has come")
            .path_parameter("id", "The run's id.")
            .problems([409, 501])
            .answers::<run_body::RunBody>(OK, "The run."),
        Endpoint::new(
            "post",
            "/v1/runs/{id}/submit_tool_outputs",
            "submitToolOutputs",
            call,
            post(runs::submit),
        )
        .summary("Hand in the outputs of all calls that wait for the client")
        .header("Idempotency-Key", KEY_HELP, key)
        .path_parameter("id", "The run's id.")
        .problems([409, 501])
        .takes::<runs::Outputs>()
        .example(r#"{"tool_outputs": [{"tool_call_id": "call_1", "output": "notes.txt"}]}"#)
        .answers::<run_body::RunBody>(OK, "The run, which has gone on."),
        Endpoint::new("post", "/v1/runs/{id}/resolve", "resolveCall", approve, post(runs::resolve))
            .summary("Decide on a call that waits for approval, or answer a tool's question")
            .header("Idempotency-Key", KEY_HELP, key)
            .path_parameter("id", "The run's id.")
            .problems([409, 501])
            .takes::<runs::ResolveRequest>()
            .example(r#"{"id": "0123456789abcdef0123456789abcdef", "decision": "approve"}"#)
            .answers::<run_body::RunBody>(OK, "The run, which has gone on."),
        Endpoint::new("post", "/v1/runs/{id}/cancel", "cancelRun", call, post(runs::cancel))
            .summary("Answer every call that waits with `cancelled`")
            .header("Idempotency-Key", KEY_HELP, key)
            .path_parameter("id", "The run's id.")
            .problems([409, 501])
            .answers::<run_body::RunBody>(OK, "The run, which is over."),
        Endpoint::new("delete", "/v1/runs/{id}", "removeRun", call, delete(runs::remove))
            .summary("Cancel what waits of a run, and forget it")
            .path_parameter("id", "The run's id.")
            .problems([409, 501])
            .answers::<run_body::RunBody>(OK, "The run as it was; it is gone."),
    ]
}

/// Calls of others that wait for approval.
fn approved() -> Vec<Endpoint> {
    const ID: &str = "The `id` of a call that waits for approval.";
    let approve = With(Right::Approve);
    vec![
        Endpoint::new("get", "/v1/approvals", "listApprovals", approve, get(approvals::list))
            .summary(
                "The calls that wait for approval, the oldest first: of this client's tenant (the \
                 operator: of all tenants) and of tools within its toolset, whoever made them",
            )
            .answers::<approvals::ApprovalList>(OK, "The calls."),
        Endpoint::new("get", "/v1/approvals/{id}", "showApproval", approve, get(approvals::show))
            .summary("One of them")
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
        .answers::<approvals::Decided>(
            OK,
            "The decision holds. The call goes on as its caller, who gets its answer.",
        ),
    ]
}

/// For operators.
fn operated() -> Vec<Endpoint> {
    let (observe, operate) = (With(Right::Observe), With(Right::Operate));
    vec![
        Endpoint::new("get", "/v1/status", "status", observe, get(operations::status))
            .summary("Files, upstream servers, and what a restart would change")
            .answers::<reports::ServerStatus>(OK, "How it stands."),
        Endpoint::new("get", "/v1/stats", "stats", observe, get(operations::stats))
            .summary("What has become of calls, tool by tool")
            .answers::<operations::Stats>(OK, "Counts and durations."),
        Endpoint::new("get", "/v1/audit", "auditTail", observe, get(operations::audit))
            .summary("The last records of the audit log, the oldest first")
            .query("limit", "At most so many. Default 100.", thousand)
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
        .answers::<reports::NameStatus>(OK, "What is known of the name."),
        Endpoint::new(
            "post",
            "/v1/names/{name}/release",
            "releaseName",
            operate,
            post(operations::release_name),
        )
        .summary("End the reservation of a name that its owner gave up")
        .problems([409])
        .path_parameter("name", "The name.")
        .answers::<reports::Released>(OK, "Whether it was reserved, and who has it now."),
        Endpoint::new(
            "post",
            "/v1/tools/{name}/reset",
            "resetTool",
            operate,
            post(operations::reset_tool),
        )
        .summary("End the pause of a tool whose calls timed out repeatedly, for everybody")
        .path_parameter("name", "The tool's name.")
        .answers::<operations::Reset>(OK, "Its calls pass again."),
        Endpoint::new(
            "get",
            "/v1/events",
            "watchEvents",
            WithOneOf(&[Right::Operate, Right::Call]),
            get(events::events),
        )
        .problems([404, 422])
        .summary("What happens in the server: calls as they begin, speak and end; tools that pause")
        .answers_as(
            OK,
            EVENTS,
            "Events from now on: with the right `operate` of everybody within this client's tenant \
             and toolset, else of this client's identity. Whoever reads too slowly is told by \
             `stream.lagged` how many were lost.",
            None,
        ),
        Endpoint::new("post", "/v1/reload", "reload", operate, post(operations::reload))
            .summary("Read the config and the declarations of tools again")
            .problems([409])
            .answers::<reports::Reloaded>(OK, "What has changed."),
    ]
}
