//! A call that was answered before.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use hashbrown::HashMap;
use toolcrib_core::{Executor, ExecutorConfig, Registry, RegistryBuilder, Turn, TurnOptions};
use toolcrib_testkit::search_tool::{self, ARGUMENTS, Schemas, SearchArguments};
use toolcrib_tool::{
    CachePolicy, Layer, Source, ToolCall, ToolDefinition, ToolEntry, canonical_json, tool_fn,
};

use crate::Contender;
use crate::call::{CALL_ID, names, ours_with, runtime};

/// A turn over `size` tools that declare a cache.
fn turn(size: usize) -> Turn {
    let mut builder = RegistryBuilder::new();
    for number in 0..size {
        let definition = ToolDefinition::builder(search_tool::name(number))
            .description("Search the files of a folder for names or content. Read-only.")
            .input_schema(search_tool::schema())
            .read_only(true)
            .idempotent(true)
            .cache(CachePolicy::new())
            .build()
            .expect("a valid definition");
        let body = tool_fn(|args: SearchArguments, _| std::future::ready(args.path));
        let source = Source::new(Layer::Host, "benches");
        let _ = builder.register(ToolEntry::new(definition, Arc::new(body), source));
    }
    let mut config = ExecutorConfig::default();
    // Room for every answer.
    config.cache_entries = config.cache_entries.max(2 * size);
    config.cache_bytes = config.cache_bytes.max(8 * 1024 * size);
    Executor::new(Registry::new(builder.build()), config).turn(TurnOptions::default())
}

/// A repeated call in a registry of `size` tools, each with one answer kept:
///
/// - `ours/hit`: `Turn::call`, answered from the cache;
/// - `ours/run`: the same call of a tool without a cache, which runs;
/// - `limit`: the canonical bytes of the call, which are ready, hashed and looked up in a map, and
///   the answer shared: nothing parsed, validated or counted.
pub fn contenders(size: usize) -> Vec<Contender> {
    vec![
        ours_hit(size),
        ours_with("ours/run", size, search_tool::snapshot(size, Schemas::Shared)),
        limit(size),
    ]
}

fn ours_hit(size: usize) -> Contender {
    let turn = turn(size);
    let runtime = runtime();
    let (names, mut order) = names(size);
    runtime.block_on(async {
        for name in &names {
            turn.call(ToolCall::new(CALL_ID, name.as_str(), ARGUMENTS)).await;
        }
    });
    Contender::new("ours/hit", move |times| {
        runtime.block_on(async {
            let start = Instant::now();
            for _ in 0..times {
                let name = names[order.next()].as_str();
                let result = turn.call(ToolCall::new(CALL_ID, name, black_box(ARGUMENTS))).await;
                assert!(result.cached(), "{}", result.text());
                black_box(result);
            }
            start.elapsed()
        })
    })
}

fn limit(size: usize) -> Contender {
    let arguments = canonical_json(&serde_json::from_str(ARGUMENTS).expect("JSON"));
    let (names, mut order) = names(size);
    let keys: Vec<String> = names.iter().map(|name| format!("{name}\0{arguments}")).collect();
    let answers: HashMap<String, Arc<str>> =
        keys.iter().map(|key| (key.clone(), Arc::from("services"))).collect();
    Contender::new("limit", move |times| {
        let start = Instant::now();
        for _ in 0..times {
            let answer = answers.get(black_box(keys[order.next()].as_str())).map(Arc::clone);
            assert!(black_box(answer).is_some());
        }
        start.elapsed()
    })
}
