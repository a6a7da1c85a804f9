//! Random histories that become shorter again and again.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use toolcrib_core::clock::Timestamp;
use toolcrib_tool::{CallId, Content, ErrorKind, ToolError, ToolOutput, ToolResult};
use toolcrib_wire::model::{
    Conversation, Input, Item, ModelItem, RequestHead, Role, StopReason, ToolChoice, Usage, Wire,
};

use super::context::whole_text;
use super::*;
use crate::entry::{FORMAT, JournalRow, ShortenedOutput, StartedCall};
use crate::summary::transcript;

/// A small generator of random numbers: the histories are the same on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn text(&mut self, limit: u64) -> String {
        let length = self.below(limit + 1);
        let word = ["red ", "größe ", "7, ", "🌍"]
            [usize::from(self.percent(50)) + 2 * usize::from(self.percent(20))];
        word.repeat(usize::try_from(length).unwrap() / word.len() + 1)
    }
}

/// A run, its rows, and what its outputs were.
struct History {
    random: Random,
    run: AgentRun,
    rows: Vec<JournalRow>,
    limits: ContextLimits,
    /// The whole outputs by the ids of their calls.
    outputs: HashMap<CallId, String>,
    /// Stored texts by handle.
    stored: HashMap<String, String>,
    calls: u32,
    shortened: u32,
    summaries: u32,
}

impl History {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let started = JournalEntry::Started {
            format: FORMAT,
            identity: String::new(),
            agent: "agent".to_owned(),
            budget: Budget::default(),
            poll_tools: Vec::new(),
            parent: None,
            toolset: None,
            for_client: false,
            metadata: std::collections::BTreeMap::new(),
            lost_calls: crate::LostCalls::Tell,
        };
        let row = JournalRow::new(Timestamp::from_unix_millis(0), started);
        let window = 1_000 + random.below(5_000);
        let limits = ContextLimits {
            window: Some(window),
            compact_from: Some(window * 8 / 10),
            kept_input: random.below(400),
            head: random.below(500),
            reads_outputs: random.percent(80),
        };
        let run = AgentRun::begin(row.clone()).unwrap();
        let (outputs, stored) = (HashMap::new(), HashMap::new());
        Self {
            random,
            run,
            rows: vec![row],
            limits,
            outputs,
            stored,
            calls: 0,
            shortened: 0,
            summaries: 0,
        }
    }

    fn apply(&mut self, entry: JournalEntry) {
        let row = JournalRow::new(Timestamp::from_unix_millis(0), entry);
        self.run.apply(row.clone()).unwrap_or_else(|error| panic!("{error}: {row:?}"));
        self.rows.push(row);
    }

    fn input(&mut self) {
        let mut content = vec![Content::Text(self.random.text(400))];
        if self.random.percent(20) {
            content.push(Content::Image { data: vec![1; 9], mime_type: "image/png".to_owned() });
        }
        self.apply(JournalEntry::Input {
            items: vec![Item::Input(Input { role: Role::User, content })],
        });
    }

    fn ask(&mut self, round: u32, attempt: u32) {
        let last = None;
        self.apply(JournalEntry::ModelRequested { round, attempt, model: "m".to_owned(), last });
        if self.random.percent(8) {
            let context_exceeded = self.random.percent(50);
            self.apply(lost(context_exceeded));
            return;
        }
        let mut items = Vec::new();
        if self.random.percent(50) {
            let text = self.random.text(300);
            let message = serde_json::json!({"role": "assistant", "content": text});
            items.push(ModelItem::read(Wire::Chat, "test", message.to_string()).unwrap());
        }
        let calls = if items.is_empty() { 1 + self.random.below(3) } else { self.random.below(4) };
        for _ in 0..calls {
            self.calls += 1;
            let arguments =
                serde_json::json!({"number": self.calls, "text": self.random.text(200)});
            let call = serde_json::json!({"id": format!("c{}", self.calls), "type": "function",
                "function": {"name": "look", "arguments": arguments.to_string()}});
            items.push(ModelItem::read(Wire::Chat, "test", call.to_string()).unwrap());
        }
        let usage = self.random.percent(80).then(|| {
            // Providers count differently from the estimate.
            let tokens =
                self.run.context_tokens(self.limits.head) * (70 + self.random.below(90)) / 100;
            let mut usage = Usage::default();
            (usage.input, usage.output) = (tokens, self.random.below(100));
            usage
        });
        let stop = if calls == 0 { StopReason::End } else { StopReason::Calls };
        let names = BTreeMap::new();
        let hidden = BTreeMap::new();
        self.apply(JournalEntry::ModelAnswered { items, usage, cost: None, stop, names, hidden });
    }

    fn call(&mut self, calls: &[PlannedCall]) {
        let start = |call: &PlannedCall| StartedCall {
            id: call.id.clone(),
            repeatable: true,
            terminal: false,
            definition: None,
            again: false,
        };
        self.apply(JournalEntry::CallsStarted { calls: calls.iter().map(start).collect() });
        for call in calls {
            let text = self.random.text(2_000);
            let (id, tool) = (call.id.clone(), Arc::clone(&call.tool));
            let result = if self.random.percent(10) {
                let error = ToolError::new(ErrorKind::Execution, text).with_hint("Try again.");
                ToolResult::failure(id, tool, error, Duration::ZERO)
            } else {
                let mut output = ToolOutput::from(text);
                if self.random.percent(10) {
                    let image =
                        Content::Image { data: vec![2; 9], mime_type: "image/png".to_owned() };
                    output = output.with_content(image);
                }
                ToolResult::success(id, tool, output, Duration::ZERO)
            };
            self.outputs.insert(call.id.clone(), whole_text(&result));
            self.apply(JournalEntry::CallFinished { result: Box::new(result), repetition: false });
        }
    }

    fn compact(&mut self, round: u32, attempt: u32, plan: &CompactionPlan) {
        let mut shortened = Vec::new();
        for output in &plan.outputs {
            let whole = self.run.old_output(output).unwrap();
            let handle =
                output.handle.clone().unwrap_or_else(|| format!("{:032x}", self.stored.len()));
            assert_eq!(output.handle.is_some(), self.stored.contains_key(&handle));
            self.stored.entry(handle.clone()).or_insert_with(|| whole.clone());
            let text = short_text(&whole, &handle);
            shortened.push(ShortenedOutput {
                group: output.group,
                call: output.call.clone(),
                handle,
                text,
            });
        }
        let mut summary = None;
        if !plan.left_out.is_empty() {
            self.apply(JournalEntry::SummaryRequested { round, attempt, model: "m".to_owned() });
            if self.random.percent(10) {
                return self.apply(lost(false));
            }
            let told = transcript(self.run.left_out(plan), &shortened, 5_000);
            assert!(told.len() < 7_000, "{}", told.len());
            let text = self.random.text(200);
            summary = Some(WrittenSummary { text, usage: None, cost: None });
            shortened.retain(|output| !plan.left_out.contains(&output.group));
            self.summaries += 1;
        }
        self.shortened += u32::try_from(shortened.len()).unwrap();
        let before: Vec<Vec<Item>> = self.run.conversation().to_vec();
        let entry = self.run.compacted(plan, shortened, summary, self.limits.head).unwrap();
        self.apply(entry);
        self.check_kept(&before);
    }

    /// The last two rounds and what the program said stay as they are; the user's last message stays.
    fn check_kept(&self, before: &[Vec<Item>]) {
        let now = self.run.conversation();
        let answers =
            before.iter().enumerate().filter(|(_, group)| matches!(group[0], Item::Model(_)));
        let answers: Vec<usize> = answers.map(|(index, _)| index).collect();
        if let [.., second, _] = answers[..] {
            assert!(now.ends_with(&before[second..]));
        }
        let texts = |groups: &[Vec<Item>], wanted: Role| -> Vec<String> {
            let text = |item: &Item| match item {
                Item::Input(input) if input.role == wanted => {
                    Some(input.content[0].as_text().into_owned())
                }
                _ => None,
            };
            groups.iter().flatten().filter_map(text).collect()
        };
        assert_eq!(texts(now, Role::System), texts(before, Role::System));
        let users = texts(before, Role::User);
        let last = users.iter().rfind(|text| !text.starts_with("[Summary")).unwrap();
        assert!(texts(now, Role::User).contains(last));
    }

    /// Every wire takes the conversation, which it does only if calls and results are in pairs, and every output that was
    /// shortened can be read.
    fn check(&self) {
        let wire = Wire::ALL[self.rows.len() % 3];
        let mut conversation = Conversation::new(wire, &RequestHead::new("m", "test")).unwrap();
        for group in self.run.conversation() {
            conversation.push(group).unwrap();
        }
        conversation.request(&ToolChoice::Auto).unwrap();
        for item in self.run.conversation().iter().flatten() {
            let Item::Result(result) = item else { continue };
            let whole = &self.outputs[result.call_id()];
            if result.truncated() {
                let text = whole_text(result);
                let (_, note) = text.split_once("{\"handle\":\"").unwrap();
                let (handle, _) = note.split_once('"').unwrap();
                assert_eq!(&self.stored[handle], whole);
            } else {
                assert_eq!(&whole_text(result), whole);
            }
        }
    }

    fn play(&mut self) {
        self.input();
        let mut checked = 0;
        for _ in 0..30 {
            match self.run.next_within(Some(&self.limits)) {
                Step::Append(entries) => entries.into_iter().for_each(|entry| self.apply(entry)),
                Step::Ask { round, attempt, .. } => {
                    if self.run.compactions() > checked {
                        checked = self.run.compactions();
                        self.check();
                    }
                    if self.random.percent(10) {
                        self.input();
                    } else {
                        self.ask(round, attempt);
                    }
                }
                Step::Compact { round, attempt, plan } => self.compact(round, attempt, &plan),
                Step::Call(calls) => self.call(&calls),
                Step::Over if self.random.percent(50) => self.input(),
                Step::Over => break,
                Step::Paused => self.apply(JournalEntry::Resumed),
                step @ Step::Wait => panic!("{step:?}"),
            }
        }
    }
}

fn lost(context_exceeded: bool) -> JournalEntry {
    let reason = "it was lost".to_owned();
    JournalEntry::ModelLost { reason, began: false, shown_chars: 0, context_exceeded }
}

/// Plays histories; returns how many outputs became short, how many summaries there were, and how many runs ended because
/// their conversation was too long.
fn play(seeds: std::ops::Range<u64>) -> [u32; 3] {
    let mut counts = [0; 3];
    for seed in seeds {
        let mut history = History::new(seed);
        history.play();
        counts[0] += history.shortened;
        counts[1] += history.summaries;
        counts[2] += u32::from(matches!(
            history.run.outcome(),
            Some(Outcome::Failed { reason: FailureReason::ContextExceeded, .. })
        ));
        if seed % 16 == 0 {
            let rows = history.rows.iter().map(|row| {
                let text = serde_json::to_string(row).unwrap();
                serde_json::from_str::<JournalRow>(&text).unwrap()
            });
            let folded = AgentRun::fold(rows).unwrap();
            let limits = Some(&history.limits);
            assert_eq!(folded.conversation(), history.run.conversation());
            assert_eq!(folded.next_within(limits), history.run.next_within(limits));
        }
    }
    counts
}

#[test]
fn ten_thousand_random_histories_lose_no_call_and_no_output() {
    let [shortened, summaries, too_long] = std::thread::scope(|scope| {
        let threads =
            (0..4_u64).map(|part| scope.spawn(move || play(part * 2_500..(part + 1) * 2_500)));
        let threads: Vec<_> = threads.collect();
        threads.into_iter().fold([0; 3], |sum, thread| {
            let counts = thread.join().unwrap();
            std::array::from_fn(|at| sum[at] + counts[at])
        })
    });
    println!("{shortened} outputs shortened, {summaries} summaries, {too_long} runs too long");
    assert!(shortened > 2_000 && summaries > 2_000 && too_long > 100, "too few to be a test");
}
