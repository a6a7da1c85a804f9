//! How many calls of a batch at once: what the default is held against.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::runtime::Builder;
use toolcrib_core::{Executor, ExecutorConfig, Registry, RegistryBuilder, TurnOptions};
use toolcrib_tool::{Layer, Source, ToolCall, ToolDefinition, ToolEntry, ToolResult, tool_fn};

use crate::Contender;

/// Calls of a batch.
pub const CALLS: usize = 10;

/// What the calls of a batch do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// All wait for 2 ms, as for a server.
    Waiting,
    /// All compute for about 0.5 ms on the blocking pool: as much work, however many run at once.
    Computing,
    /// One kind after the other.
    Mixed,
}

impl Work {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Waiting, Self::Computing, Self::Mixed];

    /// The row's title.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "10 that wait 2 ms",
            Self::Computing => "10 that compute 0.5 ms, blocking",
            Self::Mixed => "5 of each",
        }
    }

    fn tool(self, position: usize) -> &'static str {
        match self {
            Self::Waiting => "wait",
            Self::Mixed if position.is_multiple_of(2) => "wait",
            Self::Computing | Self::Mixed => "compute",
        }
    }
}

/// Some work that no optimiser sees through.
fn steps(count: u64) -> u64 {
    (0..count).fold(1, |state, step| black_box(state ^ step).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

/// Steps that take about half a millisecond alone on this machine: the least of several tries.
fn half_a_millisecond() -> u64 {
    const TRIED: u64 = 100_000;
    let time = |_| {
        let start = Instant::now();
        black_box(steps(TRIED));
        start.elapsed()
    };
    let fastest = (0..20).map(time).min().unwrap_or_default().max(Duration::from_nanos(1));
    let wanted = Duration::from_micros(500).as_nanos() * u128::from(TRIED) / fastest.as_nanos();
    u64::try_from(wanted).unwrap_or(TRIED)
}

fn entry(definition: ToolDefinition, body: impl toolcrib_tool::Tool) -> ToolEntry {
    ToolEntry::new(definition, Arc::new(body), Source::new(Layer::Host, "benches"))
}

fn registry() -> Registry {
    let define = |name: &str, blocking| {
        ToolDefinition::builder(name)
            .description("Take some time.")
            .input_schema(json!({"type": "object"}))
            .blocking(blocking)
            .build()
            .expect("a valid definition")
    };
    let wait = tool_fn(|_: Value, _| async {
        tokio::time::sleep(Duration::from_millis(2)).await;
        "waited"
    });
    let count = half_a_millisecond();
    let compute = tool_fn(move |_: Value, _| async move { steps(black_box(count)).to_string() });
    let mut builder = RegistryBuilder::new();
    let _ = builder.register(entry(define("wait", false), wait));
    let _ = builder.register(entry(define("compute", true), compute));
    Registry::new(builder.build())
}

/// Batches of [`CALLS`] calls, so many of them at once: `1`, `2`, `4` (the default), `8`, and `0`
/// for all. In tokio's ordinary runtime, one thread per processor.
pub fn contenders(work: Work) -> Vec<Contender> {
    let executor = Executor::new(registry(), ExecutorConfig::default());
    let contender = |(name, at_once)| {
        let turn = executor.turn(TurnOptions::default().max_concurrency(at_once));
        let runtime = Builder::new_multi_thread().enable_time().build().expect("a runtime");
        Contender::new(name, move |times| {
            runtime.block_on(async {
                let start = Instant::now();
                for _ in 0..times {
                    let call = |position: usize| {
                        ToolCall::new(position.to_string(), work.tool(position), "{}")
                    };
                    let results = turn.call_batch((0..CALLS).map(call).collect()).await;
                    assert!(results.iter().all(ToolResult::is_success));
                }
                start.elapsed()
            })
        })
    };
    [("1", 1), ("2", 2), ("4", 4), ("8", 8), ("0", 0)].map(contender).into()
}
