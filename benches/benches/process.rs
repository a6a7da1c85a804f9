//! `process/spawn/<contender>` and `process/drain-100-MB/<contender>`.

use criterion::{Criterion, criterion_group, criterion_main};
use toolcrib_benches::{Contender, process};

fn processes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("process");
    group.sample_size(20);
    let mut bench = |work: &str, contenders: Vec<Contender>| {
        for mut contender in contenders {
            group.bench_function(format!("{work}/{}", contender.name()), |bencher| {
                bencher.iter_custom(|times| contender.run(times));
            });
        }
    };
    bench("spawn", process::spawn_contenders());
    bench("drain-100-MB", process::drain_contenders());
    group.finish();
}

criterion_group!(benches, processes);
criterion_main!(benches);
