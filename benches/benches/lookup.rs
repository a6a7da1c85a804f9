//! `lookup/<contender>/<tools>`: a tool by its name.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use toolcrib_benches::{SIZES, lookup};

fn lookups(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("lookup");
    for size in SIZES {
        for mut contender in lookup::contenders(size) {
            let id = BenchmarkId::new(contender.name(), size);
            group.bench_function(id, |bencher| bencher.iter_custom(|times| contender.run(times)));
        }
    }
    group.finish();
}

criterion_group!(benches, lookups);
criterion_main!(benches);
