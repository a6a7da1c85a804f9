//! Counts, quantiles, and that nothing is lost between threads.

use super::*;

fn definition(name: &str) -> ToolDefinition {
    ToolDefinition::builder(name).description("A demo.").build().unwrap()
}

fn begin(statistics: &Statistics, name: &str) -> InFlight {
    statistics.begin(&definition(name), Instant::now())
}

fn only(statistics: &Statistics) -> ToolStatistics {
    let [tool] = <[_; 1]>::try_from(statistics.snapshot()).unwrap();
    tool
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn every_way_a_call_ends_is_counted_once() {
    let statistics = Statistics::new();
    begin(&statistics, "demo").finish(Ending::Success, SECOND);
    begin(&statistics, "demo").finish(Ending::SuccessAtTimeLimit, SECOND);
    begin(&statistics, "demo").finish(Ending::Failure(ErrorKind::Execution), SECOND);
    begin(&statistics, "demo").finish(Ending::Failure(ErrorKind::Timeout), SECOND);
    begin(&statistics, "demo").finish(Ending::Failure(ErrorKind::Denied), SECOND);
    begin(&statistics, "demo").refuse(ErrorKind::InvalidArgs);
    begin(&statistics, "demo").refuse(ErrorKind::Denied);
    begin(&statistics, "demo").cache_hit();
    drop(begin(&statistics, "demo"));
    let running = begin(&statistics, "demo");

    let counted = only(&statistics);
    assert_eq!(counted.tool, "demo");
    assert_eq!((counted.executions, counted.successes, counted.failures), (8, 2, 4));
    // What the tool itself was denied, such as a file, is a failure of a run.
    assert_eq!((counted.refused, counted.denied, counted.runs()), (1, 1, 6));
    assert_eq!((counted.timeouts, counted.cache_hits), (2, 1));
    assert_eq!(counted.in_flight, 1);
    let kinds: Vec<_> = counted.errors_by_kind.into_iter().collect();
    let expected =
        [("cancelled", 1), ("denied", 2), ("execution", 1), ("invalid_args", 1), ("timeout", 1)];
    assert_eq!(kinds, expected);
    drop(running);
    assert_eq!(only(&statistics).in_flight, 0);
}

#[test]
fn quantiles_are_right_to_two_digits_and_the_total_is_exact() {
    let statistics = Statistics::new();
    for millis in 1..=1000 {
        begin(&statistics, "demo").finish(Ending::Success, Duration::from_millis(millis));
    }
    let counted = only(&statistics);
    let near = |value: Option<f64>, expected: f64| {
        let off = (value.unwrap() - expected).abs() / expected;
        assert!(off < 0.01, "{value:?} is not near {expected}");
    };
    near(counted.p50_seconds, 0.5);
    near(counted.p99_seconds, 0.99);
    near(counted.average_seconds, 0.5005);
    assert!((counted.total_seconds - 500.5).abs() < 1e-9);
}

#[test]
fn durations_beyond_the_ends_of_the_scale_are_counted() {
    let statistics = Statistics::new();
    begin(&statistics, "demo").finish(Ending::Success, Duration::ZERO);
    begin(&statistics, "demo").finish(Ending::Success, Duration::MAX);
    begin(&statistics, "demo").finish(Ending::Success, Duration::MAX);
    let counted = only(&statistics);
    assert_eq!(counted.executions, 3);
    let p99 = counted.p99_seconds.unwrap();
    assert!((3600.0..3650.0).contains(&p99), "{p99}");
}

#[test]
fn a_tool_that_never_ran_has_no_durations() {
    let statistics = Statistics::new();
    begin(&statistics, "demo").refuse(ErrorKind::Denied);
    let counted = only(&statistics);
    assert_eq!(
        (counted.average_seconds, counted.p50_seconds, counted.p99_seconds),
        (None, None, None)
    );
    let json = serde_json::to_value(&counted).unwrap();
    assert_eq!(json["errors_by_kind"], serde_json::json!({"denied": 1}));
    assert_eq!(json["p50_seconds"], serde_json::Value::Null);
}

#[test]
fn unknown_names_share_one_label_and_the_list_is_sorted() {
    let statistics = Statistics::new();
    assert_eq!(statistics.snapshot(), []);
    begin(&statistics, "zeta").cache_hit();
    begin(&statistics, "alpha").cache_hit();
    statistics.unknown();
    statistics.unknown();
    let all = statistics.snapshot();
    let names: Vec<_> = all.iter().map(|tool| tool.tool.as_str()).collect();
    assert_eq!(names, [UNKNOWN_TOOLS, "alpha", "zeta"]);
    assert_eq!((all[0].refused, all[0].errors_by_kind["not_found"]), (2, 2));
    assert!(ToolName::new(UNKNOWN_TOOLS).is_err() && ToolName::new(OTHER_TOOLS).is_err());
}

#[test]
fn tools_beyond_the_cap_are_counted_together() {
    let statistics = Statistics::new();
    for number in 0..MAX_TOOLS + 3 {
        begin(&statistics, &format!("t{number}")).cache_hit();
    }
    begin(&statistics, "t0").cache_hit();
    let all = statistics.snapshot();
    assert_eq!(all.len(), MAX_TOOLS + 1);
    let hits = |name: &str| all.iter().find(|tool| tool.tool == name).map(|tool| tool.cache_hits);
    assert_eq!((hits(OTHER_TOOLS), hits("t0")), (Some(3), Some(2)));
}

#[test]
fn totals_are_exact_under_eight_threads() {
    const THREADS: u64 = 8;
    const ROUNDS: u64 = 2_000;
    let statistics = Statistics::new();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let tools = ["a", "b", "c"].map(definition);
                for _ in 0..ROUNDS {
                    for tool in &tools {
                        let begin = || statistics.begin(tool, Instant::now());
                        begin().finish(Ending::Success, Duration::from_millis(1));
                        begin().finish(Ending::Failure(ErrorKind::Timeout), SECOND);
                        begin().cache_hit();
                        begin().refuse(ErrorKind::Paused);
                    }
                    statistics.unknown();
                }
            });
        }
    });
    let all = statistics.snapshot();
    assert_eq!(all.len(), 4);
    let each = THREADS * ROUNDS;
    assert_eq!((all[0].failures, all[0].refused), (0, each));
    for tool in &all[1..] {
        assert_eq!((tool.executions, tool.successes, tool.failures), (3 * each, each, each));
        assert_eq!((tool.timeouts, tool.refused, tool.cache_hits), (each, each, each));
        assert_eq!(tool.in_flight, 0);
        #[expect(clippy::cast_precision_loss, reason = "a small number")]
        let expected = 1.001 * each as f64;
        assert!((tool.total_seconds - expected).abs() < 1e-6);
    }
}
