//! `prompts/get`: a prompt with its arguments, which the client may have to be asked for.

use rmcp::RoleServer;
use rmcp::model::{
    ErrorData, GetPromptRequestParams, GetPromptResponse, GetPromptResult, InputRequiredResult,
    InputResponses,
};
use rmcp::service::RequestContext;
use toolcrib_core::suspension::Resolution;

use crate::McpServer;
use crate::call::questions::{Questions, Reply};
use crate::catalog::{Offer, linked_resources, requests};
use crate::transport::revision;

/// Answers one `prompts/get`.
pub(crate) async fn answer(
    server: &McpServer,
    offer: &Offer,
    request: GetPromptRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<GetPromptResponse, ErrorData> {
    // The operator's own prompts come before those of upstreams.
    let offered = match offer.prompt(&request.name) {
        Some(_) => None,
        None => server.upstream_offers().prompt(&request.name).cloned(),
    };
    let prompt = match &offered {
        Some(offered) => &offered.shown,
        None => requests::prompt(offer, &request.name)?,
    };
    let mut given = request.arguments.unwrap_or_default();
    if let Err(missing) = requests::prompt_arguments(prompt, Some(&given)) {
        let client = context.client_capabilities().unwrap_or_default();
        let (message, schema) = missing.question();
        // Without a way to ask, missing arguments are the client's error.
        let questions =
            Questions::of_form(message, schema, &client).ok_or_else(|| missing.error())?;
        let responses = match request.input_responses {
            Some(responses) => responses,
            None if revision::has_input_required(context) => InputResponses::new(),
            None => questions.ask(&context.peer).await.map_err(|_| missing.error())?,
        };
        match questions.reply(&responses) {
            Reply::Complete(Resolution::Answer(serde_json::Value::Object(answers))) => {
                given.extend(answers);
            }
            // The server keeps no state: the client calls again with all arguments.
            Reply::Missing if revision::has_input_required(context) => {
                let requests = questions.requests()?;
                return Ok(InputRequiredResult::from_input_requests(requests).into());
            }
            _ => return Err(missing.error()),
        }
    }
    let values =
        requests::prompt_arguments(prompt, Some(&given)).map_err(|missing| missing.error())?;
    let messages: GetPromptResult = match &offered {
        Some(offered) => linked_resources::prompt(server, offered, &values).await?,
        None => requests::messages(server, offer, prompt, &values).await?,
    };
    Ok(messages.into())
}
