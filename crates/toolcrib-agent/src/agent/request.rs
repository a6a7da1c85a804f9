//! The conversation of a run in the format of its model.

use std::collections::BTreeMap;

use toolcrib_core::Turn;
use toolcrib_core::run::RunId;
use toolcrib_wire::model::{Answer, Conversation, RequestError, ToolChoice};
use toolcrib_wire::{Declaration, Export, NameMap, export};

use super::AgentState;
use crate::model::ModelClient;
use crate::run::AgentRun;

/// The conversation of a run as it is sent. It grows with the run, so that consecutive requests begin with the same bytes;
/// only other tools or instructions make it begin anew.
pub(super) struct SentConversation {
    conversation: Conversation,
    tools: Export,
    /// The generation of the tools.
    generation: u64,
    /// How many groups of the run's conversation it has.
    groups: usize,
    /// How often that conversation had become shorter.
    compactions: u32,
}

impl SentConversation {
    fn new(
        agent: &AgentState,
        model: &dyn ModelClient,
        id: &RunId,
        run: &AgentRun,
        turn: &Turn,
    ) -> Result<Self, RequestError> {
        let wire = model.wire();
        let settings = run.request_settings().map(|(settings, _)| settings);
        let definitions = agent.definitions(turn);
        let own = definitions.iter().map(Declaration::from);
        let clients = settings.into_iter().flat_map(|settings| &settings.tools);
        let clients =
            clients.map(|tool| (tool.name.as_str(), tool.description.as_str(), &tool.input_schema));
        let tools = own.chain(clients.map(Declaration::from));
        let is_allowed = |tool: &Declaration<'_>| {
            settings
                .and_then(|settings| settings.allowed.as_ref())
                .is_none_or(|allowed| allowed.iter().any(|name| name == tool.name()))
        };
        let tools = export(tools.filter(is_allowed), wire.target());
        for refusal in &tools.refused {
            tracing::warn!(tool = refusal.tool, reason = ?refusal.reason, "the model is not offered a tool");
        }
        let mut head = model.head().with_tools(&tools);
        if let Some(instructions) = &agent.instructions {
            head.instructions = Some(instructions.clone());
        }
        head.cache_key = Some(id.to_string());
        if let Some(settings) = settings {
            settings.write(wire, &mut head);
        }
        let conversation = Conversation::new(wire, &head)?;
        Ok(Self { conversation, tools, generation: turn.generation(), groups: 0, compactions: 0 })
    }

    /// The conversation of a run, from the one that was sent before if its tools are still the same and nothing was left
    /// out.
    pub(super) fn of(
        before: Option<Self>,
        agent: &AgentState,
        model: &dyn ModelClient,
        id: &RunId,
        run: &AgentRun,
        turn: &Turn,
    ) -> Result<Self, RequestError> {
        let before = before.filter(|sent| sent.compactions == run.compactions());
        let mut sent = match before {
            Some(sent) if agent.pins_tools || sent.generation == turn.generation() => sent,
            Some(sent) => {
                let new = Self::new(agent, model, id, run, turn)?;
                if new.tools.tools == sent.tools.tools {
                    Self { generation: new.generation, ..sent }
                } else {
                    new
                }
            }
            None => Self::new(agent, model, id, run, turn)?,
        };
        sent.compactions = run.compactions();
        for group in run.conversation().iter().skip(sent.groups) {
            sent.conversation.push(group)?;
            sent.groups += 1;
        }
        Ok(sent)
    }

    /// The bytes before the conversation: instructions and tools.
    pub(super) fn head_bytes(&self) -> u64 {
        self.conversation.head_size() as u64
    }

    /// The bytes of the next request.
    pub(super) fn request(&self, choice: &ToolChoice) -> Result<String, RequestError> {
        self.conversation.request(choice)
    }

    /// The tools' names as the provider has them.
    pub(super) fn tool_names(&self) -> &NameMap {
        &self.tools.names
    }

    /// The tools' own names for the provider's names in an answer, where the two differ.
    pub(super) fn names(&self, answer: &Answer) -> BTreeMap<String, String> {
        let own = |name: &str| self.tools.names.from_provider(name).map(str::to_owned);
        let names = answer.calls().filter_map(|call| Some((call.name.clone(), own(&call.name)?)));
        names.filter(|(provider, own)| provider != own).collect()
    }
}
