//! Nested calls that hold one tool's slot while they wait for another's: no circle of them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use toolcrib_tool::ToolName;

/// The nested calls that wait with slots in hand.
///
/// A deadlock needs a circle of "holds A, waits for B". Every such wait is written down before it
/// begins, and the one that would close a circle is refused: with more than one slot per tool it
/// might have come free after all, but the caller can try again, and a deadlock could not.
#[derive(Debug, Default)]
pub(super) struct Waits(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    next: u64,
    waits: Vec<Wait>,
}

#[derive(Debug)]
struct Wait {
    number: u64,
    held: Vec<ToolName>,
    wanted: ToolName,
}

impl Waits {
    /// Writes a wait down until the guard is dropped; `None` if it would close a circle.
    pub(super) fn begin(&self, held: Vec<ToolName>, wanted: &ToolName) -> Option<Waiting<'_>> {
        let mut state = self.lock();
        if state.leads_to(wanted, &held) {
            return None;
        }
        let number = state.next;
        state.next += 1;
        state.waits.push(Wait { number, held, wanted: wanted.clone() });
        Some(Waiting { waits: self, number })
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.lock().waits.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether holders of `from` wait, directly or through others, for one of `goals`.
    fn leads_to(&self, from: &ToolName, goals: &[ToolName]) -> bool {
        let mut reached = vec![from];
        let mut next = 0;
        while let Some(&tool) = reached.get(next) {
            if goals.contains(tool) {
                return true;
            }
            next += 1;
            for wait in self.waits.iter().filter(|wait| wait.held.contains(tool)) {
                if !reached.contains(&&wait.wanted) {
                    reached.push(&wait.wanted);
                }
            }
        }
        false
    }
}

/// A wait that is written down.
#[derive(Debug)]
pub(super) struct Waiting<'w> {
    waits: &'w Waits,
    number: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.waits.lock().waits.retain(|wait| wait.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> ToolName {
        ToolName::new(name).unwrap()
    }

    #[test]
    fn a_circle_is_refused_and_a_chain_is_not() {
        let waits = Waits::default();
        let a_b = waits.begin(vec![name("a")], &name("b")).unwrap();
        let _b_c = waits.begin(vec![name("b")], &name("c")).unwrap();
        assert!(waits.begin(vec![name("c")], &name("a")).is_none());
        assert!(waits.begin(vec![name("d"), name("c")], &name("b")).is_none());
        assert!(waits.begin(vec![name("a")], &name("c")).is_some());
        drop(a_b);
        assert!(waits.begin(vec![name("c")], &name("a")).is_some());
    }
}
