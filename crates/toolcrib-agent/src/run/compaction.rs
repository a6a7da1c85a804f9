//! When the conversation has to become shorter, and what of it.

use toolcrib_core::spill::READ_OUTPUT;
use toolcrib_tool::{CallId, KEPT_OUTPUT, ToolResult};
use toolcrib_wire::model::{Item, Role, Usage};

use super::context::{Context, is_media, whole_text};
use super::next::finish;
use super::{AgentRun, FailureReason, Outcome, Phase, Step};
use crate::JournalEntry;
use crate::budget::Cost;
use crate::entry::{Compacted, ShortenedOutput, Summary};
use crate::summary::summary_item;

/// Answers of the model that stay whole, with everything that follows them.
const KEPT_ROUNDS: usize = 2;
/// Compactions before consecutive rounds. One more ends the run.
const MAX_IN_A_ROW: u32 = 2;
/// What a compaction has to leave out, in percent of the conversation.
const MIN_FREED_PERCENT: u64 = 20;
/// Outputs of more bytes are shortened.
const LONG_OUTPUT: usize = 1_000;
/// Characters that stay of a shortened output.
const SHORT_CHARS: usize = 200;

/// Bytes that a summary has at least.
const SUMMARY_BYTES: u64 = 500;
/// The room that a model has, and how it is used.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ContextLimits {
    /// The model's context in tokens, if it is known.
    pub(crate) window: Option<u64>,
    /// The tokens from which on the conversation becomes shorter, if the window is known.
    pub(crate) compact_from: Option<u64>,
    /// The newest messages of the user that stay, in tokens.
    pub(crate) kept_input: u64,
    /// The bytes of instructions and tools.
    pub(crate) head: u64,
    /// Whether the model can read outputs that were shortened.
    pub(crate) reads_outputs: bool,
}

/// How the conversation becomes shorter.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CompactionPlan {
    /// Old outputs, of which a beginning stays.
    pub(crate) outputs: Vec<OldOutput>,
    /// Groups whose pictures, sounds and files become lines.
    pub(crate) media: Vec<usize>,
    /// Groups that a summary replaces; if there are none, no summary is needed.
    pub(crate) left_out: Vec<usize>,
    /// Tokens of the conversation now.
    pub(crate) before: u64,
    /// The estimated bytes of the conversation now, with its head.
    estimate: u64,
}

/// An output that can be shortened.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OldOutput {
    pub(crate) group: usize,
    pub(crate) call: CallId,
    /// The handle under which the whole output is stored already.
    pub(crate) handle: Option<String>,
}

/// What is known about earlier compactions of a run.
#[derive(Debug, Clone, Default)]
pub(super) struct Compactions {
    /// All of them.
    pub(super) count: u32,
    /// Those with a summary before consecutive rounds, up to the one before round `last`.
    in_a_row: u32,
    last: u32,
    /// What the provider said when the last request was too long for it.
    pub(super) refusal: Option<String>,
    /// The round before which the conversation was shortened because the provider refused it.
    refused: u32,
}

impl Compactions {
    /// Notes a compaction before `round`.
    pub(super) fn add(&mut self, round: u32, is_summary: bool) {
        self.count += 1;
        if self.refusal.take().is_some() {
            self.refused = round;
        }
        if is_summary {
            let follows = self.last + 1 >= round;
            self.in_a_row = if follows { self.in_a_row + 1 } else { 1 };
            self.last = round;
        }
    }

    /// Allows compactions again when input continues a run that has ended.
    pub(super) fn begin_again(&mut self) {
        *self = Self { count: self.count, ..Self::default() };
    }

    fn is_third(&self, round: u32) -> bool {
        self.in_a_row >= MAX_IN_A_ROW && self.last + 1 >= round
    }
}

impl CompactionPlan {
    /// The tokens that are left when the conversation and its head have this many bytes.
    pub(crate) fn tokens_of(&self, bytes: u64) -> u64 {
        scaled(self.before, bytes, self.estimate)
    }
}

fn scaled(tokens: u64, bytes: u64, of: u64) -> u64 {
    let product = u128::from(tokens) * u128::from(bytes) / u128::from(of.max(1));
    u64::try_from(product).unwrap_or(u64::MAX)
}

/// Whether a compaction has left out enough.
fn is_enough(before: u64, after: u64) -> bool {
    u128::from(after) * 100 <= u128::from(before) * u128::from(100 - MIN_FREED_PERCENT)
}

/// How a run ends whose conversation is too long.
fn context_exceeded(why: &str) -> Outcome {
    Outcome::Failed {
        reason: FailureReason::ContextExceeded,
        message: format!("the conversation is too long for the model: {why}"),
        text: None,
    }
}

impl AgentRun {
    /// What has to be done before the model can be asked; nothing if the conversation fits.
    pub(super) fn compaction(&self, limits: &ContextLimits, attempt: u32) -> Option<Step> {
        let round = self.rounds + 1;
        let size = self.context.tokens(limits.head);
        let refusal = self.compactions.refusal.as_deref();
        if let Some(refusal) = refusal
            && self.compactions.refused == round
        {
            return Some(finish(context_exceeded(refusal)));
        }
        if refusal.is_none() && !limits.is_reached(size) {
            return None;
        }
        let plan = self.plan(limits, size);
        match plan {
            Some(plan) if !plan.left_out.is_empty() && self.compactions.is_third(round) => {
                let why = "it had to be summarized before three requests in a row";
                Some(finish(context_exceeded(why)))
            }
            Some(plan) => Some(Step::Compact { round, attempt, plan }),
            None if refusal.is_some() || limits.window.is_some_and(|window| size >= window) => {
                let why = refusal.unwrap_or("too little of it can be left out");
                Some(finish(context_exceeded(why)))
            }
            // Nothing that is worth it can be left out, and the model may still have room for its answer.
            None => None,
        }
    }

    /// How the conversation can become shorter by enough; `None` if it cannot.
    fn plan(&self, limits: &ContextLimits, before: u64) -> Option<CompactionPlan> {
        let context = &self.context;
        let tail = context.start_of_rounds(KEPT_ROUNDS);
        let estimate = context.bytes() + limits.head;
        let mut plan = CompactionPlan {
            outputs: Vec::new(),
            media: Vec::new(),
            left_out: Vec::new(),
            before,
            estimate,
        };
        let mut trial = context.clone();
        for (group, items) in context.groups().iter().enumerate().take(tail) {
            for item in items {
                match item {
                    Item::Result(result) if limits.reads_outputs && is_long(result) => {
                        plan.outputs.push(OldOutput {
                            group,
                            call: result.call_id().clone(),
                            handle: handle_of(result),
                        });
                    }
                    Item::Input(input) if input.content.iter().any(is_media) => {
                        plan.media.push(group);
                    }
                    _ => {}
                }
            }
        }
        let sample = |output: &OldOutput| {
            let (group, call) = (output.group, output.call.clone());
            // All handles are equally long.
            let text = short_text(&self.old_output(output)?, &"0".repeat(32));
            Some(ShortenedOutput { group, call, handle: String::new(), text })
        };
        let samples: Option<Vec<_>> = plan.outputs.iter().map(sample).collect();
        trial.shorten(samples?).ok()?;
        trial.remove_media(&plan.media).ok()?;
        let after = plan.tokens_of(trial.bytes() + limits.head);
        let is_worth_it = is_enough(before, after);
        if is_worth_it && !limits.is_reached(after) {
            return Some(plan);
        }
        let left_out = left_out(&trial, tail, limits.kept_input);
        let gone: u64 = left_out.iter().map(|&group| trial.group_bytes(group)).sum();
        let is_only_the_summary = left_out.iter().all(|&group| context.summary() == Some(group));
        let at_least = plan.tokens_of(trial.bytes() - gone + SUMMARY_BYTES + limits.head);
        if !is_only_the_summary && is_enough(before, at_least) {
            plan.left_out = left_out;
            return Some(plan);
        }
        is_worth_it.then_some(plan)
    }

    /// The output of a call, whole, as it is stored when it is shortened.
    pub(crate) fn old_output(&self, output: &OldOutput) -> Option<String> {
        let group = self.context.groups().get(output.group)?;
        group.iter().find_map(|item| match item {
            Item::Result(result) if *result.call_id() == output.call => Some(whole_text(result)),
            _ => None,
        })
    }

    /// The part of the conversation that a summary replaces, in groups, oldest first.
    pub(crate) fn left_out<'a>(
        &'a self,
        plan: &'a CompactionPlan,
    ) -> impl DoubleEndedIterator<Item = &'a [Item]> {
        plan.left_out
            .iter()
            .filter_map(|&group| self.context.groups().get(group))
            .map(Vec::as_slice)
    }

    /// Applies a row that makes the conversation shorter.
    pub(super) fn shorten(&mut self, compacted: Compacted) -> Result<(), &'static str> {
        let Compacted { shortened, without_media, summary, before, after, usage, cost } = compacted;
        match (&self.phase, &summary) {
            (Phase::Summarizing { .. }, Some(_)) => self.spent.add_request(usage, cost),
            (Phase::Asking { .. } | Phase::Summarizing { .. }, None) => self.lose_attempt(false),
            (Phase::Ready, None) => {}
            _ => return Err("the conversation cannot become shorter now"),
        }
        self.context.shorten(shortened)?;
        self.context.remove_media(&without_media)?;
        let is_summary = summary.is_some();
        if let Some(summary) = summary {
            self.context.summarize(summary)?;
        }
        self.context.recount(after);
        self.compactions.add(self.rounds + 1, is_summary);
        (self.lost.before, self.lost.during) = (0, 0);
        self.phase = if is_enough(before, after) {
            Phase::Ready
        } else {
            Phase::Ending(context_exceeded("too little of it could be left out"))
        };
        Ok(())
    }

    /// The row that carries out a plan: with these shorter outputs, and with this summary and what it has cost.
    pub(crate) fn compacted(
        &self,
        plan: &CompactionPlan,
        shortened: Vec<ShortenedOutput>,
        summary: Option<WrittenSummary>,
        head: u64,
    ) -> Option<JournalEntry> {
        let mut context = self.context.clone();
        context.shorten(shortened.clone()).ok()?;
        context.remove_media(&plan.media).ok()?;
        let (summary, usage, cost) = match summary {
            Some(WrittenSummary { text, usage, cost }) => {
                let left_out = plan.left_out.clone();
                let summary = Summary { left_out, item: summary_item(&text) };
                context.summarize(summary.clone()).ok()?;
                (Some(summary), usage, cost)
            }
            None => (None, None, None),
        };
        let (before, after) = (plan.before, plan.tokens_of(context.bytes() + head));
        let without_media = plan.media.clone();
        Some(JournalEntry::Compacted(Compacted {
            shortened,
            without_media,
            summary,
            before,
            after,
            usage,
            cost,
        }))
    }
}

/// A summary, as a model has written it.
#[derive(Debug, Clone)]
pub(crate) struct WrittenSummary {
    pub(crate) text: String,
    pub(crate) usage: Option<Usage>,
    pub(crate) cost: Option<Cost>,
}

/// A shortened output: its beginning, and how to read the rest.
pub(crate) fn short_text(whole: &str, handle: &str) -> String {
    let (chars, cut) = (whole.chars().count(), whole.char_indices().nth(SHORT_CHARS));
    let Some((cut, _)) = cut else { return whole.to_owned() };
    let beginning = &whole[..cut];
    let left = chars - SHORT_CHARS;
    format!(
        "{beginning}\n[… {left} of {chars} characters left out to save space: {READ_OUTPUT} \
         {{\"handle\":\"{handle}\",\"offset\":{SHORT_CHARS}}} shows them …]"
    )
}

impl ContextLimits {
    /// Whether the conversation has to become shorter.
    fn is_reached(&self, tokens: u64) -> bool {
        self.compact_from.is_some_and(|limit| tokens >= limit)
    }
}

/// Whether an output is long enough that shortening it is worth it, and was not shortened before.
fn is_long(result: &ToolResult) -> bool {
    result.text().len() > LONG_OUTPUT
}

/// The handle under which the whole output of a result is stored already.
fn handle_of(result: &ToolResult) -> Option<String> {
    let output = result.output().filter(|_| result.truncated() && result.is_success())?;
    output.meta().get(KEPT_OUTPUT)?.as_str().map(str::to_owned)
}

/// The groups before `tail` that a summary can replace: all but what the program said, and the newest messages of the
/// user of up to `kept_input` tokens, of which the last one stays in any case.
fn left_out(context: &Context, tail: usize, kept_input: u64) -> Vec<usize> {
    let mut kept_bytes = 0;
    let mut has_kept = false;
    let mut left_out = Vec::new();
    for (index, group) in context.groups().iter().enumerate().rev() {
        let is_input = |role: Role| {
            group.iter().all(|item| matches!(item, Item::Input(input) if input.role == role))
        };
        if context.summary() != Some(index) {
            if is_input(Role::System) {
                continue;
            }
            if is_input(Role::User) {
                kept_bytes += context.group_bytes(index);
                if !has_kept || Context::tokens_in(kept_bytes) <= kept_input {
                    has_kept = true;
                    continue;
                }
            }
        }
        if index < tail {
            left_out.push(index);
        }
    }
    left_out.reverse();
    left_out
}
