//! What a request asks of the model, in the run's own terms.

use serde_json::{Map, Value};
use toolcrib_agent::{ClientTool, RequestSettings, RequestedChoice};
use toolcrib_wire::api::ApiError;
use toolcrib_wire::model::ToolChoice;
use toolcrib_wire::responses::{
    BuiltInKind, ModelOptions, RequestTool, RequestToolChoice, ResponseRequest, TextFormat,
};

use super::LABEL;

/// The names of the server's tools that a request selects by their jobs, with their places.
pub(super) fn built_ins(request: &ResponseRequest) -> Vec<(usize, &'static str)> {
    let tools = request.tools.iter().enumerate();
    tools
        .filter_map(|(index, tool)| match tool {
            RequestTool::BuiltIn(own) if own.kind != BuiltInKind::LocalShell => {
                Some((index, own.kind.tool_name()))
            }
            _ => None,
        })
        .collect()
}

/// The settings of a request; `own` are the tools of its agent.
pub(super) fn settings(
    request: &ResponseRequest,
    own: &[String],
) -> Result<RequestSettings, ApiError> {
    let mut tools = Vec::new();
    for (index, tool) in request.tools.iter().enumerate() {
        let param = format!("tools[{index}]");
        if let Some(definition) = tool.client_definition(index) {
            let definition = definition?;
            if own.iter().any(|name| name == definition.name()) {
                let message = format!("the agent has a tool `{}` of its own", definition.name());
                return Err(ApiError::invalid(message)
                    .with_code("tool_name_taken")
                    .with_param(format!("{param}.name")));
            }
            tools.push(ClientTool {
                name: definition.name().to_owned(),
                description: definition.description().to_owned(),
                input_schema: definition.input_schema().clone(),
            });
            continue;
        }
        let problem = match tool {
            RequestTool::BuiltIn(tool) => {
                let name = tool.kind.tool_name();
                let kind = tool.kind.as_str();
                (!own.iter().any(|own| own == name)).then(|| {
                    format!("`{kind}` is the job of `{name}`, which is not among your tools")
                })
            }
            RequestTool::Mcp(server) if server.label == LABEL && server.url.is_none() => None,
            _ => Some(format!(
                "tools of other MCP servers come from the server's config: name `{LABEL}` as `server_label`"
            )),
        };
        if let Some(problem) = problem {
            return Err(ApiError::invalid(problem).with_code("unsupported_tool").with_param(param));
        }
    }
    let (choice, allowed) = choice(request, own, &tools)?;
    Ok(RequestSettings {
        instructions: request.instructions.clone().filter(|text| !text.trim().is_empty()),
        tools,
        allowed,
        choice,
        parallel_calls: request.parallel_tool_calls,
        ..of_options(&request.options)
    })
}

fn of_options(options: &ModelOptions) -> RequestSettings {
    let mut sampling = Map::new();
    let numbers = [
        ("top_p", options.top_p),
        ("presence_penalty", options.presence_penalty),
        ("frequency_penalty", options.frequency_penalty),
    ];
    for (key, number) in numbers {
        if let Some(number) = number {
            sampling.insert(key.to_owned(), number.into());
        }
    }
    if !options.stop.is_empty() {
        sampling.insert("stop".to_owned(), options.stop.clone().into());
    }
    if let Some(seed) = options.seed {
        sampling.insert("seed".to_owned(), seed.into());
    }
    RequestSettings {
        max_output_tokens: options.max_output_tokens,
        temperature: options.temperature,
        reasoning_effort: options.reasoning_effort.clone(),
        verbosity: options.verbosity.clone(),
        text_format: match &options.format {
            TextFormat::Text => None,
            format => Some(format.to_value()),
        },
        sampling,
        ..RequestSettings::default()
    }
}

/// Which tools may or have to be called.
fn choice(
    request: &ResponseRequest,
    own: &[String],
    tools: &[ClientTool],
) -> Result<(RequestedChoice, Option<Vec<String>>), ApiError> {
    let choice = match request.tool_choice.to_model() {
        ToolChoice::None => RequestedChoice::None,
        ToolChoice::Required => RequestedChoice::Required,
        ToolChoice::Tool(name) => RequestedChoice::Tool(name),
        _ => RequestedChoice::Auto,
    };
    let named: Vec<&str> = match &request.tool_choice {
        RequestToolChoice::Tool(tool) => tool.name().into_iter().collect(),
        RequestToolChoice::Allowed { tools, .. } => {
            tools.iter().filter_map(|tool| tool.name()).collect()
        }
        _ => Vec::new(),
    };
    let is_known = |name: &&&str| {
        own.iter().any(|own| own == **name) || tools.iter().any(|tool| tool.name == ***name)
    };
    if let Some(unknown) = named.iter().find(|name| !is_known(name)) {
        let message = format!("`tool_choice` names `{unknown}`, which is not among the tools");
        return Err(ApiError::invalid(message)
            .with_code("invalid_value")
            .with_param("tool_choice"));
    }
    // A choice of all tools of this server allows them.
    let allowed = match &request.tool_choice {
        RequestToolChoice::Allowed { tools: chosen, .. } => {
            let of_server = chosen.iter().any(|tool| tool.name().is_none());
            let own = own.iter().map(String::as_str).filter(|_| of_server);
            Some(named.into_iter().chain(own).map(str::to_owned).collect())
        }
        _ => None,
    };
    Ok((choice, allowed))
}

/// The notes of a request.
pub(super) fn metadata(request: &ResponseRequest) -> std::collections::BTreeMap<String, String> {
    let notes = request.metadata.iter();
    notes
        .filter_map(|(key, value)| match value {
            Value::String(text) => Some((key.clone(), text.clone())),
            _ => None,
        })
        .collect()
}
