//! `call/validated/<contender>/<shared|distinct>/<tools>`: a call inside the process.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use toolcrib_benches::{SIZES, call};
use toolcrib_testkit::search_tool::Schemas;

fn calls(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("call/validated");
    for schemas in [Schemas::Shared, Schemas::Distinct] {
        for size in SIZES {
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

criterion_group!(benches, calls);
criterion_main!(benches);
