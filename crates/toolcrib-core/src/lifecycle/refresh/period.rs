//! Periodic refreshes.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::future::{Either, select};
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::time::{Instant, sleep_until};

use super::Refresher;

/// How often the registry is checked for added or removed tools; without changes, this reads one
/// pointer.
const LOOK: Duration = Duration::from_secs(1);

/// A tool with a period.
#[derive(Debug, Clone, Copy)]
struct Periodic {
    every: Duration,
    due: Instant,
    being_asked: bool,
}

/// Refreshes every tool with a period, until the executor is gone.
pub(super) async fn serve(refresher: &Refresher) {
    let mut tools: HashMap<String, Periodic> = HashMap::new();
    let mut generation = None;
    let mut asking = FuturesUnordered::new();
    loop {
        let now = Instant::now();
        {
            let Some(shared) = refresher.executor.upgrade() else { return };
            let snapshot = shared.registry.snapshot();
            if generation != Some(snapshot.generation()) {
                generation = Some(snapshot.generation());
                let stated = snapshot.entries().filter_map(|entry| {
                    Some((entry.name().to_owned(), entry.definition.refresh_every()?))
                });
                tools = merged(&tools, stated, now);
            }
        }
        for (name, tool) in &mut tools {
            if tool.due <= now && !tool.being_asked {
                tool.being_asked = true;
                let name = name.clone();
                asking.push(async move {
                    refresher.refresh_one(&name).await;
                    name
                });
            }
        }
        let waiting = tools.values().filter(|tool| !tool.being_asked).map(|tool| tool.due);
        let wake = waiting.min().map_or(now + LOOK, |due| due.min(now + LOOK));
        let sleep = std::pin::pin!(sleep_until(wake));
        if asking.is_empty() {
            sleep.await;
        } else if let Either::Left((Some(name), _)) = select(asking.next(), sleep).await
            && let Some(tool) = tools.get_mut(&name)
        {
            tool.being_asked = false;
            tool.due = next(Instant::now(), tool.every);
        }
    }
}

/// The tools that currently have a period, with the known due times.
fn merged(
    known: &HashMap<String, Periodic>,
    stated: impl Iterator<Item = (String, Duration)>,
    now: Instant,
) -> HashMap<String, Periodic> {
    let with_state = stated.map(|(name, every)| {
        let fresh = Periodic { every, due: next(now, every), being_asked: false };
        let periodic = match known.get(&name) {
            Some(tool) if tool.every == every => *tool,
            Some(tool) => Periodic { being_asked: tool.being_asked, ..fresh },
            None => fresh,
        };
        (name, periodic)
    });
    with_state.collect()
}

/// If that is beyond the range of the clock, checks again after a day.
fn next(now: Instant, every: Duration) -> Instant {
    now.checked_add(every).unwrap_or(now + Duration::from_secs(24 * 60 * 60))
}
