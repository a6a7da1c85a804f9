//! Which tools keep the thread that calls them, so that they hold up the lines behind their calls.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// A tool that keeps its thread for longer, twice in a row, is not called between two lines,
const HEAVY: Duration = Duration::from_millis(1);
/// for as long as this. Once happens to any tool whose thread loses its processor.
const HEAVY_FOR: Duration = Duration::from_secs(1);

/// The tools that kept their thread when they were called last. Names of tools there are, or were.
#[derive(Debug, Default)]
pub(super) struct SlowTools(HashMap<Box<str>, Slow>);

#[derive(Debug)]
struct Slow {
    begun: Instant,
    /// Not only the last time.
    again: bool,
}

impl SlowTools {
    /// Whether a tool is better called elsewhere for now.
    pub(super) fn has(&self, name: &str) -> bool {
        !self.0.is_empty() && self.has_at(name, Instant::now())
    }

    fn has_at(&self, name: &str, now: Instant) -> bool {
        self.0.get(name).is_some_and(|slow| slow.again && now < slow.begun + HEAVY_FOR)
    }

    /// Notes how long a call kept its thread, if there is such a tool.
    pub(super) fn note(
        &mut self,
        name: &str,
        begun: Instant,
        kept: Duration,
        is_known: impl FnOnce() -> bool,
    ) {
        if kept > HEAVY {
            let again = self.0.contains_key(name);
            if is_known() {
                self.0.insert(name.into(), Slow { begun, again });
            }
        } else if !self.0.is_empty() {
            self.0.remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK: Duration = HEAVY;
    const SLOW: Duration = HEAVY.saturating_mul(2);

    #[test]
    fn a_tool_is_avoided_when_it_was_slow_twice_in_a_row() {
        let mut tools = SlowTools::default();
        let now = Instant::now();
        for kept in [SLOW, QUICK, SLOW] {
            tools.note("a", now, kept, || true);
            assert!(!tools.has_at("a", now), "{kept:?}");
        }
        tools.note("a", now, SLOW, || true);
        assert!(tools.has_at("a", now) && !tools.has_at("b", now));
        tools.note("b", now, SLOW, || false);
        assert_eq!(tools.0.len(), 1);
    }

    #[test]
    fn it_gets_another_chance_after_a_while() {
        let mut tools = SlowTools::default();
        let begun = Instant::now();
        tools.note("a", begun, SLOW, || true);
        tools.note("a", begun, SLOW, || true);
        let later = begun + HEAVY_FOR;
        assert!(tools.has_at("a", begun + HEAVY_FOR / 2) && !tools.has_at("a", later));
        // And no second one, if it has not changed.
        tools.note("a", later, SLOW, || true);
        assert!(tools.has_at("a", later));
        tools.note("a", later, QUICK, || true);
        assert!(!tools.has_at("a", later) && tools.0.is_empty());
    }
}
