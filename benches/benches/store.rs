//! `store/<where>/<calls that wait>`: a call that is suspended and taken again, while so many others
//! wait. The time must not grow with their number.

#![expect(clippy::expect_used, reason = "a bench that cannot be set up fails")]

use std::time::Instant;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use toolcrib_core::bounds::Bounds;
use toolcrib_core::clock::Timestamp;
use toolcrib_core::suspension::{
    ResolutionKind, Resolved, Suspension, SuspensionStore as _, Waiting,
};
use toolcrib_store::{Database, Suspensions};
use toolcrib_tool::{Arguments, CallId, Layer, Source, ToolDefinition, ToolEntry};

/// Calls that wait already.
const WAITING: [usize; 2] = [0, 10_000];

fn resolved(call: &Suspension) -> Resolved {
    Resolved::new(call, ResolutionKind::Approved, "operator", Timestamp::from_unix_millis(2))
}

fn suspended(entry: &ToolEntry) -> Suspension {
    let arguments = Arguments::from_validated(r#"{"path": "notes.txt"}"#.to_owned());
    let (call, now) = (CallId::new("1"), Timestamp::from_unix_millis(1));
    Suspension::new(&call, entry, &arguments, Waiting::Client, now, Timestamp::NEVER)
        .expect("there is randomness")
        .for_identity("ada")
}

fn entry() -> ToolEntry {
    let definition = ToolDefinition::builder("t").description("A tool.").build();
    ToolEntry::client(definition.expect("it is right"), Source::new(Layer::Host, "bench"))
}

fn filled(runtime: &Runtime, database: &Database, waiting: usize) -> Suspensions {
    let store = Suspensions::within(database, Bounds::per_identity(20_000));
    let entry = entry();
    runtime.block_on(async {
        let puts: Vec<_> = (0..waiting)
            .map(|_| {
                let (store, call) = (store.clone(), suspended(&entry));
                tokio::spawn(async move { store.put(&call).await })
            })
            .collect();
        for put in puts {
            put.await.expect("nobody panics").expect("there is room");
        }
    });
    store
}

fn put_and_take(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("there is room for threads");
    let entry = entry();
    for place in ["disk", "memory"] {
        let mut group = criterion.benchmark_group(format!("store/{place}"));
        group.sample_size(20);
        for waiting in WAITING {
            let home = TempDir::new().expect("there is room");
            let database = match place {
                "disk" => Database::open(home.path()).expect("the folder is fit for it"),
                _ => Database::in_memory().expect("there is memory"),
            };
            let store = filled(&runtime, &database, waiting);
            group.bench_function(BenchmarkId::from_parameter(waiting), |bencher| {
                bencher.iter_custom(|times| {
                    runtime.block_on(async {
                        let begun = Instant::now();
                        for _ in 0..times {
                            let call = suspended(&entry);
                            store.put(&call).await.expect("there is room");
                            let taken =
                                store.take(call.id(), &resolved(&call)).await.expect("it works");
                            assert!(taken.is_some());
                        }
                        begun.elapsed()
                    })
                });
            });
        }
        group.finish();
    }
}

criterion_group!(benches, put_and_take);
criterion_main!(benches);
