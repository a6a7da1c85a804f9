//! What is kept, what is cut, and that nothing is lost where there is a store.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;
use toolcrib_tool::{CallId, ContextValues, ToolResult};

use super::batch::{BatchAnswer, batch_budget, fit_batch};
use futures_util::FutureExt;

use super::*;
use crate::output::spill::{Handle, MemorySpill, SpillFormat, SpillLimits};

const MARKER: &str = "\n[… ";

fn limits(chars: usize) -> OutputLimits {
    OutputLimits { chars, data_bytes: 100 }
}

fn owner() -> Owner {
    Owner::of(&ContextValues::new().with("user", "ada"), None)
}

/// What stands for `handle` and `offset` in the first marker of a text.
fn named(text: &str) -> (Handle, usize) {
    let start = text.find("{\"handle\"").expect("a marker that names a handle");
    let end = start + text[start..].find('}').unwrap() + 1;
    let named: Value = serde_json::from_str(&text[start..end]).unwrap();
    let handle = Handle::parse(named["handle"].as_str().unwrap()).unwrap();
    (handle, usize::try_from(named["offset"].as_u64().unwrap_or(0)).unwrap())
}

/// Characters of an output's text without its markers.
fn kept_chars(output: &ToolOutput) -> usize {
    let of = |text: &str| -> usize {
        match (text.find(MARKER), text.find(" …]\n")) {
            (Some(start), Some(end)) => {
                text[..start].chars().count() + text[end + " …]\n".len()..].chars().count()
            }
            _ => text.chars().count(),
        }
    };
    output.content().iter().map(|part| of(text_of(part))).sum()
}

/// An output cut where nothing keeps the rest, and whether it was.
fn fit(output: ToolOutput, chars: usize) -> (ToolOutput, bool) {
    let limits = OutputLimits { chars, data_bytes: usize::MAX };
    if allows(&Ok(output.clone()), limits) {
        return (output, false);
    }
    let fitted = fit_outcome(Ok(output), limits, None).now_or_never().unwrap();
    (fitted.outcome.unwrap(), fitted.whole.is_some())
}

#[test]
fn a_short_text_is_left_alone() {
    let (output, truncated) = fit(ToolOutput::from("short"), 10);
    assert_eq!((output.text().as_ref(), truncated), ("short", false));
    assert!(allows(&Ok(ToolOutput::from("ééééé")), limits(5)));
}

#[test]
fn head_and_tail_stay_and_the_marker_states_the_sizes() {
    let (output, _) = fit(ToolOutput::from("0123456789".repeat(10)), 10);
    assert_eq!(output.text(), "0123456\n[… 90 of 100 characters left out …]\n789");
}

#[test]
fn parts_share_the_budget_so_that_small_ones_stay_whole() {
    let output = ToolOutput::from("small").with_content("x".repeat(1000));
    let (output, truncated) = fit(output, 105);
    assert!(truncated);
    assert_eq!(output.content()[0], Content::text("small"));
}

#[test]
fn a_text_file_takes_its_part_of_the_budget_and_stays_a_file() {
    let file = Content::TextFile {
        uri: "note://1".into(),
        text: "0123456789".repeat(10),
        mime_type: None,
    };
    let (output, truncated) = fit(ToolOutput::from("abc").with_content(file), 13);
    assert!(truncated);
    let [Content::Text(text), Content::TextFile { uri, text: file, .. }] = output.content() else {
        panic!("{output:?}");
    };
    assert_eq!((text.as_str(), uri.as_str()), ("abc", "note://1"));
    assert_eq!(file, "0123456\n[… 90 of 100 characters left out …]\n789");
}

#[test]
fn data_that_stands_for_the_text_is_cut_as_text_and_stays_as_data() {
    let data = json!({"rows": vec![1; 200]});
    let (output, truncated) = fit(ToolOutput::from(data.clone()), 20);
    assert!(truncated && output.text().contains("characters left out"));
    assert_eq!(output.data(), Some(&data));
}

#[tokio::test]
async fn the_marker_names_where_the_rest_begins() {
    let (store, owner) = (MemorySpill::new(SpillLimits::default()), owner());
    let place = Some(SpillTarget { store: &store, owner: &owner, memo: None });
    let output = ToolOutput::from("a".repeat(50)).with_content("é".repeat(100));
    let fitted = fit_outcome(Ok(output), limits(70), place).await;
    let output = fitted.outcome.unwrap();
    // 35 each: the first 24 characters of a part stay.
    let second = text_of(&output.content()[1]);
    assert!(
        second.starts_with(&format!("{}\n[… 65 of 100 characters", "é".repeat(24))),
        "{second}"
    );
    let (handle, offset) = named(second);
    assert_eq!(offset, 50 + 1 + 24);
    let page = store.read(&owner, &handle, offset, 65).await.unwrap();
    assert_eq!((page.text, page.total_chars), ("é".repeat(65), 151));
}

#[tokio::test]
async fn what_a_tool_did_not_capture_is_said_once() {
    let (store, owner) = (MemorySpill::new(SpillLimits::default()), owner());
    let output = ToolOutput::from("x".repeat(100))
        .with_content("y".repeat(100))
        .with_meta("truncated_bytes", 5000);
    let place = Some(SpillTarget { store: &store, owner: &owner, memo: None });
    let output = fit_outcome(Ok(output), limits(10), place).await.outcome.unwrap();
    assert_eq!(output.text().matches("; 5000 bytes more were not captured …]").count(), 1);
    let (handle, _) = named(&output.text());
    assert_eq!(store.read(&owner, &handle, 0, 1).await.unwrap().omitted_bytes, 5000);
}

#[tokio::test]
async fn oversized_data_fails_whole_and_can_be_read() {
    let (store, owner) = (MemorySpill::new(SpillLimits::default()), owner());
    let data = json!({"text": "x".repeat(200)});
    let output = ToolOutput::from("see data").with_data(data.clone()).with_meta("rows", 1);
    let error = oversized(output, json_bytes(&data), 100);
    assert!(!allows(&Err(error.clone()), limits(1000)));

    let place = Some(SpillTarget { store: &store, owner: &owner, memo: None });
    let fitted = fit_outcome(Err(error), limits(1000), place).await;
    let error = fitted.outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidOutput);
    assert_eq!(error.message(), "the result's data is 211 bytes, more than the limit of 100");
    let partial = error.partial().unwrap();
    assert_eq!((partial.text().as_ref(), partial.data()), ("see data", None));
    assert_eq!(partial.meta()["rows"], 1);
    let (handle, _) = named(error.hints().last().unwrap());
    let page = store.read(&owner, &handle, 0, 1000).await.unwrap();
    assert_eq!(page.format, SpillFormat::Json);
    assert_eq!(serde_json::from_str::<Value>(&page.text).unwrap(), data);
}

#[tokio::test]
async fn a_store_that_refuses_leaves_a_plain_marker() {
    let tiny = SpillLimits { max_bytes: 5, ..SpillLimits::default() };
    let (store, owner) = (MemorySpill::new(tiny), owner());
    let place = Some(SpillTarget { store: &store, owner: &owner, memo: None });
    let error = ToolError::execution("broke").with_partial("0123456789".repeat(2));
    let fitted = fit_outcome(Err(error), limits(15), place).await;
    assert!(fitted.whole.is_some());
    let mut error = fitted.outcome.unwrap_err();
    assert_eq!(error.message(), "broke");
    let partial = error.take_partial().unwrap();
    assert_eq!(partial.text(), "0123456\n[… 10 of 20 characters left out …]\n789");
}

#[tokio::test]
async fn the_message_and_the_hints_of_a_failure_are_held_to_the_budget() {
    let (store, owner) = (MemorySpill::new(SpillLimits::default()), owner());
    let place = Some(SpillTarget { store: &store, owner: &owner, memo: None });
    let message = "x".repeat(1_000_000);
    let error = ToolError::execution(message.clone())
        .with_hint("y".repeat(500))
        .with_retry_after(Duration::from_secs(7))
        .with_source(std::io::Error::other("because"));
    assert!(!allows(&Err(error.clone()), limits(1_000)));
    let error = fit_outcome(Err(error), limits(1_000), place).await.outcome.unwrap_err();
    assert_eq!(error.message().matches('x').count(), 500);
    assert_eq!(error.hints(), ["y".repeat(500)]);
    assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
    assert_eq!(error.source().unwrap().to_string(), "because");
    let (handle, offset) = named(error.message());
    let page = store.read(&owner, &handle, offset, 10).await.unwrap();
    assert_eq!((page.text.as_str(), page.total_chars), ("xxxxxxxxxx", 1_000_000 + 1 + 500));
}

fn answer(output: ToolOutput, limit: usize) -> BatchAnswer {
    let result = ToolResult::success(CallId::new("1"), "t", output, Duration::from_millis(7));
    BatchAnswer { result: result.with_cached(true), whole: None, limit, spilled: None }
}

#[tokio::test]
async fn a_batch_is_cut_from_the_whole_and_keeps_one_copy() {
    let (store, owner) = (MemorySpill::new(SpillLimits::default()), owner());
    let place = Some(SpillTarget { store: &store, owner: &owner, memo: None });
    let fitted = fit_outcome(Ok("0123456789".repeat(10).into()), limits(50), place).await;
    let mut first = answer(fitted.outcome.unwrap(), 50);
    first.whole = fitted.whole;
    let answers = vec![first, answer("small".into(), 50)];
    assert_eq!(batch_budget(None, answers.iter().map(|answer| answer.limit)), 50);

    let results = fit_batch(answers, 25, place).await;
    let text = results[0].text();
    assert!(text.starts_with("01234567890123\n[… 80 of 100 characters left out: "), "{text}");
    assert!(results[0].truncated() && results[0].cached());
    assert_eq!(results[0].duration(), Duration::from_millis(7));
    assert_eq!(results[1].text(), "small");
    assert!(!results[1].truncated());
    assert_eq!(store.size().0, 1);
    let (handle, offset) = named(&text);
    assert_eq!(store.read(&owner, &handle, offset, 4).await.unwrap().text, "4567");
}

#[tokio::test]
async fn a_failure_in_a_batch_shares_too() {
    let error = ToolError::execution("broke").with_hint("why").with_partial("x".repeat(100));
    let failed = BatchAnswer {
        result: ToolResult::failure(CallId::new("2"), "t", error, Duration::ZERO),
        whole: None,
        limit: 100,
        spilled: None,
    };
    let results = fit_batch(vec![failed, answer("y".repeat(100).into(), 100)], 40, None).await;
    let error = results[0].error().unwrap();
    assert_eq!((error.message(), error.hints()), ("broke", &["why".to_owned()][..]));
    // Of its 20 characters, 8 are the message and the hint.
    assert_eq!(kept_chars(error.partial().unwrap()), 12);
    assert_eq!(kept_chars(results[1].output().unwrap()), 20);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn cutting_never_splits_a_character(text in "\\PC{1,200}", budget in 0usize..200) {
        let total = text.chars().count();
        let (output, truncated) = fit(ToolOutput::from(text.as_str()), budget);
        prop_assert_eq!(truncated, total > budget);
        let shown = output.text();
        if !truncated {
            prop_assert_eq!(shown.as_ref(), text.as_str());
            return Ok(());
        }
        let (head, tail) = (budget * 7 / 10, budget - budget * 7 / 10);
        let expected_head: String = text.chars().take(head).collect();
        let expected_tail: String = text.chars().skip(total - tail).collect();
        prop_assert_eq!(shown.as_ref(), format!(
            "{expected_head}\n[… {} of {total} characters left out …]\n{expected_tail}",
            total - budget,
        ));
    }

    #[test]
    fn what_was_left_out_is_where_the_marker_says(text in "[a-zé\\n]{1,300}", budget in 0usize..100) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (store, owner) = (MemorySpill::new(SpillLimits::default()), owner());
            let place = Some(SpillTarget { store: &store, owner: &owner, memo: None });
            let fitted = fit_outcome(Ok(text.as_str().into()), limits(budget), place).await;
            let total = text.chars().count();
            prop_assert_eq!(fitted.whole.is_some(), total > budget);
            if total > budget {
                let shown = fitted.outcome.unwrap().text().into_owned();
                let (handle, offset) = named(&shown);
                let left_out = store.read(&owner, &handle, offset, total - budget).await.unwrap();
                let head: String = text.chars().take(offset).collect();
                let tail: String = text.chars().skip(offset + total - budget).collect();
                prop_assert_eq!(&format!("{head}{}{tail}", left_out.text), &text);
                let (shown_head, shown_tail) = (shown.starts_with(&head), shown.ends_with(&tail));
                prop_assert!(shown_head && shown_tail);
            }
            Ok(())
        })?;
    }

    #[test]
    fn a_batch_never_exceeds_its_budget(
        sizes in prop::collection::vec((0usize..300, 1usize..200), 1..8),
        budget in 0usize..400,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut answers = Vec::new();
            for (size, limit) in &sizes {
                let fitted = fit_outcome(Ok("x".repeat(*size).into()), limits(*limit), None).await;
                let mut answer = answer(fitted.outcome.unwrap(), *limit);
                answer.whole = fitted.whole;
                answers.push(answer);
            }
            let results = fit_batch(answers, budget, None).await;
            let kept: Vec<usize> =
                results.iter().map(|result| kept_chars(result.output().unwrap())).collect();
            let needs: Vec<usize> = sizes.iter().map(|(size, limit)| *size.min(limit)).collect();
            prop_assert_eq!(&kept, &shares::fair_shares(&needs, budget));
            prop_assert!(kept.iter().sum::<usize>() <= budget);
            Ok(())
        })?;
    }
}
