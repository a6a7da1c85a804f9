//! The questions of a suspended call to its client: a form for the user, a text for the model, or
//! the list of roots.

use std::collections::BTreeMap;

use rmcp::RoleServer;
use rmcp::model::{
    ClientCapabilities, ClientResult, ElicitationCapability, ErrorData, InputRequest,
    InputResponses, RootsCapabilities, SamplingCapability, ServerRequest,
};
use rmcp::service::{Peer, ServiceError};
use serde_json::{Map, Value, json};
use toolcrib_core::approval::{ApprovalRequest, Decision};
use toolcrib_core::suspension::{Resolution, Suspension, Waiting};
use toolcrib_tool::{Ask, Data, InputPart, ToolDefinition, ToolOutput};

/// The key of a call's only question.
const SINGLE_KEY: &str = "answer";
/// The only property of the form that asks for consent.
const APPROVE_KEY: &str = "approve";
/// The number of characters of the arguments that are shown in a request for consent.
const SHOWN_CHARS: usize = 2_000;

/// All questions of one suspended call to a client.
pub(crate) struct Questions {
    asked: Vec<Question>,
    /// Whether the answer is an object with one member per question.
    several: bool,
    answer_kind: AnswerKind,
}

struct Question {
    key: String,
    ask: Ask,
    /// Whether the form stands in for one that MCP cannot express: its answer is a text.
    as_text: bool,
}

/// What the answers are converted to.
enum AnswerKind {
    Consent,
    Output,
    Answer,
}

/// The evaluated responses.
pub(crate) enum Reply {
    /// All questions are answered.
    Complete(Resolution),
    /// An answer is missing or malformed.
    Missing,
}

impl Questions {
    /// The questions of a suspended call; `None` if no client can resolve it because it waits for
    /// work elsewhere. The error names the capabilities that the client lacks.
    pub(crate) fn of(
        suspension: &Suspension,
        definition: Option<&ToolDefinition>,
        client: &ClientCapabilities,
    ) -> Option<Result<Self, ClientCapabilities>> {
        let form = |message: String, schema| vec![InputPart::form(SINGLE_KEY, message, schema)];
        let (parts, several, answer_kind) = match suspension.waiting() {
            Waiting::Approval { .. } => {
                (form(consent_message(suspension), consent_schema()), false, AnswerKind::Consent)
            }
            Waiting::Client => {
                let schema = definition.and_then(ToolDefinition::output_schema).cloned();
                let schema = schema.unwrap_or_else(text_schema);
                let said = definition.map_or("", ToolDefinition::description);
                let message = format!("{said}\n\n{}", call_text(suspension));
                (form(message, schema), false, AnswerKind::Output)
            }
            Waiting::Input { message, schema, parts, .. } if parts.is_empty() => {
                (form(message.clone(), schema.clone()), false, AnswerKind::Answer)
            }
            Waiting::Input { parts, .. } => (parts.clone(), true, AnswerKind::Answer),
            _ => return None,
        };
        let mut missing = ClientCapabilities::default();
        let mut asked = Vec::new();
        for InputPart { key, ask, optional, .. } in parts {
            if can(client, &ask) {
                asked.push(Question::new(key, ask));
            } else if !optional {
                require(&mut missing, &ask);
            }
        }
        if missing != ClientCapabilities::default() {
            return Some(Err(missing));
        }
        Some(Ok(Self { asked, several, answer_kind }))
    }

    /// One form for the client's user; `None` if the client cannot ask.
    pub(crate) fn of_form(
        message: String,
        schema: Value,
        client: &ClientCapabilities,
    ) -> Option<Self> {
        let ask = Ask::Form { message, schema };
        can(client, &ask).then(|| Self {
            asked: vec![Question::new(SINGLE_KEY.to_owned(), ask)],
            several: false,
            answer_kind: AnswerKind::Answer,
        })
    }

    /// The requests, by key.
    pub(crate) fn requests(&self) -> Result<BTreeMap<String, InputRequest>, ErrorData> {
        let request = |question: &Question| Ok((question.key.clone(), question.request()?));
        let requests = self.asked.iter().map(request).collect::<Result<_, serde_json::Error>>();
        requests.map_err(|error| {
            ErrorData::internal_error(format!("the question cannot be sent: {error}"), None)
        })
    }

    /// The keys of all questions.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.asked.iter().map(|question| question.key.as_str())
    }

    /// Whether a response answers the question with that key.
    pub(crate) fn is_answer(&self, key: &str, response: &Value) -> bool {
        let question = self.asked.iter().find(|question| question.key == key);
        question.is_some_and(|question| !matches!(question.read(response), ParsedAnswer::Invalid))
    }

    /// Evaluates the client's answers. Answers to other questions are ignored.
    pub(crate) fn reply(&self, responses: &InputResponses) -> Reply {
        let mut answers = Map::new();
        for question in &self.asked {
            match responses.get(&question.key).map(|response| question.read(response)) {
                Some(ParsedAnswer::Answer(answer)) => {
                    answers.insert(question.key.clone(), answer);
                }
                Some(ParsedAnswer::Refused(message)) => {
                    return Reply::Complete(Decision::Deny { message }.into());
                }
                Some(ParsedAnswer::Invalid) | None => return Reply::Missing,
            }
        }
        let answer = if self.several {
            Value::Object(answers)
        } else {
            answers.remove(SINGLE_KEY).unwrap_or_default()
        };
        Reply::Complete(match self.answer_kind {
            AnswerKind::Consent if answer.get(APPROVE_KEY) == Some(&Value::Bool(true)) => {
                Decision::approve().into()
            }
            AnswerKind::Consent => Decision::Deny { message: "the user said no".to_owned() }.into(),
            AnswerKind::Output => Resolution::Output(match Data::from_protected(answer) {
                data if data.is_rounded() => ToolOutput::from(data),
                data => match data.into_protected() {
                    Value::String(text) => ToolOutput::from(text),
                    data => ToolOutput::from(data),
                },
            }),
            AnswerKind::Answer => Resolution::Answer(answer),
        })
    }

    /// Whether a client may send the answer before it is asked; consent has to be asked for.
    pub(crate) fn accepts_unasked_answers(&self) -> bool {
        !matches!(self.answer_kind, AnswerKind::Consent)
    }

    /// Asks one question after another, for a client with a connection of its own.
    pub(crate) async fn ask(
        &self,
        peer: &Peer<RoleServer>,
    ) -> Result<InputResponses, ServiceError> {
        let mut responses = InputResponses::new();
        for (key, request) in self.requests().map_err(ServiceError::McpError)? {
            let request = match request {
                InputRequest::CreateMessage(request) => {
                    ServerRequest::CreateMessageRequest(request)
                }
                InputRequest::Elicitation(request) => ServerRequest::ElicitRequest(request),
                InputRequest::ListRoots(request) => ServerRequest::ListRootsRequest(request),
                _ => return Err(ServiceError::UnexpectedResponse),
            };
            let response = match peer.send_request(request).await? {
                ClientResult::CreateMessageResult(result) => serde_json::to_value(result),
                ClientResult::ElicitResult(result) => serde_json::to_value(result),
                ClientResult::ListRootsResult(result) => serde_json::to_value(result),
                _ => return Err(ServiceError::UnexpectedResponse),
            };
            let response = response.map_err(|error| {
                ServiceError::McpError(ErrorData::internal_error(error.to_string(), None))
            })?;
            responses.insert(key, response);
        }
        Ok(responses)
    }
}

/// The parsed response to one question.
enum ParsedAnswer {
    /// The answer, with stand-ins for numbers that a [`Value`] cannot hold.
    Answer(Value),
    /// The user declined; the text is for the model.
    Refused(String),
    /// The response does not answer this question.
    Invalid,
}

impl Question {
    fn new(key: String, ask: Ask) -> Self {
        match ask {
            Ask::Form { message, schema } if !is_form(&schema) => {
                let message =
                    format!("{message}\n\nAnswer with JSON that fits this schema: {schema}");
                Self { key, ask: Ask::Form { message, schema: text_schema() }, as_text: true }
            }
            ask => Self { key, ask, as_text: false },
        }
    }

    fn request(&self) -> Result<InputRequest, serde_json::Error> {
        serde_json::from_value(match &self.ask {
            Ask::Form { message, schema } => json!({
                "method": "elicitation/create",
                "params": {"mode": "form", "message": message, "requestedSchema": schema},
            }),
            Ask::Sample { prompt, max_tokens } => json!({
                "method": "sampling/createMessage",
                "params": {
                    "messages": [{"role": "user", "content": {"type": "text", "text": prompt}}],
                    "maxTokens": max_tokens,
                },
            }),
            // Asking for the roots reveals nothing about the call.
            _ => json!({"method": "roots/list"}),
        })
    }

    fn read(&self, response: &Value) -> ParsedAnswer {
        match &self.ask {
            Ask::Form { .. } => match response["action"].as_str() {
                Some("accept") => match &response["content"] {
                    Value::Object(content) if self.as_text => ParsedAnswer::Answer(parsed_text(
                        &content.get(SINGLE_KEY).cloned().unwrap_or_default(),
                    )),
                    content @ Value::Object(_) => ParsedAnswer::Answer(content.clone()),
                    _ => ParsedAnswer::Invalid,
                },
                Some("decline") => ParsedAnswer::Refused("the user declined to answer".to_owned()),
                Some("cancel") => ParsedAnswer::Refused(
                    "the user closed the question without an answer".to_owned(),
                ),
                _ => ParsedAnswer::Invalid,
            },
            Ask::Sample { .. } => match sampled_text(&response["content"]) {
                Some(text) => {
                    let mut answer = json!({"text": text});
                    if let Some(model) = response["model"].as_str() {
                        answer["model"] = model.into();
                    }
                    ParsedAnswer::Answer(answer)
                }
                None => ParsedAnswer::Invalid,
            },
            _ => match response["roots"].as_array() {
                Some(roots) => ParsedAnswer::Answer(roots.iter().map(root).collect()),
                None => ParsedAnswer::Invalid,
            },
        }
    }
}

/// A root with only the members that toolcrib knows.
fn root(root: &Value) -> Value {
    let mut known = json!({"uri": root["uri"]});
    if let Some(name) = root["name"].as_str() {
        known["name"] = name.into();
    }
    known
}

/// The text of a sampled message, which has one or more blocks.
fn sampled_text(content: &Value) -> Option<String> {
    let blocks = match content {
        Value::Array(blocks) => blocks.as_slice(),
        block => std::slice::from_ref(block),
    };
    let texts: Vec<_> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// Parses an answer from a text field: as JSON if possible, with stand-ins for the numbers that a
/// [`Value`] cannot hold, else as the text itself.
fn parsed_text(answer: &Value) -> Value {
    let text = answer.as_str().unwrap_or_default();
    Data::from_json(text).map_or_else(|_| Value::from(text), Data::into_protected)
}

/// Whether MCP can show the schema as a form: an object of plain values.
fn is_form(schema: &Value) -> bool {
    let request = json!({
        "method": "elicitation/create",
        "params": {"mode": "form", "message": "", "requestedSchema": schema},
    });
    let has_properties = schema["properties"].as_object().is_some_and(|all| !all.is_empty());
    has_properties && serde_json::from_value::<InputRequest>(request).is_ok()
}

fn text_schema() -> Value {
    json!({
        "type": "object",
        "properties": {SINGLE_KEY: {"type": "string", "title": "Answer"}},
        "required": [SINGLE_KEY],
    })
}

fn consent_schema() -> Value {
    json!({
        "type": "object",
        "properties": {APPROVE_KEY: {"type": "boolean", "title": "Allow this call", "default": false}},
        "required": [APPROVE_KEY],
    })
}

fn consent_message(suspension: &Suspension) -> String {
    let request = ApprovalRequest::of(suspension, None);
    let text = request.map(|request| request.text()).unwrap_or_default();
    format!("May this call run?\n\n{text}")
}

/// The call as shown to a person. The client made the call, so nothing in it is secret from the
/// client.
fn call_text(suspension: &Suspension) -> String {
    let arguments = suspension.arguments();
    let mut text: String = arguments.chars().take(SHOWN_CHARS).collect();
    if text.len() < arguments.len() {
        text.push('…');
    }
    format!("{} {}", suspension.tool(), toolcrib_tool::fully_visible(&text))
}

/// Whether the client can show its user a form.
pub(crate) fn can_ask_for_consent(client: &ClientCapabilities) -> bool {
    // A client that names no modes supports forms.
    let modes = client.elicitation.as_ref();
    modes.is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
}

fn can(client: &ClientCapabilities, ask: &Ask) -> bool {
    match ask {
        Ask::Form { .. } => can_ask_for_consent(client),
        Ask::Sample { .. } => client.sampling.is_some(),
        _ => client.roots.is_some(),
    }
}

fn require(missing: &mut ClientCapabilities, ask: &Ask) {
    match ask {
        Ask::Form { .. } => missing.elicitation = Some(ElicitationCapability::default()),
        Ask::Sample { .. } => missing.sampling = Some(SamplingCapability::default()),
        _ => missing.roots = Some(RootsCapabilities::default()),
    }
}
