//! Conversations that are no runs: their summaries and their sizes.

use std::slice;
use std::sync::Arc;

use toolcrib_core::run::{MemoryRuns, RunId};
use toolcrib_core::{ToolFilter, Toolset};
use toolcrib_wire::model::Item;

use crate::agent::control::RunControl;
use crate::agent::request::SentConversation;
use crate::agent::{Agent, AgentError, AgentState, RunReport};
use crate::entry::{JournalEntry, JournalRow};
use crate::request::ClientRequest;
use crate::run::AgentRun;
use crate::sub_agents::SubAgentLimits;
use crate::summary::{INSTRUCTIONS, transcript, transcript_bytes};

impl Agent {
    /// Asks the model that writes this agent's summaries for one of a conversation; `words` are told to it as well. This
    /// is a run of its own without tools, which is kept nowhere: its text is the summary. The agent's retries, other
    /// models and limits hold for it.
    pub async fn summarize(
        &self,
        conversation: &[Item],
        words: Option<&str>,
        control: &RunControl,
    ) -> Result<RunReport, AgentError> {
        let writer = self.0.writer_of_summaries(words);
        let window = writer.models.first().and_then(|model| model.context_window());
        let text = transcript(
            conversation.iter().map(slice::from_ref),
            &[],
            window.map_or(usize::MAX, transcript_bytes),
        );
        Self(Arc::new(writer)).run_with(text, control).await
    }

    /// The tokens of the next request to the model, as an estimate: that of a client, with the agent's instructions and
    /// tools, to a run that rests, or of a new run. No model is asked.
    pub fn estimate_tokens(
        &self,
        run: Option<AgentRun>,
        request: ClientRequest,
    ) -> Result<u64, AgentError> {
        let (agent, id, at) = (&self.0, RunId::random()?, self.0.now());
        let corrupt = |source| AgentError::Corrupt { run: id.clone(), source };
        let mut run = match run {
            Some(run) => run,
            None => {
                AgentRun::begin(JournalRow::new(at, agent.started(&id, None))).map_err(corrupt)?
            }
        };
        let entry = JournalEntry::Requested(Box::new(request));
        run.apply(JournalRow::new(at, entry)).map_err(corrupt)?;
        let (model, turn) = (&*agent.models[0], agent.turn(&id, None));
        let sent = SentConversation::of(None, agent, model, &id, &run, &turn)?;
        Ok(run.context_tokens(sent.head_bytes()))
    }
}

impl AgentState {
    /// An agent that writes summaries with this one's models and limits.
    fn writer_of_summaries(&self, words: Option<&str>) -> Self {
        let models = match &self.compaction.model {
            Some(model) => vec![Arc::clone(model)],
            None => self.models.clone(),
        };
        let instructions = match words {
            Some(words) => format!("{INSTRUCTIONS}\n\n{words}"),
            None => INSTRUCTIONS.to_owned(),
        };
        // A toolset that includes nothing by name would include everything.
        let none = Toolset::new().include(ToolFilter::new().name(""));
        let sub_agents = SubAgentLimits { max_depth: 0, ..SubAgentLimits::default() };
        Self {
            models,
            journal: Arc::new(MemoryRuns::new()),
            options: self.options.clone().narrow(&none),
            instructions: Some(instructions),
            listener: None,
            counter: None,
            agents: std::collections::BTreeMap::new(),
            sub_agents,
            completion: None,
            ..self.clone()
        }
    }
}
