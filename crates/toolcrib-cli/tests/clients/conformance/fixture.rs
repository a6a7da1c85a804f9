//! The tools, written in Rust, that the conformance suite calls by name.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use toolcrib::tool;
use toolcrib::tool::{
    CallContext, Content, InputPart, InputRequest, StatusUpdate, ToolError, ToolOutcome, ToolOutput,
};

/// A PNG of one red pixel.
const PNG: &[u8] = include_bytes!("tools.d/pixel.png");
/// A WAV file without a sample in it.
const WAV: &[u8] = b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x44\xac\0\0\x88\x58\x01\0\x02\0\x10\0data\0\0\0\0";

fn png() -> Content {
    Content::Image { data: PNG.to_vec(), mime_type: "image/png".into() }
}

fn file(uri: &str, text: &str, mime_type: &str) -> Content {
    Content::Blob { uri: uri.into(), data: text.into(), mime_type: mime_type.into() }
}

/// A picture.
#[tool(read_only)]
fn test_image_content() -> Content {
    png()
}

/// A sound.
#[tool(read_only)]
fn test_audio_content() -> Content {
    Content::Audio { data: WAV.to_vec(), mime_type: "audio/wav".into() }
}

/// A resource, carried whole.
#[tool(read_only)]
fn test_embedded_resource() -> Content {
    file("test://embedded-resource", "This is an embedded resource content.", "text/plain")
}

/// A text, a picture and a resource.
#[tool(read_only)]
fn test_multiple_content_types() -> ToolOutput {
    ToolOutput::from("Multiple content types test:").with_content(png()).with_content(file(
        "test://mixed-content-resource",
        r#"{"test":"data","value":123}"#,
        "application/json",
    ))
}

async fn narrate(cx: &CallContext, tips: [&str; 3]) {
    for (done, tip) in [(0, tips[0]), (50, tips[1]), (100, tips[2])] {
        cx.status(StatusUpdate::doing().with_tip(tip).with_progress(done, Some(100)));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

const STARTED: [&str; 3] =
    ["Tool execution started", "Tool processing data", "Tool execution completed"];

/// Says what it does.
#[tool(read_only)]
async fn test_tool_with_logging(cx: &CallContext) -> &'static str {
    narrate(cx, STARTED).await;
    "logged"
}

/// Says what it does, to whoever asked to be told.
#[tool(read_only)]
async fn test_logging_tool(cx: &CallContext) -> &'static str {
    narrate(cx, STARTED).await;
    "logged"
}

/// Says how far it is.
#[tool(read_only)]
async fn test_tool_with_progress(cx: &CallContext) -> &'static str {
    narrate(cx, ["begun", "half of it", "all of it"]).await;
    "done"
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Prompt {
    /// What the client's model is told.
    prompt: String,
}

/// Asks the client's model.
#[tool]
fn test_sampling(cx: &CallContext, args: Prompt) -> ToolOutcome {
    match cx.answer() {
        Some(answer) => format!("LLM response: {}", text(&answer["sampled"]["text"])).into(),
        None => ask([InputPart::sample("sampled", args.prompt, 100)]),
    }
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Message {
    /// What the user is told.
    message: String,
}

/// Asks the client's user.
#[tool]
fn test_elicitation(cx: &CallContext, args: Message) -> ToolOutcome {
    let schema = json!({
        "type": "object",
        "properties": {
            "username": {"type": "string", "description": "User's response"},
            "email": {"type": "string", "description": "User's email address"},
        },
        "required": ["username", "email"],
    });
    match cx.answer() {
        Some(answer) => format!("User response: {answer}").into(),
        None => ToolOutcome::needs_input(InputRequest::new(args.message, schema)),
    }
}

/// Asks with a form in which everything has a default.
#[tool]
fn test_elicitation_sep1034_defaults(cx: &CallContext) -> ToolOutcome {
    form(
        cx,
        &json!({
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {
                "type": "string",
                "enum": ["active", "inactive", "pending"],
                "default": "active",
            },
            "verified": {"type": "boolean", "default": true},
        }),
    )
}

/// Asks with a form of choices.
#[tool]
fn test_elicitation_sep1330_enums(cx: &CallContext) -> ToolOutcome {
    let titled = |title: &str| {
        json!([
            {"const": "value1", "title": format!("First {title}")},
            {"const": "value2", "title": format!("Second {title}")},
            {"const": "value3", "title": format!("Third {title}")},
        ])
    };
    let options = json!(["option1", "option2", "option3"]);
    form(
        cx,
        &json!({
            "untitledSingle": {"type": "string", "enum": options},
            "titledSingle": {"type": "string", "oneOf": titled("Option")},
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
            "titledMulti": {"type": "array", "items": {"anyOf": titled("Choice")}},
        }),
    )
}

fn form(cx: &CallContext, properties: &Value) -> ToolOutcome {
    match cx.answer() {
        Some(answer) => format!("Elicitation completed: action=accept, content={answer}").into(),
        None => ToolOutcome::needs_input(InputRequest::new(
            "Please choose",
            json!({"type": "object", "properties": properties}),
        )),
    }
}

/// Needs a client that has a model.
#[tool]
fn test_missing_capability(cx: &CallContext) -> ToolOutcome {
    match cx.answer() {
        Some(_) => "sampled".into(),
        None => ask([InputPart::sample("sampled", "Say something.", 10)]),
    }
}

/// Says how far it is, and then asks.
#[tool]
fn test_streaming_elicitation(cx: &CallContext) -> ToolOutcome {
    cx.status(StatusUpdate::doing().with_tip("about to ask"));
    match cx.answer() {
        Some(_) => "answered".into(),
        None => ask([name_form("user_name", "What is your name?")]),
    }
}

/// Greets whoever says who it is.
#[tool]
fn test_input_required_result_elicitation(cx: &CallContext) -> ToolOutcome {
    match cx.answer() {
        Some(answer) => format!("Hello, {}!", text(&answer["user_name"]["name"])).into(),
        None => ask([name_form("user_name", "What is your name?")]),
    }
}

/// Asks the client's model one thing.
#[tool]
fn test_input_required_result_sampling(cx: &CallContext) -> ToolOutcome {
    match cx.answer() {
        Some(answer) => text(&answer["capital_question"]["text"]).into(),
        None => ask([InputPart::sample("capital_question", "What is the capital of France?", 100)]),
    }
}

/// Asks where the client works.
#[tool]
fn test_input_required_result_list_roots(cx: &CallContext) -> ToolOutcome {
    match cx.answer() {
        Some(answer) => format!("Roots: {}", answer["client_roots"]).into(),
        None => ask([InputPart::roots("client_roots")]),
    }
}

/// Keeps something while it waits.
#[tool]
fn test_input_required_result_request_state(cx: &CallContext) -> ToolOutcome {
    confirm(cx)
}

/// Keeps something that nobody may change.
#[tool]
fn test_input_required_result_tampered_state(cx: &CallContext) -> ToolOutcome {
    confirm(cx)
}

fn confirm(cx: &CallContext) -> ToolOutcome {
    let schema = json!({
        "type": "object",
        "properties": {"ok": {"type": "boolean"}},
        "required": ["ok"],
    });
    match cx.remembered() {
        Some(state) => text(state).into(),
        None => ToolOutcome::needs_input(
            InputRequest::of([InputPart::form("confirm", "Please confirm", schema)])
                .remember("state-ok"),
        ),
    }
}

/// Asks everything at once.
#[tool]
fn test_input_required_result_multiple_inputs(cx: &CallContext) -> ToolOutcome {
    match cx.answer() {
        Some(answer) => format!("Got {answer}").into(),
        None => ask([
            name_form("user_name", "What is your name?"),
            InputPart::sample("greeting", "Generate a greeting", 50),
            InputPart::roots("client_roots"),
        ]),
    }
}

/// Asks one thing after the other.
#[tool]
fn test_input_required_result_multi_round(cx: &CallContext) -> ToolOutcome {
    let color = json!({
        "type": "object",
        "properties": {"color": {"type": "string"}},
        "required": ["color"],
    });
    match (cx.answer(), cx.remembered()) {
        (None, _) => ask([name_form("step1", "Step 1: What is your name?")]),
        (Some(answer), None) => ToolOutcome::needs_input(
            InputRequest::of([InputPart::form(
                "step2",
                "Step 2: What is your favorite color?",
                color,
            )])
            .remember(answer["step1"]["name"].clone()),
        ),
        (Some(answer), Some(name)) => {
            format!("{} likes {}", text(name), text(&answer["step2"]["color"])).into()
        }
    }
}

/// Asks what the client can be asked.
#[tool]
fn test_input_required_result_capabilities(cx: &CallContext) -> ToolOutcome {
    match cx.answer() {
        Some(answer) => format!("Got {answer}").into(),
        None => ask([
            name_form("user_name", "What is your name?").optional(),
            InputPart::sample("greeting", "Generate a greeting", 50).optional(),
        ]),
    }
}

/// How long something takes that is no task at once.
const A_WHILE: Duration = Duration::from_millis(300);

#[derive(Deserialize, schemars::JsonSchema)]
struct Greeted {
    /// Who is greeted.
    name: String,
}

/// Greets whoever is named.
#[tool(read_only, task = "never")]
fn greet(args: Greeted) -> String {
    format!("Hello, {}!", args.name)
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Computed {
    /// How long it takes.
    seconds: u64,
    /// What it is called.
    label: String,
}

/// Computes for a while.
#[tool(read_only)]
async fn slow_compute(args: Computed) -> String {
    tokio::time::sleep(Duration::from_secs(args.seconds)).await;
    format!("{} computed", args.label)
}

/// Works for a while and fails.
#[tool(read_only, task = "required")]
async fn failing_job() -> Result<String, ToolError> {
    tokio::time::sleep(A_WHILE).await;
    Err(ToolError::execution("the job has failed"))
}

/// Works for a while and then needs what no client of the suite has.
#[tool(read_only)]
async fn protocol_error_job(cx: &CallContext) -> ToolOutcome {
    tokio::time::sleep(A_WHILE).await;
    match cx.answer() {
        Some(_) => "worked".into(),
        None => ask([InputPart::roots("roots")]),
    }
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Deleted {
    /// What is to be deleted.
    filename: String,
}

/// Looks at a file for a while and asks whether it may be deleted.
#[tool]
async fn confirm_delete(cx: &CallContext, args: Deleted) -> ToolOutcome {
    if let Some(answer) = cx.answer() {
        return format!("{}: {}", args.filename, answer["confirm"]["confirm"]).into();
    }
    tokio::time::sleep(A_WHILE).await;
    ask([consent("confirm", "Delete it?")])
}

/// Works for a while and asks two things at once.
#[tool]
async fn multi_input(cx: &CallContext) -> ToolOutcome {
    if let Some(answer) = cx.answer() {
        return format!("Got {answer}").into();
    }
    tokio::time::sleep(A_WHILE).await;
    ask([consent("one", "The first?"), consent("other", "The second?")])
}

/// Asks who is there, and works for a while once it knows.
#[tool(task = "required")]
async fn test_tool_with_task(cx: &CallContext) -> ToolOutcome {
    match cx.answer() {
        Some(answer) => {
            tokio::time::sleep(A_WHILE).await;
            format!("Hello, {}!", text(&answer["user_name"]["name"])).into()
        }
        None => ask([name_form("user_name", "What is your name?")]),
    }
}

/// Works for longer than its stream is kept open.
#[tool(read_only)]
async fn test_reconnection() -> &'static str {
    tokio::time::sleep(Duration::from_secs(2)).await;
    "Reconnected"
}

fn consent(key: &str, message: &str) -> InputPart {
    let schema = json!({
        "type": "object",
        "properties": {"confirm": {"type": "boolean"}},
        "required": ["confirm"],
    });
    InputPart::form(key, message, schema)
}

fn ask(parts: impl IntoIterator<Item = InputPart>) -> ToolOutcome {
    ToolOutcome::needs_input(InputRequest::of(parts))
}

fn name_form(key: &str, message: &str) -> InputPart {
    let schema = json!({
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
    });
    InputPart::form(key, message, schema)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
