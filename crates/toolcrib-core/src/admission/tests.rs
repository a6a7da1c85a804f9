//! Calls that wait, nest, are dropped and are refused.

use std::sync::{Arc, LazyLock};

use futures_util::FutureExt;
use proptest::prelude::*;
use tokio::time::{Instant, advance, sleep};

use super::*;

fn definition(name: &str) -> toolcrib_tool::ToolDefinitionBuilder {
    ToolDefinition::builder(name).description("A demo.")
}

fn limited(name: &str, limit: usize) -> ToolDefinition {
    definition(name).max_concurrent(limit).build().unwrap()
}

fn admission() -> Admission {
    Admission::new(AdmissionConfig::default())
}

impl Admission {
    /// Calls that run and wait, over all tools.
    fn load(&self) -> (usize, usize) {
        let tools = self.tools.read().unwrap();
        let loads = tools.values().map(|tool| tool.gate.load());
        loads.fold((0, 0), |(ran, waited), (run, wait)| (ran + run, waited + wait))
    }

    async fn of<'a>(
        &'a self,
        tool: &'a ToolDefinition,
        lineage: &'a Lineage,
    ) -> Result<Permit<'a>, ToolError> {
        self.by(&ADA, tool, lineage).await
    }

    async fn by<'a>(
        &'a self,
        identity: &'a Arc<str>,
        tool: &'a ToolDefinition,
        lineage: &'a Lineage,
    ) -> Result<Permit<'a>, ToolError> {
        self.admit(tool, 0, identity, lineage).await
    }
}

/// Whether it has to wait, having been asked once.
fn is_pending<F: Future + Unpin>(future: &mut F) -> bool {
    future.now_or_never().is_none()
}

/// The lineage of calls made from one that has its permit.
fn under(permit: &Permit<'_>, tool: &ToolDefinition, parent: &Lineage) -> Lineage {
    let descent = Descent::new(parent, tool);
    if let Some(slot) = permit.slot() {
        descent.hold(slot);
    }
    descent.lineage(tool.tool_name(), None)
}

fn root() -> Lineage {
    Lineage::root(Arc::default(), Arc::default())
}

static ROOT: LazyLock<Lineage> = LazyLock::new(root);
static ADA: LazyLock<Arc<str>> = LazyLock::new(|| "ada".into());

#[tokio::test(start_paused = true)]
async fn no_more_than_the_limit_run_at_once() {
    let (admission, tool) = (admission(), limited("slow", 3));
    let most = std::sync::atomic::AtomicUsize::new(0);
    let calls = (0..20).map(|_| async {
        let permit = admission.of(&tool, &ROOT).await.unwrap();
        most.fetch_max(admission.load().0, std::sync::atomic::Ordering::Relaxed);
        sleep(Duration::from_secs(1)).await;
        permit.finish(None);
    });
    let started = Instant::now();
    futures_util::future::join_all(calls).await;
    assert_eq!(most.into_inner(), 3);
    assert_eq!(started.elapsed().as_secs(), 7);
    assert_eq!(admission.load(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_refuses_and_says_when_to_come_back() {
    let config = AdmissionConfig { max_queue: 2, ..AdmissionConfig::default() };
    let (admission, tool) = (Admission::new(config), limited("slow", 1));
    let running = admission.of(&tool, &ROOT).await.unwrap();
    let mut waiting = [(); 2].map(|()| Box::pin(admission.of(&tool, &ROOT)));
    for call in &mut waiting {
        assert!(is_pending(call));
    }
    let error = admission.of(&tool, &ROOT).await.unwrap_err();
    assert_eq!((error.kind(), error.retryable()), (ErrorKind::Unavailable, true));
    assert_eq!(error.hints(), ["Nothing was run. Call again in 30 seconds."]);
    assert_eq!(error.retry_after(), Some(Duration::from_secs(30)));
    drop((running, waiting));
    assert_eq!(admission.load(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_so_long_and_no_longer() {
    let (admission, tool) = (admission(), limited("slow", 1));
    let _running = admission.of(&tool, &ROOT).await.unwrap();
    let started = Instant::now();
    let error = admission.of(&tool, &ROOT).await.unwrap_err();
    assert_eq!(started.elapsed().as_secs(), 30);
    assert_eq!((error.kind(), error.retryable()), (ErrorKind::Unavailable, true));
    assert_eq!(error.message(), "the tool is busy, and no slot was free within 30 seconds");
    assert_eq!(error.retry_after(), Some(Duration::from_secs(30)));
    assert_eq!(admission.load(), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn other_limits_count_from_the_next_call_on() {
    let admission = admission();
    let (one, two) = (limited("slow", 1), limited("slow", 2));
    let _first = admission.of(&one, &ROOT).await.unwrap();
    let _second = admission.of(&two, &ROOT).await.unwrap();
    assert!(admission.of(&two, &ROOT).await.is_err());
    let none = definition("slow").build().unwrap();
    assert!(admission.of(&none, &ROOT).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_rate_limit_says_when_the_next_call_may_come() {
    let admission = admission();
    let tool = definition("often").rate("2/min".parse().unwrap()).build().unwrap();
    for _ in 0..2 {
        admission.of(&tool, &ROOT).await.unwrap().finish(None);
    }
    let error = admission.of(&tool, &ROOT).await.unwrap_err();
    assert_eq!((error.kind(), error.retryable()), (ErrorKind::RateLimited, true));
    assert_eq!(error.message(), "the tool may be called 2 times per minute");
    assert_eq!(error.hints(), ["Nothing was run. Call again in 30 seconds."]);
    advance(Duration::from_secs(30)).await;
    admission.of(&tool, &ROOT).await.unwrap().finish(None);
    assert!(admission.of(&tool, &ROOT).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_finds_no_slot_uses_up_no_rate() {
    let config = AdmissionConfig { max_queue: 0, ..AdmissionConfig::default() };
    let admission = Admission::new(config);
    let rate = "2/min".parse().unwrap();
    let tool = definition("both").rate(rate).max_concurrent(1).build().unwrap();
    let running = admission.of(&tool, &ROOT).await.unwrap();
    for _ in 0..5 {
        let error = admission.of(&tool, &ROOT).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }
    drop(running);
    admission.of(&tool, &ROOT).await.unwrap().finish(None);
    // And a call that finds no rate keeps no slot.
    assert_eq!(admission.of(&tool, &ROOT).await.unwrap_err().kind(), ErrorKind::RateLimited);
    assert_eq!(admission.load(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn calls_within_calls_share_the_slot_of_their_own_tool() {
    let admission = admission();
    let (meta, inner) = (limited("meta", 1), limited("inner", 1));
    let started = Instant::now();
    // meta → inner → meta → inner, with one slot each.
    let first = admission.of(&meta, &ROOT).await.unwrap();
    let lineage = under(&first, &meta, &ROOT);
    let second = admission.of(&inner, &lineage).await.unwrap();
    let lineage = under(&second, &inner, &lineage);
    let third = admission.of(&meta, &lineage).await.unwrap();
    let lineage = under(&third, &meta, &lineage);
    let fourth = admission.of(&inner, &lineage).await.unwrap();
    assert_eq!((lineage.depth(), started.elapsed()), (3, Duration::ZERO));
    assert_eq!(admission.load(), (2, 0));
    for permit in [fourth, third, second, first] {
        permit.finish(None);
    }
    assert_eq!(admission.load(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn calls_that_wait_for_each_others_slot_end_at_the_queue_timeout() {
    let admission = admission();
    let (a, b) = (limited("a", 1), limited("b", 1));
    let (in_a, in_b) =
        (admission.of(&a, &ROOT).await.unwrap(), admission.of(&b, &ROOT).await.unwrap());
    let (from_a, from_b) = (under(&in_a, &a, &ROOT), under(&in_b, &b, &ROOT));
    let started = Instant::now();
    let first = async {
        let refused = admission.of(&b, &from_a).await.unwrap_err();
        assert_eq!((refused.kind(), refused.retryable()), (ErrorKind::Unavailable, true));
        assert_eq!(started.elapsed(), Duration::from_secs(30));
        // The refused one ends, and the other goes on.
        in_a.finish(None);
    };
    let second = async {
        sleep(Duration::from_secs(1)).await;
        admission.of(&a, &from_b).await.unwrap().finish(None);
        in_b.finish(None);
    };
    tokio::join!(first, second);
    assert_eq!(admission.load(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn calls_that_take_the_same_slots_back_do_not_wait_for_each_other() {
    let admission = admission();
    let (a, b) = (limited("a", 1), limited("b", 1));
    let mut calls = Vec::new();
    for order in [[&a, &b], [&b, &a]] {
        let mut slots = Vec::new();
        let mut permits = Vec::new();
        for tool in order {
            let permit = admission.of(tool, &ROOT).await.unwrap();
            let slot = Arc::clone(permit.slot().unwrap());
            slot.lend();
            slots.push((tool.tool_name().clone(), 1, slot));
            permits.push(permit);
        }
        calls.push(async move {
            take_back(slots).await;
            sleep(Duration::from_secs(1)).await;
            for permit in permits {
                permit.finish(None);
            }
        });
    }
    let both = futures_util::future::join_all(calls);
    tokio::time::timeout(Duration::from_secs(5), both).await.unwrap();
    assert_eq!(admission.load(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_context_kept_beyond_its_call_keeps_no_slot() {
    let (admission, tool) = (admission(), limited("slow", 1));
    let permit = admission.of(&tool, &ROOT).await.unwrap();
    let lineage = under(&permit, &tool, &ROOT);
    permit.finish(None);
    assert_eq!(admission.load(), (0, 0));
    // What is called from it now waits in the queue like any other.
    let late = admission.of(&tool, &lineage).await.unwrap();
    assert_eq!(admission.load(), (1, 0));
    let slot = late.slot().cloned();
    late.finish(None);
    assert_eq!(admission.load(), (1, 0), "work that goes on keeps the slot");
    drop(slot);
    assert_eq!(admission.load(), (0, 0));
}

#[tokio::test]
async fn calls_within_calls_have_a_bottom() {
    let admission = admission();
    let mut lineage = root();
    let any = definition("any").build().unwrap();
    for _ in 0..MAX_DEPTH {
        let permit = admission.of(&any, &lineage).await.unwrap();
        let deeper = under(&permit, &any, &lineage);
        drop(permit);
        lineage = deeper;
    }
    assert!(admission.of(&any, &lineage).await.is_ok(), "16 deep");
    let deeper = under(&admission.of(&any, &lineage).await.unwrap(), &any, &lineage);
    let error = admission.of(&any, &deeper).await.unwrap_err();
    assert_eq!((error.kind(), error.retryable()), (ErrorKind::Denied, false));
    assert!(error.message().contains("16 levels deep"));
}

#[tokio::test(start_paused = true)]
async fn a_queue_does_not_follow_those_in_front_into_their_timeouts() {
    let (admission, tool) = (admission(), limited("slow", 1));
    let outcomes = (0..10).map(|_| async {
        let permit = admission.of(&tool, &ROOT).await.map_err(|error| error.kind())?;
        sleep(Duration::from_secs(5)).await;
        permit.finish(Some(ErrorKind::Timeout));
        Ok::<_, ErrorKind>(())
    });
    let outcomes = futures_util::future::join_all(outcomes).await;
    assert_eq!(outcomes[..3], [Ok(()); 3]);
    assert_eq!(outcomes[3..], [Err(ErrorKind::Paused); 7]);
    let error = admission.of(&tool, &ROOT).await.unwrap_err();
    assert!(error.retryable());
    assert_eq!(
        error.message(),
        "the tool ran into its time limit 3 times in a row and is paused for 60 seconds"
    );
    assert_eq!(error.hints(), ["Use another tool, or call again in 60 seconds."]);
    assert_eq!(error.retry_after(), Some(Duration::from_secs(60)));
    assert_eq!((admission.reset_breaker("slow"), admission.reset_breaker("slow")), (1, 0));
    assert!(admission.of(&tool, &ROOT).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_trial_that_is_dropped_in_the_queue_frees_the_trial() {
    let config = AdmissionConfig { consecutive_timeouts: 1, ..AdmissionConfig::default() };
    let (admission, tool) = (Admission::new(config), limited("slow", 1));
    let running = admission.of(&tool, &ROOT).await.unwrap();
    {
        let other = limited("slow", 2);
        admission.of(&other, &ROOT).await.unwrap().finish(Some(ErrorKind::Timeout));
    }
    advance(Duration::from_secs(60)).await;
    let mut trial = Box::pin(admission.of(&tool, &ROOT));
    assert!(is_pending(&mut trial));
    assert_eq!(admission.of(&tool, &ROOT).await.unwrap_err().kind(), ErrorKind::Paused);
    drop((trial, running));
    admission.of(&tool, &ROOT).await.unwrap().finish(None);
    let _both = (admission.of(&tool, &ROOT).await.unwrap(), admission.load());
}

/// One call of a random schedule: its tool, when it comes, how long it runs, when it is dropped.
#[derive(Debug, Clone)]
struct Planned {
    tool: usize,
    nested: Option<usize>,
    start: u64,
    run: u64,
    dropped: Option<u64>,
}

fn planned() -> impl Strategy<Value = Planned> {
    (0..3_usize, prop::option::of(0..3_usize), 0..400_u64, 0..20_u64, prop::option::of(0..60_u64))
        .prop_map(|(tool, nested, start, run, dropped)| Planned {
            tool,
            nested,
            start,
            run,
            dropped,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]
    #[test]
    fn every_slot_comes_back_whatever_is_dropped(
        calls in prop::collection::vec(planned(), 500),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let admission = admission();
            let tools = [limited("a", 1), limited("b", 2), limited("c", 7)];
            let call = |plan: Planned| {
                let (admission, tools) = (&admission, &tools);
                async move {
                    sleep(Duration::from_millis(plan.start)).await;
                    let work = async {
                        let Ok(permit) = admission.of(&tools[plan.tool], &ROOT).await else { return };
                        if let Some(nested) = plan.nested {
                            let lineage = under(&permit, &tools[plan.tool], &ROOT);
                            if let Ok(inner) = admission.of(&tools[nested], &lineage).await {
                                sleep(Duration::from_millis(plan.run)).await;
                                inner.finish(None);
                            }
                        }
                        sleep(Duration::from_millis(plan.run)).await;
                        permit.finish(None);
                    };
                    let limit = Duration::from_millis(plan.dropped.unwrap_or(u64::MAX));
                    let _ = tokio::time::timeout(limit, work).await;
                }
            };
            futures_util::future::join_all(calls.into_iter().map(call)).await;
            prop_assert_eq!(admission.load(), (0, 0));
            // And they can be taken again, all of them and no more.
            for (tool, limit) in tools.iter().zip([1, 2, 7]) {
                let mut permits = Vec::new();
                for _ in 0..limit {
                    permits.push(admission.of(tool, &ROOT).await.unwrap());
                }
                let mut one_more = Box::pin(admission.of(tool, &ROOT));
                prop_assert!(is_pending(&mut one_more));
            }
            Ok(())
        })?;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_slot_comes_back_when_threads_race() {
    let admission = Arc::new(admission());
    let tool = Arc::new(limited("slow", 3));
    let calls: Vec<_> = (0..64_u64)
        .map(|number| {
            let (admission, tool) = (Arc::clone(&admission), Arc::clone(&tool));
            tokio::spawn(async move {
                for round in 0..50_u64 {
                    let call = async {
                        let permit = admission.of(&tool, &ROOT).await.unwrap();
                        tokio::task::yield_now().await;
                        permit.finish(None);
                    };
                    let drop_after = Duration::from_micros((number * 7 + round * 13) % 200);
                    tokio::select! {
                        () = call => {}
                        () = sleep(drop_after) => {}
                    }
                }
            })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
    assert_eq!(admission.load(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn names_that_are_no_longer_called_are_forgotten_and_limits_in_use_are_not() {
    let admission = admission();
    let (busy, used_up) =
        (limited("busy", 1), definition("used_up").rate("1/h".parse().unwrap()).build().unwrap());
    let running = admission.of(&busy, &ROOT).await.unwrap();
    drop(admission.of(&used_up, &ROOT).await.unwrap());
    for number in 0..10_000 {
        drop(admission.of(&limited(&format!("tool_{number}"), 1), &ROOT).await.unwrap());
    }
    let known = admission.tools.read().unwrap().len();
    assert!(known < 64, "{known} names are known");
    assert!(is_pending(&mut std::pin::pin!(admission.of(&busy, &ROOT))), "its slot is taken");
    let refused = admission.of(&used_up, &ROOT).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::RateLimited);
    drop(running);
}
