//! The memory that reloads use, in a separate process, so that nothing else is measured.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use toolcrib_core::{Change, Executor, Registry, SourceUnit};
use toolcrib_tool::{Layer, Source, ToolDefinition, ToolEntry, tool_fn};

const TOOLS: usize = 100;

/// The resident memory of this process, in kilobytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn declare(executor: &Executor, generation: usize) {
    let unit = SourceUnit::new(Layer::Host, "host");
    let entries = (0..TOOLS).map(|number| {
        let definition = ToolDefinition::builder(format!("tool_{number}"))
            .description(format!("Answer number {generation}."))
            .build()
            .unwrap();
        let body = tool_fn(|_: Value, _| async { "pong" });
        ToolEntry::new(definition, Arc::new(body), Source::new(Layer::Host, "host"))
    });
    let entries = entries.collect();
    executor.registry().apply([Change::Replace { unit, entries }]).unwrap();
}

/// The reloads are far enough apart that the instances of one are closed before the next.
async fn reload(executor: &Executor, generations: std::ops::Range<usize>) {
    for generation in generations {
        declare(executor, generation);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn memory_does_not_grow_with_the_number_of_reloads() {
    let registry: Registry = Registry::scratch().build().unwrap();
    let executor = Executor::builder(registry).build();
    // Everything that is allocated only once has been allocated.
    reload(&executor, 0..100).await;
    let before = resident();
    reload(&executor, 100..500).await;
    let grown = resident().saturating_sub(before);
    println!("400 reloads of {TOOLS} tools: {grown} KB more than the {before} KB before");
    // Under a load that delays the closing, separate threads close some of the 40,000 instances.
    assert!(grown < 12_000, "{grown} KB more");
}
