//! The breaker as a table of stories, and against a model that is written differently.

use proptest::prelude::*;
use tokio::time::advance;

use super::*;

const COOLDOWN: Duration = Duration::from_secs(60);

fn tool(name: &str) -> ToolName {
    ToolName::new(name).unwrap()
}

/// Runs a story: `t` a call that times out, `o` one that ends otherwise, `d` one that is dropped,
/// `p` one that must be paused, `T` begins a trial and keeps it, `D`/`X`/`O` drops it, lets it
/// time out, ends it; `.` lets 30 s pass; `r` resets; `c` changes the definition.
async fn story(threshold: u32, story: &str) {
    let breaker = Breaker::new(threshold, COOLDOWN);
    let tool = tool("slow");
    let mut edition = 1;
    let mut trial = None;
    for (place, step) in story.chars().enumerate() {
        let check = || breaker.check(&tool, "ada", edition);
        let passes = || check().unwrap_or_else(|e| panic!("{story}: {place}: paused: {e:?}"));
        match step {
            't' => {
                passes().timed_out();
            }
            'o' => passes().ended(),
            'd' => drop(passes()),
            'p' => assert!(check().is_err(), "{story}: {place}: not paused"),
            'T' => {
                let watch = passes();
                assert!(watch.is_trial(), "{story}: {place}: not a trial");
                trial = Some(watch);
            }
            'D' => drop(trial.take().unwrap()),
            'X' => {
                trial.take().unwrap().timed_out();
            }
            'O' => trial.take().unwrap().ended(),
            '.' => advance(COOLDOWN / 2).await,
            'r' => {
                breaker.reset("slow");
            }
            'c' => edition += 1,
            other => panic!("no such step: {other}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_state_machine_goes_as_told() {
    for (threshold, steps) in [
        // Three in a row open it; anything else between starts the row again.
        (3, "tttpp"),
        (3, "ttottottotttp"),
        (3, "ttdtp"),
        (1, "tp"),
        (0, "tttttttt"),
        // It stays open for the whole cooldown, then one is tried while others stay paused.
        (3, "ttt.p.Tpp"),
        (3, "ttt..TpOttoo"),
        (3, "ttt..TpXp.p.TpOo"),
        // A trial that nobody waits for any more makes room for another.
        (3, "ttt..TpDTpDTO"),
        // Success leaves nothing behind.
        (3, "ttt..TOtto"),
        // Reset and a changed definition close at once, whatever the state.
        (3, "tttprtt"),
        (3, "tttpcttcttc"),
        (3, "ttt..TprtttXp"),
        (3, "ttt..TprooO"),
    ] {
        story(threshold, steps).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_pause_is_told_and_shrinks() {
    let breaker = Breaker::new(1, COOLDOWN);
    let tool = tool("slow");
    breaker.check(&tool, "", 1).unwrap().timed_out();
    assert_eq!(breaker.check(&tool, "", 1).unwrap_err(), Paused::For(COOLDOWN));
    advance(Duration::from_secs(59)).await;
    assert_eq!(breaker.check(&tool, "", 1).unwrap_err(), Paused::For(Duration::from_secs(1)));
    advance(Duration::from_secs(1)).await;
    let _trial = breaker.check(&tool, "", 1).unwrap();
    assert_eq!(breaker.check(&tool, "", 1).unwrap_err(), Paused::WhileTried);
}

#[tokio::test(start_paused = true)]
async fn one_identity_does_not_pause_another_nor_one_tool_the_next() {
    let breaker = Breaker::new(1, COOLDOWN);
    let (slow, quick) = (tool("slow"), tool("quick"));
    breaker.check(&slow, "ada", 1).unwrap().timed_out();
    assert!(breaker.check(&slow, "ada", 1).is_err());
    assert!(breaker.check(&slow, "bob", 1).is_ok());
    assert!(breaker.check(&quick, "ada", 1).is_ok());
}

#[tokio::test(start_paused = true)]
async fn what_began_before_it_opened_changes_nothing() {
    let breaker = Breaker::new(1, COOLDOWN);
    let slow = tool("slow");
    let early = [(); 3].map(|()| breaker.check(&slow, "", 1).unwrap());
    let [first, second, third] = early;
    first.timed_out();
    advance(COOLDOWN / 2).await;
    second.timed_out();
    assert_eq!(breaker.check(&slow, "", 1).unwrap_err(), Paused::For(COOLDOWN / 2));
    third.ended();
    assert!(breaker.check(&slow, "", 1).is_err());
}

#[tokio::test(start_paused = true)]
async fn the_least_recently_used_is_forgotten_beyond_the_cap() {
    let breaker = Breaker::new(1, COOLDOWN);
    let slow = tool("slow");
    let open = |number: usize| {
        let identity = number.to_string();
        breaker.check(&slow, &identity, 1).unwrap().timed_out();
    };
    (0..MAX_ENTRIES).for_each(open);
    assert!(breaker.check(&slow, "0", 1).is_err(), "used, so that 1 is the oldest now");
    open(MAX_ENTRIES);
    assert_eq!(breaker.lock().map.len(), MAX_ENTRIES);
    assert!(breaker.check(&slow, "0", 1).is_err());
    assert!(breaker.check(&slow, "1", 1).is_ok());
    assert!(breaker.check(&slow, "2", 1).is_err());
}

#[tokio::test(start_paused = true)]
async fn success_leaves_no_entry() {
    let breaker = Breaker::new(3, COOLDOWN);
    let slow = tool("slow");
    breaker.check(&slow, "", 1).unwrap().timed_out();
    assert_eq!(breaker.lock().map.len(), 1);
    breaker.check(&slow, "", 1).unwrap().ended();
    assert_eq!(breaker.lock().map.len(), 0);
    assert_eq!(breaker.entries.load(Ordering::Relaxed), 0);
}

/// What happens to the breaker.
#[derive(Debug, Clone)]
enum BreakerStep {
    Begin,
    TimeOut(prop::sample::Index),
    End(prop::sample::Index),
    Drop(prop::sample::Index),
    Pass(u64),
    Reset,
}

fn step() -> impl Strategy<Value = BreakerStep> {
    let call = any::<prop::sample::Index>;
    prop_oneof![
        6 => Just(BreakerStep::Begin),
        5 => call().prop_map(BreakerStep::TimeOut),
        2 => call().prop_map(BreakerStep::End),
        1 => call().prop_map(BreakerStep::Drop),
        3 => (1_u64..50).prop_map(BreakerStep::Pass),
        1 => Just(BreakerStep::Reset),
    ]
}

/// The breaker told again, with seconds for a clock and a list of events for a state.
#[derive(Default)]
struct Model {
    now: u64,
    row: u32,
    open_until: Option<u64>,
    /// The call that is the trial now.
    trial: Option<usize>,
}

impl Model {
    /// Whether a call passes, and as a trial.
    fn begin(&mut self, call: usize) -> Option<bool> {
        match self.open_until {
            None => Some(false),
            Some(until) if self.now >= until && self.trial.is_none() => {
                self.trial = Some(call);
                Some(true)
            }
            Some(_) => None,
        }
    }

    fn time_out(&mut self, call: usize, was_trial: bool) {
        if self.trial == Some(call) {
            self.trial = None;
            self.open_until = Some(self.now + 60);
        } else if !was_trial && self.open_until.is_none() {
            self.row += 1;
            if self.row == 3 {
                self.open_until = Some(self.now + 60);
            }
        }
    }

    fn end(&mut self, call: usize, was_trial: bool) {
        if self.trial == Some(call) || (!was_trial && self.open_until.is_none()) {
            *self = Self { now: self.now, ..Self::default() };
        }
    }
}

proptest! {
    #[test]
    fn it_does_what_the_model_does(steps in prop::collection::vec(step(), 0..120)) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let breaker = Breaker::new(3, COOLDOWN);
            let slow = tool("slow");
            let mut model = Model::default();
            let mut running = Vec::new();
            for (number, step) in steps.into_iter().enumerate() {
                let mut take = |index: prop::sample::Index| -> Option<(usize, Watch<'_>)> {
                    (!running.is_empty()).then(|| running.swap_remove(index.index(running.len())))
                };
                match step {
                    BreakerStep::Begin => {
                        let watch = breaker.check(&slow, "ada", 1).ok();
                        let passed = watch.as_ref().map(Watch::is_trial);
                        prop_assert_eq!(passed, model.begin(number));
                        running.extend(watch.map(|watch| (number, watch)));
                    }
                    BreakerStep::TimeOut(index) => if let Some((call, watch)) = take(index) {
                        model.time_out(call, watch.is_trial());
                        watch.timed_out();
                    },
                    BreakerStep::End(index) => if let Some((call, watch)) = take(index) {
                        model.end(call, watch.is_trial());
                        watch.ended();
                    },
                    BreakerStep::Drop(index) => if let Some((call, watch)) = take(index) {
                        drop(watch);
                        if model.trial == Some(call) {
                            model.trial = None;
                        }
                    },
                    BreakerStep::Pass(seconds) => {
                        advance(Duration::from_secs(seconds)).await;
                        model.now += seconds;
                    }
                    BreakerStep::Reset => {
                        breaker.reset("slow");
                        model = Model { now: model.now, ..Model::default() };
                    }
                }
            }
            Ok(())
        })?;
    }
}

#[tokio::test(start_paused = true)]
async fn a_paused_tool_is_listed_with_the_time_left_until_its_next_call_passes() {
    let breaker = Breaker::new(1, COOLDOWN);
    let tool = tool("slow");
    assert!(breaker.paused().is_empty());
    breaker.check(&tool, "ada", 1).unwrap().timed_out();
    advance(Duration::from_secs(20)).await;
    breaker.check(&tool, "ben", 1).unwrap().timed_out();
    advance(Duration::from_secs(10)).await;
    assert_eq!(breaker.paused(), [("slow".to_owned(), Duration::from_secs(50))].into());
    breaker.reset("slow");
    assert!(breaker.paused().is_empty());
    breaker.check(&tool, "ada", 1).unwrap().timed_out();
    advance(COOLDOWN).await;
    assert!(breaker.paused().is_empty(), "the next call passes");
}
