//! Whatever is published, kept and dropped in whatever order: every body is closed once, and never
//! while it is in the current snapshot.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use toolcrib_tool::SharedTool;

use super::{Counts, counted, quiet, settled, snapshot, until};
use crate::{Registry, RegistrySnapshot};

const TOOLS: usize = 5;
const NAMES: [&str; TOOLS] = ["a", "b", "c", "d", "e"];

#[derive(Debug, Clone)]
enum PlacementStep {
    /// Publishes a snapshot with these tools, each under a name that is not bound to it.
    Publish(Vec<usize>),
    /// Builds a snapshot that is never published.
    Build(Vec<usize>),
    /// Keeps the current snapshot, as a turn does.
    Pin,
    /// Lets the oldest of those go.
    Unpin,
    /// Lets graces end.
    Wait,
}

fn steps() -> impl Strategy<Value = Vec<PlacementStep>> {
    let tools = || prop::collection::vec(0..TOOLS, 0..=TOOLS);
    let step = prop_oneof![
        4 => tools().prop_map(PlacementStep::Publish),
        1 => tools().prop_map(PlacementStep::Build),
        2 => Just(PlacementStep::Pin),
        2 => Just(PlacementStep::Unpin),
        1 => Just(PlacementStep::Wait),
    ];
    prop::collection::vec(step, 1..24)
}

fn of(tools: &[(SharedTool, Arc<Counts>)], chosen: &[usize]) -> RegistrySnapshot {
    snapshot(NAMES.iter().copied().zip(chosen.iter().map(|&tool| &tools[tool].0)))
}

async fn check(steps: Vec<PlacementStep>, grace: Duration) -> Result<(), TestCaseError> {
    let tools: Vec<_> = (0..TOOLS).map(|_| counted(quiet)).collect();
    // What a reload brings back after its end is a second life: it is called, and not closed again.
    let mut ever = [false; TOOLS];
    let mut current: Vec<usize> = Vec::new();
    // Removed, and not taken up again since by a snapshot that may yet be published.
    let mut removed = [false; TOOLS];
    let mut closed_before_publish = [0; TOOLS];
    let registry = Registry::with_grace(of(&tools, &[]), grace);
    let mut pinned = std::collections::VecDeque::new();
    for step in steps {
        match step {
            PlacementStep::Publish(chosen) => {
                let next = of(&tools, &chosen);
                for &tool in &chosen {
                    ever[tool] = true;
                    if !current.contains(&tool) {
                        // A closing that has begun is one of its earlier life.
                        settled().await;
                        closed_before_publish[tool] = tools[tool].1.closed();
                    }
                }
                registry.publish(next);
                for &tool in &current {
                    removed[tool] = true;
                }
                for &tool in &chosen {
                    removed[tool] = false;
                }
                current = chosen;
            }
            PlacementStep::Build(chosen) => {
                for &tool in &chosen {
                    ever[tool] = true;
                    removed[tool] = false;
                }
                drop(of(&tools, &chosen));
            }
            PlacementStep::Pin => pinned.push_back(registry.snapshot()),
            PlacementStep::Unpin => drop(pinned.pop_front()),
            PlacementStep::Wait => {
                for tool in (0..TOOLS).filter(|&tool| removed[tool]) {
                    until(async || tools[tool].1.closed() == 1).await;
                }
            }
        }
        settled().await;
        for &tool in &current {
            prop_assert_eq!(tools[tool].1.closed(), closed_before_publish[tool]);
        }
        for (tool, (_, counts)) in tools.iter().enumerate() {
            prop_assert!(counts.closed() <= usize::from(ever[tool]));
        }
        let open = registry.snapshot().bodies().all(|body| !body.is_closed());
        prop_assert!(open, "a body of the current snapshot counts as closed");
    }
    drop((registry, pinned));
    settled().await;
    for (tool, (_, counts)) in tools.iter().enumerate() {
        prop_assert_eq!(counts.closed(), usize::from(ever[tool]));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_body_is_closed_once_and_never_while_it_is_current(
        steps in steps(),
        grace in prop_oneof![Just(0), Just(3), Just(3_600_000)],
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let waits = steps.iter().filter(|step| matches!(step, PlacementStep::Wait)).count();
        // An hour is only for runs that need not wait for it.
        prop_assume!(grace < 1000 || waits == 0);
        runtime.block_on(check(steps, Duration::from_millis(grace)))?;
    }
}
