//! What the clients were told, held against what the model said and what the tools did.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

/// How a response ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Completed,
    Cancelled,
}

#[derive(Default)]
struct Entries {
    /// The stored responses.
    responses: BTreeMap<String, End>,
    /// Responses of the bare model, unstored ones too.
    of_the_model: usize,
    /// Numbers of the model's answers.
    answers: BTreeSet<usize>,
    /// Numbers of the calls that responses show as completed.
    calls: BTreeSet<String>,
    unstored: usize,
    returned: usize,
    /// Streams of which no event was left out, although their clients had hung up.
    whole: usize,
    wrong: Vec<String>,
}

/// All responses.
#[derive(Default)]
pub(super) struct Ledger(Mutex<Entries>);

/// The text of the model's answer with this number.
pub(super) fn text_of(number: usize) -> String {
    let words: Vec<String> = (0..60).map(|word| format!("{number}.{word}")).collect();
    format!("answer {number} begins {} and answer {number} ends", words.join(" "))
}

/// Takes an answer apart: its number, if it is whole.
fn number_of(text: &str) -> Option<usize> {
    let number = text.strip_prefix("answer ")?.split(' ').next()?.parse().ok()?;
    (text == text_of(number)).then_some(number)
}

impl Ledger {
    fn open(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn wrong(&self, what: String) {
        self.open().wrong.push(what);
    }

    /// A request of the bare model was sent.
    pub(super) fn asks_the_model(&self) {
        self.open().of_the_model += 1;
    }

    pub(super) fn unstored(&self) {
        self.open().unstored += 1;
    }

    /// A client came back; whether it missed nothing, or only pieces of items that it got whole.
    pub(super) fn returned(&self, is_whole: bool) {
        let mut entries = self.open();
        entries.returned += 1;
        entries.whole += usize::from(is_whole);
    }

    /// A stored response is over.
    pub(super) fn enter(&self, response: &Value) -> Result<End, String> {
        let id = response["id"].as_str().ok_or_else(|| format!("no id: {response}"))?;
        let end = match response["status"].as_str() {
            Some("completed") => End::Completed,
            Some("cancelled") => End::Cancelled,
            _ => return Err(format!("it did not end well: {response}")),
        };
        let mut entries = self.open();
        if entries.responses.insert(id.to_owned(), end).is_some() {
            return Err(format!("two responses are {id}"));
        }
        for item in response["output"].as_array().into_iter().flatten() {
            match (item["type"].as_str(), item["status"].as_str()) {
                (Some("message"), _) if end == End::Completed => {
                    let text = item["content"][0]["text"].as_str().unwrap_or_default();
                    let number = number_of(text).ok_or_else(|| format!("not whole: {text:?}"))?;
                    if !entries.answers.insert(number) {
                        return Err(format!("answer {number} is in two responses"));
                    }
                }
                (Some("mcp_call"), Some("completed")) => {
                    let arguments = item["arguments"].as_str().unwrap_or_default();
                    let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
                    let number = arguments["number"].as_str().unwrap_or_default().to_owned();
                    if item["output"] != format!("marked {number}") {
                        return Err(format!("not its output: {item}"));
                    }
                    if !entries.calls.insert(number) {
                        return Err(format!("two calls say the same: {item}"));
                    }
                }
                _ => {}
            }
        }
        let output = response["output"].as_array().map_or(&[][..], Vec::as_slice);
        if end == End::Completed && output.last().is_none_or(|item| item["type"] != "message") {
            return Err(format!("the answer is lost: {response}"));
        }
        Ok(end)
    }

    pub(super) fn responses(&self) -> Vec<String> {
        self.open().responses.keys().cloned().collect()
    }

    /// A response is as its client knew it.
    pub(super) fn rests(&self, id: &str, response: &Value) {
        let mut entries = self.open();
        let known = match entries.responses.get(id) {
            Some(End::Cancelled) => "cancelled",
            _ => "completed",
        };
        if response["status"] != known {
            entries.wrong.push(format!("it was {known}: {response}"));
        }
    }

    /// Compares all that was said with all that was done. `asked` are the requests that the bare model got.
    #[expect(clippy::print_stdout, reason = "a test prints what it counted")]
    #[track_caller]
    pub(super) fn close(self, clients: usize, asked: usize, effects: &BTreeMap<String, usize>) {
        let entries = self.0.into_inner().expect("nobody failed");
        let Entries {
            responses,
            of_the_model,
            answers,
            calls,
            unstored,
            returned,
            whole,
            mut wrong,
        } = entries;
        let cancelled = responses.values().filter(|end| **end == End::Cancelled).count();
        let lost: Vec<_> = calls.iter().filter(|call| !effects.contains_key(*call)).collect();
        let doubled: Vec<_> = effects.iter().filter(|(_, times)| **times != 1).collect();
        if asked > of_the_model {
            wrong.push(format!("{of_the_model} responses asked the model {asked} times"));
        }
        println!(
            "storm streams: {clients} clients, {} stored responses ({cancelled} cancelled), {unstored} left without being \
             stored; {returned} came back, {whole} of them to every event; {} answers, {} calls; {} lost, {} doubled, {} wrong",
            responses.len(),
            answers.len(),
            calls.len(),
            lost.len(),
            doubled.len(),
            wrong.len()
        );
        wrong.truncate(20);
        assert!(
            lost.is_empty() && doubled.is_empty() && wrong.is_empty(),
            "streams: lost {lost:?}, doubled {doubled:?}, wrong {wrong:#?}"
        );
        assert!(
            !calls.is_empty() && cancelled > 0 && returned > 0 && unstored > 0,
            "each kind was tried"
        );
    }
}
