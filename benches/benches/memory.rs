//! Memory and time per tool, from its definition to its first call, as a Markdown table.
//!
//! `cargo bench -p toolcrib-benches --bench memory [-- <tools> …]`
//!
//! A program of its own, because it counts every allocation, which costs the others time.

#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

use std::alloc::System;
use std::time::Instant;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use toolcrib_benches::registration::{Shelf, shelves};
use toolcrib_testkit::search_tool::Schemas;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Tools of a registry where none are asked for.
const TOOLS: usize = 10_000;

/// Bytes that ours may keep per registered tool.
const BYTES: usize = 1_536;

/// Nanoseconds that registering one of ours may take.
const NANOSECONDS: u128 = 2_000;

fn main() {
    let mut sizes: Vec<usize> = std::env::args().filter_map(|arg| arg.parse().ok()).collect();
    if sizes.is_empty() {
        sizes.push(TOOLS);
    }
    println!("Per tool. Bytes are what is held, times are of one run.\n");
    println!(
        "| tools | schemas | contender | bytes, registered | bytes, after its first call | ns to make | ns to register | ns of the first call | target |"
    );
    println!("|---:|---|---|---:|---:|---:|---:|---:|---|");
    for size in sizes {
        for schemas in [Schemas::Shared, Schemas::Distinct] {
            for shelf in shelves() {
                println!("| {size} | {} | {} |", schemas.as_str(), row(shelf, size, schemas));
            }
        }
    }
}

fn row(mut shelf: Box<dyn Shelf>, size: usize, schemas: Schemas) -> String {
    let before = held();
    let make = timed(size, || shelf.make(size, schemas));
    let register = timed(size, || shelf.register());
    let registered = (held() - before) / size;
    let mut called = false;
    let first_call = timed(size, || called = shelf.call_each());
    let after = (held() - before) / size;
    let name = shelf.name();
    let (after, first_call) = if called {
        (after.to_string(), first_call.to_string())
    } else {
        ("–".to_owned(), "–".to_owned())
    };
    let target = if name == "ours" {
        let word = |met| if met { "met" } else { "missed" };
        let bytes = word(registered <= BYTES);
        format!("≤ {BYTES} B: {bytes}; ≤ 2 µs: {}", word(register <= NANOSECONDS))
    } else {
        String::new()
    };
    format!("{name} | {registered} | {after} | {make} | {register} | {first_call} | {target}")
}

/// Bytes allocated and not given back.
fn held() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated.saturating_sub(stats.bytes_deallocated)
}

/// Nanoseconds per tool.
fn timed(size: usize, work: impl FnOnce()) -> u128 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() / size as u128
}
