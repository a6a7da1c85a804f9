//! `batch/32/<contender>/<tools>` and `batch/10/<work>/<calls at once>`.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use toolcrib_benches::concurrency::Work;
use toolcrib_benches::{SIZES, batch, concurrency};

fn quick(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group(format!("batch/{}", batch::CALLS));
    for size in SIZES {
        for mut contender in batch::contenders(size) {
            let id = BenchmarkId::new(contender.name(), size);
            group.bench_function(id, |bencher| bencher.iter_custom(|times| contender.run(times)));
        }
    }
    group.finish();
}

fn slow(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group(format!("batch/{}", concurrency::CALLS));
    group.sample_size(20);
    for work in Work::ALL {
        for mut contender in concurrency::contenders(work) {
            let id = BenchmarkId::new(work.as_str(), contender.name());
            group.bench_function(id, |bencher| bencher.iter_custom(|times| contender.run(times)));
        }
    }
    group.finish();
}

criterion_group!(benches, quick, slow);
criterion_main!(benches);
