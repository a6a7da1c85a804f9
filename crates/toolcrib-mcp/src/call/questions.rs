//! What a call that waits asks of the client: a form for its user, a text of its model, its folders.

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

/// The key of the only question of a call.
const ONLY: &str = "answer";
/// The one property of a form that asks for consent.
const APPROVE: &str = "approve";
/// More of the arguments is not shown to whoever is asked to consent.
const SHOWN_CHARS: usize = 2_000;

/// Everything one suspended call asks of a client.
pub(crate) struct Questions {
    asked: Vec<Question>,
    /// Whether the answer is an object with a member for each.
    several: bool,
    wants: Wants,
}

struct Question {
    key: String,
    ask: Ask,
    /// Whether the form is a stand-in for one that MCP cannot ask for: its answer is a text.
    as_text: bool,
}

/// What the answers are turned into.
enum Wants {
    Consent,
    Output,
    Answer,
}

/// What came back.
pub(crate) enum Reply {
    /// All that was asked.
    Complete(Resolution),
    /// An answer is missing, or is not what an answer looks like.
    Missing,
}

impl Questions {
    /// What a suspended call asks; `None` where a client cannot help: it waits for work elsewhere.
    /// The error names what the client would have to be able to.
    pub(crate) fn of(
        suspension: &Suspension,
        definition: Option<&ToolDefinition>,
        client: &ClientCapabilities,
    ) -> Option<Result<Self, ClientCapabilities>> {
        let form = |message: String, schema| vec![InputPart::form(ONLY, message, schema)];
        let (parts, several, wants) = match suspension.waiting() {
            Waiting::Approval { .. } => {
                (form(consent(suspension), consent_schema()), false, Wants::Consent)
            }
            Waiting::Client => {
                let schema = definition.and_then(ToolDefinition::output_schema).cloned();
                let schema = schema.unwrap_or_else(text_schema);
                let said = definition.map_or("", ToolDefinition::description);
                let message = format!("{said}\n\n{}", shown(suspension));
                (form(message, schema), false, Wants::Output)
            }
            Waiting::Input { message, schema, parts, .. } if parts.is_empty() => {
                (form(message.clone(), schema.clone()), false, Wants::Answer)
            }
            Waiting::Input { parts, .. } => (parts.clone(), true, Wants::Answer),
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
        Some(Ok(Self { asked, several, wants }))
    }

    /// One form for the client's user; `None` where the client cannot ask.
    pub(crate) fn of_form(
        message: String,
        schema: Value,
        client: &ClientCapabilities,
    ) -> Option<Self> {
        let ask = Ask::Form { message, schema };
        can(client, &ask).then(|| Self {
            asked: vec![Question::new(ONLY.to_owned(), ask)],
            several: false,
            wants: Wants::Answer,
        })
    }

    /// The requests, by their keys.
    pub(crate) fn requests(&self) -> Result<BTreeMap<String, InputRequest>, ErrorData> {
        let request = |question: &Question| Ok((question.key.clone(), question.request()?));
        let requests = self.asked.iter().map(request).collect::<Result<_, serde_json::Error>>();
        requests.map_err(|error| {
            ErrorData::internal_error(format!("the question cannot be sent: {error}"), None)
        })
    }

    /// The keys of all of them.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.asked.iter().map(|question| question.key.as_str())
    }

    /// Whether a response is one to the question of that key.
    pub(crate) fn is_answer(&self, key: &str, response: &Value) -> bool {
        let question = self.asked.iter().find(|question| question.key == key);
        question.is_some_and(|question| !matches!(question.read(response), Read::Nothing))
    }

    /// What the client's answers amount to. Answers to what was not asked are passed over.
    pub(crate) fn reply(&self, responses: &InputResponses) -> Reply {
        let mut answers = Map::new();
        for question in &self.asked {
            match responses.get(&question.key).map(|response| question.read(response)) {
                Some(Read::Answer(answer)) => {
                    answers.insert(question.key.clone(), answer);
                }
                Some(Read::Refused(message)) => {
                    return Reply::Complete(Decision::Deny { message }.into());
                }
                Some(Read::Nothing) | None => return Reply::Missing,
            }
        }
        let answer = if self.several {
            Value::Object(answers)
        } else {
            answers.remove(ONLY).unwrap_or_default()
        };
        Reply::Complete(match self.wants {
            Wants::Consent if answer.get(APPROVE) == Some(&Value::Bool(true)) => {
                Decision::approve().into()
            }
            Wants::Consent => Decision::Deny { message: "the user said no".to_owned() }.into(),
            Wants::Output => Resolution::Output(match Data::from_protected(answer) {
                data if data.is_rounded() => ToolOutput::from(data),
                data => match data.into_protected() {
                    Value::String(text) => ToolOutput::from(text),
                    data => ToolOutput::from(data),
                },
            }),
            Wants::Answer => Resolution::Answer(answer),
        })
    }

    /// Whether it may be answered ahead of the question: consent may not.
    pub(crate) fn may_be_answered_ahead(&self) -> bool {
        !matches!(self.wants, Wants::Consent)
    }

    /// Asks one question after the other, of a client with a connection of its own.
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

/// What a response to one question says.
enum Read {
    /// With stand-ins for the numbers that a [`Value`] cannot hold.
    Answer(Value),
    /// The user will not say; the text is for the model.
    Refused(String),
    /// It is no response to this question.
    Nothing,
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
            // Whatever may come to be asked, asking for the folders gives nothing away.
            _ => json!({"method": "roots/list"}),
        })
    }

    fn read(&self, response: &Value) -> Read {
        match &self.ask {
            Ask::Form { .. } => match response["action"].as_str() {
                Some("accept") => match &response["content"] {
                    Value::Object(content) if self.as_text => {
                        Read::Answer(written(&content.get(ONLY).cloned().unwrap_or_default()))
                    }
                    content @ Value::Object(_) => Read::Answer(content.clone()),
                    _ => Read::Nothing,
                },
                Some("decline") => Read::Refused("the user declined to answer".to_owned()),
                Some("cancel") => {
                    Read::Refused("the user closed the question without an answer".to_owned())
                }
                _ => Read::Nothing,
            },
            Ask::Sample { .. } => match sampled_text(&response["content"]) {
                Some(text) => {
                    let mut answer = json!({"text": text});
                    if let Some(model) = response["model"].as_str() {
                        answer["model"] = model.into();
                    }
                    Read::Answer(answer)
                }
                None => Read::Nothing,
            },
            _ => match response["roots"].as_array() {
                Some(roots) => Read::Answer(roots.iter().map(root).collect()),
                None => Read::Nothing,
            },
        }
    }
}

/// A root without what toolcrib does not know.
fn root(root: &Value) -> Value {
    let mut known = json!({"uri": root["uri"]});
    if let Some(name) = root["name"].as_str() {
        known["name"] = name.into();
    }
    known
}

/// The text of a sampled message, which has one block or several.
fn sampled_text(content: &Value) -> Option<String> {
    let blocks = match content {
        Value::Array(blocks) => blocks.as_slice(),
        block => std::slice::from_ref(block),
    };
    let texts: Vec<_> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// An answer that was written into a text field: JSON if it is, with stand-ins for the numbers that a
/// [`Value`] cannot hold, else the text itself.
fn written(answer: &Value) -> Value {
    let text = answer.as_str().unwrap_or_default();
    Data::from_json(text).map_or_else(|_| Value::from(text), Data::into_protected)
}

/// Whether MCP can show it as a form: an object of plain values.
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
        "properties": {ONLY: {"type": "string", "title": "Answer"}},
        "required": [ONLY],
    })
}

fn consent_schema() -> Value {
    json!({
        "type": "object",
        "properties": {APPROVE: {"type": "boolean", "title": "Allow this call", "default": false}},
        "required": [APPROVE],
    })
}

fn consent(suspension: &Suspension) -> String {
    let request = ApprovalRequest::of(suspension, None);
    let text = request.map(|request| request.text()).unwrap_or_default();
    format!("May this call run?\n\n{text}")
}

/// The call, for a person: the client has made it, so that it knows all that is in it.
fn shown(suspension: &Suspension) -> String {
    let arguments = suspension.arguments();
    let mut text: String = arguments.chars().take(SHOWN_CHARS).collect();
    if text.len() < arguments.len() {
        text.push('…');
    }
    format!("{} {}", suspension.tool(), toolcrib_tool::visible(&text))
}

/// Whether the client can show its user a form.
pub(crate) fn can_ask_for_consent(client: &ClientCapabilities) -> bool {
    // A client that says nothing of modes knows forms.
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
