//! `call/validated/<contender>/<shared|distinct>/<tools>` and `call/cached/<contender>/<tools>`: a
//! call inside the process.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use toolcrib_benches::{SIZES, cached, call};
use toolcrib_testkit::search_tool::Schemas;

fn calls(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("call/validated");
    for schemas in [Schemas::Shared, Schemas::Distinct] {
        for &size in call::sizes(schemas) {
            for mut contender in call::contenders(size, schemas) {
                let name = format!("{}/{}", contender.name(), schemas.as_str());
                group.bench_function(BenchmarkId::new(name, size), |bencher| {
                    bencher.iter_custom(|times| contender.run(times));
                });
            }
        }
    }
    group.finish();
}

fn cached_calls(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("call/cached");
    for size in SIZES {
        for mut contender in cached::contenders(size) {
            let id = BenchmarkId::new(contender.name(), size);
            group.bench_function(id, |bencher| bencher.iter_custom(|times| contender.run(times)));
        }
    }
    group.finish();
}

criterion_group!(benches, calls, cached_calls);
criterion_main!(benches);
