//! A turn of a long run beside one of a short run, beside the bare call, and beside rig-agent's.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::runtime::Runtime;
use toolcrib_core::TurnOptions;
use toolcrib_tool::ToolCall;

use crate::scripted::{executor, run};
use crate::{ROUNDS, head, median, row};

/// Turns of the short and of the long run.
const TURNS: [u32; 2] = [10, 200];

/// The time of a turn: ours in a short and in a long run, the bare call, and the peer's.
#[derive(Default)]
struct Times {
    short: Vec<f64>,
    long: Vec<f64>,
    bare: Vec<f64>,
    peer_short: Vec<f64>,
    peer_long: Vec<f64>,
}

pub(crate) fn turns(runtime: &Runtime) -> bool {
    let executor = executor(false);
    let mut times = Times::default();
    for _ in 0..ROUNDS {
        let ours = |turns: u32| run(runtime, &executor, turns, None);
        times.short.push(short_turn(ours));
        times.long.push(turn(TURNS[1], || ours(TURNS[1])));
        let bare = executor.turn(TurnOptions::default());
        times.bare.push(turn(TURNS[1], || {
            let begun = Instant::now();
            for number in 0..TURNS[1] {
                let call = ToolCall::new(number.to_string(), "note", json!({"text": "number"}));
                assert!(runtime.block_on(bare.call(call)).is_success());
            }
            begun.elapsed()
        }));
        #[cfg(feature = "rig")]
        {
            let peer = |turns: u32| toolcrib_benches::rig_agent::run(runtime, turns);
            times.peer_short.push(short_turn(peer));
            times.peer_long.push(turn(TURNS[1], || peer(TURNS[1])));
        }
    }
    let short = median(times.short);
    let long = median(times.long);
    head("Turns");
    let holds = row("a turn of a 200-turn run beside one of a 10-turn run", long / short, 1.3);
    println!(
        "| a turn of a 10-turn run beside the bare call | {:.1} | | |",
        short / median(times.bare)
    );
    println!("| a turn of a 10-turn run, in µs | {:.0} | | |", short * 1e6);
    if times.peer_short.is_empty() {
        println!("| beside rig-agent: add `--features rig` | | | |");
    } else {
        let (peer_short, peer_long) = (median(times.peer_short), median(times.peer_long));
        println!("| a turn of a 10-turn run beside rig-agent's | {:.2} | | |", short / peer_short);
        println!("| a turn of a 200-turn run beside rig-agent's | {:.2} | | |", long / peer_long);
    }
    holds
}

/// The time of a turn, in seconds, of what takes so many.
fn turn(turns: u32, run: impl Fn() -> Duration) -> f64 {
    run().as_secs_f64() / f64::from(turns)
}

/// The time of a turn in short runs, which together are as long as the long one.
fn short_turn(run: impl Fn(u32) -> Duration) -> f64 {
    turn(TURNS[1], || (0..TURNS[1] / TURNS[0]).map(|_| run(TURNS[0])).sum())
}
