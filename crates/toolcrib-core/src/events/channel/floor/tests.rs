//! Every interleaving of three calls, against the rule written down another way.

use std::collections::HashMap;

use crate::events::channel::floor::{
    Floor, FloorLimits, FloorTime, NextWord, OverflowKey, SayResult,
};

/// What a call does, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FloorAct {
    Announce,
    Say,
    End,
}
use FloorAct::{Announce, End, Say};

/// A word: which call said it, and in which step of the schedule.
type Word = (usize, usize);

/// One step of a schedule: which call acts, and how.
type FloorStep = (usize, FloorAct);

/// All ways in which the scripts can run beside each other.
fn interleavings(scripts: &[&[FloorAct]], each: &mut dyn FnMut(&[FloorStep])) {
    fn go(
        scripts: &[&[FloorAct]],
        done: &mut [usize],
        steps: &mut Vec<FloorStep>,
        each: &mut dyn FnMut(&[FloorStep]),
    ) {
        let mut is_over = true;
        for call in 0..scripts.len() {
            if let Some(act) = scripts[call].get(done[call]) {
                is_over = false;
                done[call] += 1;
                steps.push((call, *act));
                go(scripts, done, steps, each);
                steps.pop();
                done[call] -= 1;
            }
        }
        if is_over {
            each(steps);
        }
    }
    go(scripts, &mut vec![0; scripts.len()], &mut Vec::new(), each);
}

/// The rule, looking back on a whole schedule: who speaks in which order, and what of it can be
/// seen after each step.
struct Model<'a> {
    steps: &'a [FloorStep],
    order: Vec<usize>,
}

impl<'a> Model<'a> {
    fn new(steps: &'a [FloorStep], moment: impl Fn(usize) -> u64) -> Self {
        let step_of = |call, act| steps.iter().position(|step| *step == (call, act));
        // Of each call that speaks: the step of its first word and that of its end.
        let mut rest: Vec<(usize, usize, usize)> = (0..3)
            .filter_map(|call| Some((step_of(call, Say)?, step_of(call, End)?, call)))
            .collect();
        let mut order = Vec::new();
        let mut free_from = 0;
        while !rest.is_empty() {
            let waits = rest.iter().filter(|(first, ..)| *first < free_from);
            let next = waits
                .min_by_key(|(first, _, call)| (moment(*first), *call))
                .or_else(|| rest.iter().min())
                .copied()
                .unwrap();
            rest.retain(|other| *other != next);
            free_from = free_from.max(next.1);
            order.push(next.2);
        }
        Self { steps, order }
    }

    fn seen_after(&self, step: usize) -> Vec<Word> {
        let so_far = &self.steps[..=step];
        let mut seen = Vec::new();
        for &call in &self.order {
            if !so_far.contains(&(call, Say)) {
                break;
            }
            let words = so_far.iter().enumerate();
            let words = words.filter(|(_, act)| act.0 == call && act.1 != End);
            seen.extend(words.map(|(at, _)| (call, at)));
            if !so_far.contains(&(call, End)) {
                break;
            }
        }
        seen
    }
}

/// How the reader reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// Everything, after every step.
    Eagerly,
    /// One word after every step, and the rest at the end.
    Slowly,
    /// Everything, at the end.
    Late,
    /// It goes away before this step; another comes at the end.
    LeavesBefore(usize),
}

struct Shell {
    floor: Floor<Word>,
    overflow: HashMap<OverflowKey, Word>,
    read: Vec<Word>,
}

impl Shell {
    fn settle(&mut self, said: &SayResult<Word>) {
        match said {
            SayResult::Unheard => panic!("a word of a call that has not ended was not heard"),
            SayResult::Kept => {}
            SayResult::Over(key, word) => assert_eq!(self.overflow.insert(*key, *word), None),
        }
    }

    fn read(&mut self, most: usize) -> NextWord<Word> {
        for _ in 0..most {
            match self.floor.take() {
                NextWord::Word(word) => self.read.push(word),
                NextWord::Over(key) => self.read.push(self.overflow.remove(&key).unwrap()),
                other => return other,
            }
        }
        NextWord::Nothing
    }
}

fn check(steps: &[FloorStep], coarse: bool, room: FloorLimits, reading: Reading) {
    // Words of one moment are said at once.
    let moment = |step: usize| if coarse { step as u64 / 4 } else { step as u64 };
    let model = Model::new(steps, moment);
    let mut shell = Shell { floor: Floor::new(room), overflow: HashMap::new(), read: Vec::new() };
    // They join in another order than that of the calls.
    let [third, first, second] = [2, 0, 1].map(|position| shell.floor.join(position));
    let ids = [first, second, third];
    shell.floor.close();

    for (at, &(call, act)) in steps.iter().enumerate() {
        if reading == Reading::LeavesBefore(at) {
            let moved = shell.floor.detach();
            shell.overflow.extend(moved);
        }
        let word = (call, at);
        match act {
            Announce => {
                let said = shell.floor.announce(ids[call], word, 1);
                shell.settle(&said);
            }
            Say => {
                let said = shell.floor.say(ids[call], FloorTime(moment(at)), word, 1);
                shell.settle(&said);
            }
            End => {
                for key in shell.floor.end(ids[call]) {
                    assert!(shell.overflow.remove(&key).is_some());
                }
            }
        }
        let seen = model.seen_after(at);
        let speaker = seen.last().map(|(call, _)| *call);
        for (other, &id) in ids.iter().enumerate() {
            assert!(
                !shell.floor.must_wait(id) || Some(other) == speaker,
                "{other} waits: {steps:?}"
            );
        }
        match reading {
            Reading::Eagerly => {
                shell.read(usize::MAX);
                assert_eq!(shell.read, seen, "after step {at} of {steps:?}");
            }
            Reading::Slowly => {
                shell.read(1);
                assert_eq!(shell.read, seen[..shell.read.len()], "after step {at} of {steps:?}");
            }
            Reading::Late | Reading::LeavesBefore(_) => {}
        }
        assert_eq!(shell.floor.unread(), seen.len() - shell.read.len(), "{at} of {steps:?}");
    }
    shell.floor.attach();
    let end = shell.read(usize::MAX);
    assert_eq!(end, NextWord::End, "{steps:?}");
    assert_eq!(shell.read, model.seen_after(steps.len() - 1), "{steps:?}");
    assert!(shell.overflow.is_empty(), "{steps:?}");
}

fn check_all(scripts: [&[FloorAct]; 3]) -> usize {
    let mut schedules = 0;
    interleavings(&scripts, &mut |steps| {
        schedules += 1;
        let leaves = Reading::LeavesBefore(schedules % steps.len());
        for coarse in [false, true] {
            for room in [FloorLimits { words: 1, bytes: 100 }, FloorLimits { words: 100, bytes: 2 }]
            {
                for reading in [Reading::Eagerly, Reading::Slowly, Reading::Late, leaves] {
                    check(steps, coarse, room, reading);
                }
            }
        }
    });
    schedules
}

#[test]
fn three_calls_that_speak_are_presented_one_after_the_other() {
    assert_eq!(check_all([&[Say, Say, End]; 3]), 1680);
}

#[test]
fn announcements_go_ahead_of_the_first_word_and_do_not_ask_for_the_floor() {
    let announced: &[FloorAct] = &[Announce, Say, End];
    assert_eq!(check_all([announced; 3]), 1680);
    assert_eq!(
        check_all([&[Announce, Say, Say, End], &[Announce, Announce, Say, End], &[End]]),
        630
    );
}

#[test]
fn a_call_that_says_nothing_is_passed_over() {
    assert_eq!(check_all([&[Say, Say, End], &[Say, Say, End], &[End]]), 140);
    assert_eq!(check_all([&[Say, Say, End], &[Announce, End], &[End]]), 60);
    assert_eq!(check_all([&[Announce, End], &[End], &[Announce, End]]), 30);
}

#[test]
fn what_an_overflow_cannot_keep_is_lost_in_its_place() {
    let mut floor = Floor::new(FloorLimits { words: 100, bytes: 2 });
    let (first, second) = (floor.join(0), floor.join(1));
    let say = |floor: &mut Floor<_>, id, word| match floor.say(id, FloorTime(0), word, 1) {
        SayResult::Kept => {}
        SayResult::Over(..) => floor.lose_last(id),
        SayResult::Unheard => panic!("not heard"),
    };
    for word in 1..=3 {
        say(&mut floor, first, word);
    }
    for word in 11..=13 {
        say(&mut floor, second, word);
    }
    assert_eq!((floor.unread(), floor.pending()), (3, 4));
    assert_eq!(floor.take(), NextWord::Word(1));
    say(&mut floor, first, 4);
    floor.end(first);
    assert_eq!(floor.take(), NextWord::Word(2));
    assert_eq!(floor.take(), NextWord::Lost(1));
    assert_eq!(floor.take(), NextWord::Word(4));
    assert_eq!(floor.take(), NextWord::Lost(3));
    assert_eq!(floor.take(), NextWord::Nothing);
    assert_eq!(floor.unread(), 0);

    // The same where a reader leaves and what was in memory cannot be moved.
    say(&mut floor, second, 14);
    say(&mut floor, second, 15);
    let moved = floor.detach().into_iter().map(|(key, _)| key).collect();
    floor.lose(&moved);
    say(&mut floor, second, 16);
    assert_eq!(floor.unread(), 1);
    assert_eq!(floor.take(), NextWord::Lost(3));
    floor.end(second);
    floor.close();
    assert_eq!(floor.take(), NextWord::End);
}

#[test]
fn only_a_crowded_holder_waits_and_only_for_a_reader() {
    let mut floor = Floor::new(FloorLimits { words: 2, bytes: 100 });
    let (first, second) = (floor.join(0), floor.join(1));
    floor.say(first, FloorTime(0), 'a', 1);
    assert!(!floor.must_wait(first));
    floor.say(first, FloorTime(0), 'b', 1);
    for word in 'c'..='z' {
        floor.say(second, FloorTime(0), word, 1);
    }
    assert!(floor.must_wait(first) && !floor.must_wait(second));
    // Who gets the floor with a long line behind it has to wait for it to be read.
    floor.end(first);
    assert!(!floor.must_wait(first) && floor.must_wait(second));
    floor.detach();
    assert!(!floor.must_wait(second));
}

#[test]
fn nobody_joins_a_closed_floor() {
    let mut floor = Floor::new(FloorLimits { words: 2, bytes: 2 });
    floor.close();
    let late = floor.join(0);
    assert_eq!(floor.say(late, FloorTime(0), 'a', 1), SayResult::Unheard);
    floor.end(late);
    assert_eq!(floor.take(), NextWord::End);
}
