//! Compiles system call filters into seccomp BPF programs.
//!
//! The filter finds the call number by binary search, not by comparing one number after another.
//! When a filter is installed, the kernel runs it for every call number to learn which ones it can
//! always allow; with a hundred comparisons in a row, that takes longer than loading the program.

pub(crate) mod metadata;
pub(crate) mod syscalls;

use std::collections::BTreeMap;
use std::io;

use libc::{c_long, sock_filter};

/// The action for a call.
#[derive(Debug, Clone, PartialEq, Eq)]
enum FilterAction {
    Allowed,
    /// It fails with this `errno`.
    Fails(i32),
    /// It fails with `EPERM` if all conditions of one of these rules hold.
    FailsIf(Vec<Rule>),
}

/// Conditions that must all hold.
pub(super) type Rule = Vec<Condition>;

/// A condition on the lower 32 bits of an argument, the part that calls with numbers use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Condition {
    /// The index of the argument, from 0 to 5.
    argument: u8,
    test: Comparison,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Is(u32),
    IsNot(u32),
    /// The masked argument equals the second number; the first is the mask.
    Masked(u32, u32),
    /// The masked argument differs from the second number; the first is the mask.
    MaskedNot(u32, u32),
}

/// The argument is this value.
pub(super) const fn is(argument: u8, value: u32) -> Condition {
    Condition { argument, test: Comparison::Is(value) }
}

/// The argument is another value.
pub(super) const fn is_not(argument: u8, value: u32) -> Condition {
    Condition { argument, test: Comparison::IsNot(value) }
}

/// The argument has none of these bits.
pub(super) const fn lacks(argument: u8, bits: u32) -> Condition {
    Condition { argument, test: Comparison::Masked(bits, 0) }
}

/// The argument has at least one of these bits.
pub(super) const fn has_any(argument: u8, bits: u32) -> Condition {
    Condition { argument, test: Comparison::MaskedNot(bits, 0) }
}

/// The argument differs from this value in the bits of the mask.
pub(super) const fn differs(argument: u8, mask: u32, value: u32) -> Condition {
    Condition { argument, test: Comparison::MaskedNot(mask, value) }
}

/// A filter that refuses some calls and allows everything else.
#[derive(Debug, Default)]
pub(super) struct Filter {
    verdicts: BTreeMap<c_long, FilterAction>,
}

impl Filter {
    /// Makes these calls fail with `EPERM`.
    pub(super) fn refuse(&mut self, calls: &[c_long]) {
        self.fail(calls, libc::EPERM);
    }

    /// Makes these calls fail with that `errno`.
    pub(super) fn fail(&mut self, calls: &[c_long], error: i32) {
        self.verdicts.extend(calls.iter().map(|call| (*call, FilterAction::Fails(error))));
    }

    /// Makes the call fail with `EPERM` if one of these rules, or one of its earlier rules, holds.
    pub(super) fn refuse_if(&mut self, call: c_long, rules: impl IntoIterator<Item = Rule>) {
        let verdict = self.verdicts.entry(call).or_insert(FilterAction::Allowed);
        if let FilterAction::FailsIf(known) = verdict {
            known.extend(rules);
        } else if *verdict == FilterAction::Allowed {
            *verdict = FilterAction::FailsIf(rules.into_iter().collect());
        }
    }

    /// Compiles the filter. Call numbers above `newest` do not exist. A call of another
    /// architecture, whose numbers have other meanings, ends the process.
    pub(super) fn compile(&self, newest: u32) -> io::Result<Vec<sock_filter>> {
        let architecture = ARCHITECTURE.ok_or(io::ErrorKind::Unsupported)?;
        let mut program = vec![
            load(ARCHITECTURE_AT),
            jump(IF_EQUAL, architecture, 1, 0),
            answer(libc::SECCOMP_RET_KILL_PROCESS),
            load(NUMBER_AT),
        ];
        program.extend(choose(&self.spans(newest))?);
        Ok(program)
    }

    /// Ranges of call numbers with the same action; each range lasts until the next number, and the
    /// first is 0.
    fn spans(&self, newest: u32) -> Vec<(u32, &FilterAction)> {
        const ALLOWED: &FilterAction = &FilterAction::Allowed;
        const UNKNOWN: &FilterAction = &FilterAction::Fails(libc::ENOSYS);
        let mut spans = vec![(0, ALLOWED)];
        let mut next = |from: u32, verdict| match spans.last_mut() {
            Some((start, last)) if *start == from => *last = verdict,
            Some((_, last)) if *last == verdict => {}
            _ => spans.push((from, verdict)),
        };
        for (call, verdict) in &self.verdicts {
            // A call number that this architecture lacks needs no rule.
            let Some(call) = u32::try_from(*call).ok().filter(|call| *call <= newest) else {
                continue;
            };
            next(call, verdict);
            next(call + 1, ALLOWED);
        }
        next(newest + 1, UNKNOWN);
        spans
    }
}

// Instructions: class, size and source in one (`linux/bpf_common.h`).
const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const ALWAYS: u16 = 0x05;
const IF_EQUAL: u16 = 0x15;
const IF_NOT_LESS: u16 = 0x35;
const ANSWER: u16 = 0x06;

// Offsets into `struct seccomp_data`. On all architectures below, the lower half comes first.
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
const ARGUMENTS_AT: u32 = 16;

/// The kernel's identifier of this architecture (`linux/audit.h`).
const ARCHITECTURE: Option<u32> = if cfg!(target_arch = "x86_64") {
    Some(0xc000_003e)
} else if cfg!(target_arch = "aarch64") {
    Some(0xc000_00b7)
} else if cfg!(target_arch = "riscv64") {
    Some(0xc000_00f3)
} else {
    None
};

const fn load(at: u32) -> sock_filter {
    sock_filter { code: LOAD, jt: 0, jf: 0, k: at }
}

/// Skips the first number of instructions if the condition holds, otherwise the second.
const fn jump(condition: u16, value: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code: condition, jt, jf, k: value }
}

const fn answer(what: u32) -> sock_filter {
    sock_filter { code: ANSWER, jt: 0, jf: 0, k: what }
}

const fn failure(error: i32) -> sock_filter {
    answer(libc::SECCOMP_RET_ERRNO | error.cast_unsigned())
}

/// Compiles the search for the range of a call number, and the actions.
fn choose(spans: &[(u32, &FilterAction)]) -> io::Result<Vec<sock_filter>> {
    let (lower, upper) = spans.split_at(spans.len() / 2);
    let [(first, verdict), ..] = upper else { return Ok(Vec::new()) };
    if lower.is_empty() {
        return judge(verdict);
    }
    let (lower, upper) = (choose(lower)?, choose(upper)?);
    let mut program = if let Ok(over) = u8::try_from(lower.len()) {
        vec![jump(IF_NOT_LESS, *first, over, 0)]
    } else {
        // A conditional jump offset is one byte.
        let over = u32::try_from(lower.len()).map_err(io::Error::other)?;
        vec![jump(IF_NOT_LESS, *first, 0, 1), jump(ALWAYS, over, 0, 0)]
    };
    program.extend(lower);
    program.extend(upper);
    Ok(program)
}

fn judge(verdict: &FilterAction) -> io::Result<Vec<sock_filter>> {
    let rules = match verdict {
        FilterAction::Allowed => &[],
        FilterAction::Fails(error) => return Ok(vec![failure(*error)]),
        FilterAction::FailsIf(rules) => rules.as_slice(),
    };
    let mut program = Vec::new();
    for rule in rules {
        // Compiled backwards: a condition that fails skips the rest of its rule.
        let mut rest = vec![failure(libc::EPERM)];
        for Condition { argument, test } in rule.iter().rev() {
            let over = u8::try_from(rest.len()).map_err(io::Error::other)?;
            let compared = match test {
                Comparison::Is(value) | Comparison::Masked(_, value) => {
                    jump(IF_EQUAL, *value, 0, over)
                }
                Comparison::IsNot(value) | Comparison::MaskedNot(_, value) => {
                    jump(IF_EQUAL, *value, over, 0)
                }
            };
            let mut before = vec![load(ARGUMENTS_AT + 8 * u32::from(*argument))];
            if let Comparison::Masked(mask, _) | Comparison::MaskedNot(mask, _) = test {
                before.push(sock_filter { code: AND, jt: 0, jf: 0, k: *mask });
            }
            before.push(compared);
            rest.splice(0..0, before);
        }
        program.extend(rest);
    }
    program.push(answer(libc::SECCOMP_RET_ALLOW));
    Ok(program)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NEWEST: u32 = 469;

    /// Interprets a program as the kernel would.
    fn run(program: &[sock_filter], architecture: u32, number: u32, arguments: [u64; 6]) -> u32 {
        let (mut at, mut accumulator) = (0, 0);
        loop {
            let sock_filter { code, jt, jf, k } = program[at];
            at += 1;
            let over = |holds: bool| usize::from(if holds { jt } else { jf });
            match code {
                LOAD if k == NUMBER_AT => accumulator = number,
                LOAD if k == ARCHITECTURE_AT => accumulator = architecture,
                LOAD => {
                    let argument = arguments[(k - ARGUMENTS_AT) as usize / 8];
                    assert_eq!((k - ARGUMENTS_AT) % 8, 0, "the lower half is at its start");
                    accumulator = u32::try_from(argument & u64::from(u32::MAX)).unwrap();
                }
                AND => accumulator &= k,
                ALWAYS => at += k as usize,
                IF_EQUAL => at += over(accumulator == k),
                IF_NOT_LESS => at += over(accumulator >= k),
                ANSWER => return k,
                other => panic!("no such instruction: {other:#x}"),
            }
        }
    }

    /// The expected action, from the rules.
    fn judged(filter: &Filter, number: u32, arguments: [u64; 6]) -> u32 {
        if number > NEWEST {
            return failure(libc::ENOSYS).k;
        }
        let holds = |condition: &Condition| {
            #[expect(clippy::cast_possible_truncation, reason = "that is what is looked at")]
            let argument = arguments[usize::from(condition.argument)] as u32;
            match condition.test {
                Comparison::Is(value) => argument == value,
                Comparison::IsNot(value) => argument != value,
                Comparison::Masked(mask, value) => argument & mask == value,
                Comparison::MaskedNot(mask, value) => argument & mask != value,
            }
        };
        match filter.verdicts.get(&c_long::from(number)) {
            Some(FilterAction::Fails(error)) => failure(*error).k,
            Some(FilterAction::FailsIf(rules))
                if rules.iter().any(|rule| rule.iter().all(holds)) =>
            {
                failure(libc::EPERM).k
            }
            _ => libc::SECCOMP_RET_ALLOW,
        }
    }

    fn conditions() -> impl Strategy<Value = Condition> {
        let test = prop_oneof![
            (0..4_u32).prop_map(Comparison::Is),
            (0..4_u32).prop_map(Comparison::IsNot),
            (0..4_u32, 0..4_u32).prop_map(|(mask, value)| Comparison::Masked(mask, value & mask)),
            (0..4_u32, 0..4_u32)
                .prop_map(|(mask, value)| Comparison::MaskedNot(mask, value & mask)),
        ];
        (0..6_u8, test).prop_map(|(argument, test)| Condition { argument, test })
    }

    fn filters() -> impl Strategy<Value = Filter> {
        let rules = prop::collection::vec(prop::collection::vec(conditions(), 1..4), 1..4);
        let verdict = prop_oneof![
            Just(FilterAction::Allowed),
            (1..100).prop_map(FilterAction::Fails),
            rules.prop_map(FilterAction::FailsIf),
        ];
        prop::collection::btree_map(0..c_long::from(NEWEST) + 9, verdict, 0..150)
            .prop_map(|verdicts| Filter { verdicts })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn every_number_gets_the_verdict_that_was_asked_for(
            filter in filters(),
            arguments in prop::collection::vec(
                prop_oneof![0..4_u64, Just(1 << 32), Just(u64::MAX)], 6,
            ),
        ) {
            let program = filter.compile(NEWEST).unwrap();
            let arguments = arguments.try_into().unwrap();
            for number in (0..NEWEST + 12).chain([0x4000_0000, 0x4000_003b, u32::MAX]) {
                let verdict = run(&program, ARCHITECTURE.unwrap(), number, arguments);
                prop_assert_eq!(verdict, judged(&filter, number, arguments), "number {}", number);
            }
        }
    }

    #[test]
    fn calls_of_another_architecture_end_the_process() {
        let program = Filter::default().compile(NEWEST).unwrap();
        let other = 0x4000_0003;
        assert_eq!(run(&program, other, 1, [0; 6]), libc::SECCOMP_RET_KILL_PROCESS);
    }

    #[test]
    fn a_number_is_found_in_few_steps() {
        let mut filter = Filter::default();
        let every_other: Vec<c_long> = (0..c_long::from(NEWEST)).step_by(2).collect();
        filter.refuse(&every_other);
        let program = filter.compile(NEWEST).unwrap();
        assert!(program.len() < 4 * NEWEST as usize, "{}", program.len());
        let mut deepest = 0;
        for number in 0..=NEWEST {
            let (mut at, mut steps) = (4, 0);
            while program[at].code != ANSWER {
                let sock_filter { code, jt, jf, k } = program[at];
                let holds = code == IF_NOT_LESS && number >= k;
                at += 1 + if code == ALWAYS {
                    k as usize
                } else {
                    usize::from(if holds { jt } else { jf })
                };
                steps += 1;
            }
            deepest = deepest.max(steps);
        }
        assert!(deepest <= 12, "{deepest}");
    }
}
