//! Random scripts against the independent checker.

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use toolcrib_testkit::served::{check_response, check_stream};

use crate::scripts::{CANCEL, Script, script};

fn over_scripts(cases: u32, test: impl Fn(Script) -> Result<(), TestCaseError>) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    if let Err(error) = runner.run(&script(), test) {
        panic!("{error}");
    }
}

#[test]
fn a_thousand_random_responses_are_what_the_specification_says() {
    over_scripts(1_000, |script| {
        let played = script.play();
        let dialect = script.checked_dialect();
        let checked = check_stream(dialect, &played.stream)
            .map_err(|problem| TestCaseError::fail(format!("{problem}\n{}", played.stream)))?;
        // What is fetched afterwards is what was sent.
        assert_eq!(played.writer.to_value(), checked.response);
        assert_eq!(played.writer.next_sequence_number(), played.events.len() as u64);
        assert!(played.events.last().is_some_and(toolcrib_wire::api::StreamEvent::is_terminal));
        Ok(())
    });
}

#[test]
fn a_cancelled_response_is_whole_when_it_is_fetched() {
    over_scripts(300, |mut script| {
        script.end = CANCEL;
        let mut played = script.play();
        let fetched = played.writer.to_value();
        check_response(script.checked_dialect(), &fetched).map_err(TestCaseError::fail)?;
        // A step may have ended it before.
        let status = fetched["status"].as_str();
        assert!(matches!(status, Some("cancelled" | "failed")), "{status:?}");
        assert_eq!(played.writer.next_sequence_number(), played.events.len() as u64);
        assert!(played.writer.text("more").is_empty());
        assert!(played.writer.complete(9, None).is_empty());
        assert_eq!(played.writer.to_value(), fetched);
        Ok(())
    });
}
