//! Answers in words of an agent whose answers have a schema.

use serde::de::IgnoredAny;
use toolcrib_core::Toolset;
use toolcrib_tool::{Content, ToolCall};
use toolcrib_wire::model::{Input, Item, Role};

use super::driver::Driver;
use crate::JournalEntry;
use crate::run::{FailureReason, Outcome};
use crate::sub_agents::tools::ATTEMPT_COMPLETION;

/// How many answers in words are refused with a reminder; the next one fails the run.
const MAX_REFUSED: u32 = 2;

impl Driver<'_> {
    /// What follows an answer in words, if the agent's answers have a schema: many models ignore that they have to make a
    /// call. Words that are JSON of this schema are the answer. Otherwise the model is told to make the call, or the run
    /// fails.
    pub(super) async fn after_words(&self) -> Option<JournalEntry> {
        let completion = self.agent.completion.as_ref()?;
        let (text, last) = self.run.said()?;
        let problem = match json_of(text) {
            None => "it is not JSON".to_owned(),
            Some(json) => {
                let options = self.agent.turn_options(&self.id, self.time_left());
                let turn = completion.turn(options.toolset(Toolset::new()));
                let arguments = format!("{{\"result\":{json}}}");
                let result =
                    turn.call(ToolCall::new("answer", ATTEMPT_COMPLETION, arguments)).await;
                if result.is_success() {
                    let outcome = Outcome::Completed { text: result.text().into_owned() };
                    return Some(JournalEntry::Finished { outcome });
                }
                // With the places where it does not match.
                result.text().trim_end().to_owned()
            }
        };
        if last.is_none() && self.run.refused_answers() < MAX_REFUSED {
            let told = format!(
                "This text was not taken as your answer: {problem}. Call `{ATTEMPT_COMPLETION}` with your answer as \
                 its argument `result`."
            );
            let content = vec![Content::Text(told)];
            let item = Item::Input(Input { role: Role::System, content });
            return Some(JournalEntry::AnswerRefused { item });
        }
        let invalid =
            format!("the answer does not match the schema of the agent's answers: {problem}");
        let (reason, message) = match last {
            Some(limit) => (
                FailureReason::Budget(limit),
                format!("the budget of the run is used up ({limit}), and {invalid}"),
            ),
            None => (FailureReason::InvalidAnswer, invalid),
        };
        let outcome = Outcome::Failed { reason, message, text: Some(text.to_owned()) };
        Some(JournalEntry::Finished { outcome })
    }
}

/// The JSON that a text consists of, with or without a code fence around it.
fn json_of(text: &str) -> Option<&str> {
    let text = text.trim();
    let fenced = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let text = match fenced.and_then(|rest| rest.split_once('\n')) {
        Some((_language, inside)) => inside.trim(),
        None => text,
    };
    serde_json::from_str::<IgnoredAny>(text).is_ok().then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_found_alone_or_in_a_fence() {
        for (text, json) in [
            (" {\"a\": 1}\n", Some("{\"a\": 1}")),
            ("```json\n{\"a\": 1}\n```\n", Some("{\"a\": 1}")),
            ("```\n[1]\n```", Some("[1]")),
            ("The answer is {\"a\": 1}", None),
            ("```json\n{\"a\": 1}", None),
            ("{\"a\": 1} {\"a\": 2}", None),
            ("", None),
        ] {
            assert_eq!(json_of(text), json, "{text:?}");
        }
    }
}
