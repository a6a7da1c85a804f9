//! The bytes of requests: a head, a conversation that only grows, and a tail.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolcrib_tool::CallId;

use super::item::View;
use super::{Item, RequestError, RequestHead, ToolChoice, Wire, anthropic, chat, responses};

/// A conversation in the format of one provider.
///
/// Every item is written once, when it is [pushed](Self::push). A [request](Self::request) is the head, the items and a
/// short tail, so a later request repeats all bytes of the items before, and its cost beyond copying is that of the
/// new items. Equal heads and items give equal bytes.
///
/// A call and its result belong together: providers refuse a conversation in which one of them is missing, so a push
/// that would separate them is refused, and so is a request while calls have no result.
///
/// ```
/// use std::time::Duration;
/// use toolcrib_tool::ToolResult;
/// use toolcrib_wire::model::{
///     Conversation, DecoderSettings, Item, RequestHead, ToolChoice, Wire, read_answer,
/// };
///
/// let head = RequestHead::new("m", "local/m").with_instructions("Be brief.");
/// let mut conversation = Conversation::new(Wire::Chat, &head)?;
/// conversation.push(&[Item::user("How much is 1 + 2?")])?;
/// let first = conversation.request(&ToolChoice::Auto)?;
///
/// let body = br#"{"choices": [{"finish_reason": "tool_calls", "message": {"role": "assistant",
///     "content": null, "tool_calls": [{"id": "call_1", "type": "function",
///         "function": {"name": "add", "arguments": "{\"a\":1,\"b\":2}"}}]}}]}"#;
/// let answer = read_answer(Wire::Chat, body, &DecoderSettings::new("local/m"))?;
/// let results = answer.runnable_calls().map(|call| {
///     ToolResult::success(call.id.clone(), "add", "3".into(), Duration::ZERO).into()
/// });
/// let results: Vec<Item> = results.collect();
/// conversation.push(&answer.items.into_iter().map(Item::from).collect::<Vec<_>>())?;
/// assert!(conversation.request(&ToolChoice::Auto).is_err(), "the call has no result yet");
/// conversation.push(&results)?;
/// let second = conversation.request(&ToolChoice::Auto)?;
/// assert!(second.starts_with(first.strip_suffix("]}").unwrap_or_default()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Conversation {
    head: Arc<RequestHead>,
    wire: Wire,
    /// The request up to the end of the last item.
    text: String,
    /// Where the items begin in the text.
    items_at: usize,
    /// The calls without a result.
    open: BTreeMap<CallId, OpenCall>,
}

/// A call that waits for its result.
#[derive(Debug, Clone)]
pub(super) struct OpenCall {
    /// The id under which the provider was told about the call.
    pub(super) provider_id: String,
    /// Whether it is a call of a custom tool, whose result has a type of its own.
    pub(super) is_custom: bool,
}

impl Conversation {
    /// An empty conversation.
    pub fn new(wire: Wire, head: &RequestHead) -> Result<Self, RequestError> {
        let mut text = String::new();
        match wire {
            Wire::Chat => chat::write_head(head, &mut text),
            Wire::Responses => responses::write_head(head, &mut text),
            Wire::Anthropic => anthropic::write_head(head, &mut text),
        }?;
        Ok(Self {
            head: Arc::new(head.clone()),
            wire,
            items_at: text.len(),
            text,
            open: BTreeMap::new(),
        })
    }

    /// Appends items that belong together: the user's input, one answer of the model, or the results of all its calls.
    ///
    /// What is pushed together is written together (one message for the parts of an answer, one for all results where
    /// the provider wants that), so push the same groups again when a conversation is rebuilt.
    pub fn push(&mut self, items: &[Item]) -> Result<(), RequestError> {
        let open = self.calls_after(items)?;
        let (head, calls, text) = (&self.head, &open.known, &mut self.text);
        match self.wire {
            Wire::Chat => chat::write_items(head, items, calls, text),
            Wire::Responses => responses::write_items(head, items, calls, text),
            Wire::Anthropic => anthropic::write_items(head, items, calls, text),
        }
        self.open = open.left;
        Ok(())
    }

    /// The body of a request.
    pub fn request(&self, choice: &ToolChoice) -> Result<String, RequestError> {
        if let Some(call) = self.open.keys().next() {
            let count = self.open.len();
            return Err(RequestError::new(
                "",
                format!(
                    "{count} calls have no result yet, among them {:?}: push the results first",
                    call.as_str()
                ),
            ));
        }
        let mut body = String::with_capacity(self.text.len() + 256);
        body.push_str(&self.text);
        match self.wire {
            Wire::Chat => chat::write_tail(&self.head, choice, &mut body),
            Wire::Responses => responses::write_tail(&self.head, choice, &mut body),
            Wire::Anthropic => anthropic::write_tail(&self.head, choice, &mut body),
        }
        Ok(body)
    }

    /// The calls that have no result yet.
    pub fn open_calls(&self) -> impl Iterator<Item = &CallId> {
        self.open.keys()
    }

    /// The bytes of the items so far, as an estimate of the conversation's size.
    pub fn size(&self) -> usize {
        self.text.len() - self.items_at
    }

    /// The bytes before the items: settings, tools and instructions.
    pub fn head_size(&self) -> usize {
        self.items_at
    }

    /// Checks that calls and results stay together, and returns the calls.
    fn calls_after(&self, items: &[Item]) -> Result<Calls, RequestError> {
        let mut left = self.open.clone();
        let mut known = self.open.clone();
        let mut has_result = false;
        for (index, item) in items.iter().enumerate() {
            let at = format!("/{index}");
            match item {
                Item::Result(result) => {
                    if left.remove(result.call_id()).is_none() {
                        let id = result.call_id().as_str();
                        return Err(RequestError::new(
                            at,
                            format!(
                                "no call {id:?} waits for a result; push the call first, and one result for it"
                            ),
                        ));
                    }
                    has_result = true;
                }
                Item::Model(item) => {
                    if self.open.keys().any(|id| left.contains_key(id))
                        || (has_result && !left.is_empty())
                    {
                        return Err(waiting(at, &left));
                    }
                    if let View::Call(call) = item.view() {
                        let open = OpenCall {
                            provider_id: if item.came_from(self.wire, &self.head.source) {
                                call.id.as_str().to_owned()
                            } else {
                                portable_id(call.id.as_str())
                            },
                            is_custom: call.is_custom,
                        };
                        known.insert(call.id.clone(), open.clone());
                        if left.insert(call.id.clone(), open).is_some() {
                            return Err(RequestError::new(
                                format!("{at}/id"),
                                format!(
                                    "two open calls have the id {:?}; give every call its own",
                                    call.id.as_str()
                                ),
                            ));
                        }
                    }
                }
                Item::Input(_) => {
                    if !left.is_empty() {
                        return Err(waiting(at, &left));
                    }
                }
            }
        }
        if has_result && !left.is_empty() {
            return Err(waiting(format!("/{}", items.len()), &left));
        }
        Ok(Calls { left, known })
    }
}

/// The calls of a conversation after a push.
struct Calls {
    /// Those without a result.
    left: BTreeMap<CallId, OpenCall>,
    /// Those that were open before the push or came with it.
    known: BTreeMap<CallId, OpenCall>,
}

fn waiting(at: String, left: &BTreeMap<CallId, OpenCall>) -> RequestError {
    let id = left.keys().next().map(CallId::as_str).unwrap_or_default();
    RequestError::new(
        at,
        format!(
            "the call {id:?} has no result; push the results of all calls before anything else"
        ),
    )
}

/// An id that every provider accepts: the same one if it has at most 40 letters, digits, `_` and `-`.
fn portable_id(id: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if (1..=40).contains(&id.len()) && id.chars().all(is_plain) {
        return id.to_owned();
    }
    // FNV-1a: the id has to be the same in every process, and nobody gains from a collision.
    let hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("call_{hash:016x}")
}
