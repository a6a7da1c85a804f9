//! Instances of one call: closed once, when the call has let go of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::timeout;
use toolcrib_tool::{
    Arguments, Body, BoxFuture, CallContext, ErrorKind, Tool, ToolError, ToolFactory, tool_factory,
    tool_fn,
};

use super::{Counted, Counts, counted, definition, quiet, settled, snapshot};
use crate::Registry;
use crate::lifecycle::{Instance, Lease};

fn cx() -> CallContext {
    CallContext::builder("1", definition("per_use")).build()
}

/// Hands out one instance, which the test holds, too.
struct One(Arc<dyn Tool>);

impl ToolFactory for One {
    fn create<'a>(&'a self, _: &'a CallContext) -> BoxFuture<'a, Result<Arc<dyn Tool>, ToolError>> {
        Box::pin(async { Ok(Arc::clone(&self.0)) })
    }
}

fn one(work: super::Work) -> (One, Arc<Counts>) {
    let (tool, counts) = counted(work);
    (One(Arc::clone(tool.tool())), counts)
}

async fn run(lease: &Lease) -> Result<(), ToolError> {
    lease.call(Arguments::from_validated("{}".to_owned()), &cx()).await.map(drop)
}

#[tokio::test]
async fn success_and_failure_close_the_instance_once() {
    let works: [super::Work; 2] = [quiet, |_| Box::pin(async { Err(ToolError::execution("no")) })];
    for work in works {
        let (factory, counts) = one(work);
        let lease = Lease::take(&factory, &cx(), None).await.unwrap();
        let _ = run(&lease).await;
        settled().await;
        assert_eq!(counts.closed(), 0, "the call still has it");
        drop(lease);
        settled().await;
        assert_eq!(counts.closed(), 1);
    }
}

#[tokio::test]
async fn a_panic_a_timeout_and_a_cancellation_close_the_instance_once() {
    let (factory, counts) = one(|_| Box::pin(async { panic!("no") }));
    let lease = Lease::take(&factory, &cx(), None).await.unwrap();
    let panicked = tokio::spawn(async move { run(&lease).await }).await;
    assert!(panicked.unwrap_err().is_panic());
    settled().await;
    assert_eq!(counts.closed(), 1);

    let (factory, counts) = one(|_| Box::pin(std::future::pending()));
    let call = async {
        let lease = Lease::take(&factory, &cx(), None).await?;
        run(&lease).await
    };
    timeout(Duration::from_millis(20), call).await.unwrap_err();
    settled().await;
    assert_eq!(counts.closed(), 1);

    let (factory, counts) = one(|_| Box::pin(std::future::pending()));
    let lease = Lease::take(&factory, &cx(), None).await.unwrap();
    let running = tokio::spawn(async move { run(&lease).await });
    tokio::task::yield_now().await;
    running.abort();
    let _ = running.await;
    settled().await;
    assert_eq!(counts.closed(), 1);
}

#[tokio::test]
async fn a_thread_that_cannot_be_stopped_keeps_the_instance_open() {
    let (factory, counts) = one(quiet);
    let lease = Lease::take(&factory, &cx(), None).await.unwrap();
    let (done, wait) = std::sync::mpsc::channel::<()>();
    let held = lease.clone();
    let thread = tokio::task::spawn_blocking(move || {
        let _ = wait.recv();
        drop(held);
    });
    // The call was answered long ago.
    drop(lease);
    settled().await;
    assert_eq!(counts.closed(), 0);
    done.send(()).unwrap();
    thread.await.unwrap();
    settled().await;
    assert_eq!(counts.closed(), 1);
}

#[tokio::test]
async fn every_call_has_an_instance_of_its_own() {
    let made = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&made);
    let factory = tool_factory(move |_| {
        counter.fetch_add(1, Ordering::SeqCst);
        async { Ok(tool_fn(|_: serde_json::Value, _| async { "done" })) }
    });
    let (first, second) = (
        Lease::take(&factory, &cx(), None).await.unwrap(),
        Lease::take(&factory, &cx(), None).await.unwrap(),
    );
    assert!(!Arc::ptr_eq(&first, &second));
    assert_eq!(made.load(Ordering::SeqCst), 2);
}

struct Panics;

impl ToolFactory for Panics {
    fn create<'a>(&'a self, _: &'a CallContext) -> BoxFuture<'a, Result<Arc<dyn Tool>, ToolError>> {
        panic!("no")
    }
}

struct Slow;

impl ToolFactory for Slow {
    fn create<'a>(&'a self, _: &'a CallContext) -> BoxFuture<'a, Result<Arc<dyn Tool>, ToolError>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn a_factory_may_fail_panic_or_be_slow() {
    let failing =
        tool_factory(|_| async { Err::<Counted, _>(ToolError::unavailable("no database")) });
    let error = Lease::take(&failing, &cx(), None).await.unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Unavailable, "no database"));

    let error = Lease::take(&Panics, &cx(), None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Panic);

    let error = Lease::take(&Slow, &cx(), Some(Duration::from_millis(20))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
}

#[tokio::test]
async fn a_call_runs_on_the_shared_instance_until_it_is_closed() {
    let (tool, counts) = counted(quiet);
    let registry = Registry::with_grace(snapshot([("a", &tool)]), Duration::ZERO);
    let pinned = registry.snapshot();
    let slot = pinned.slot("a").unwrap();
    let live = slot.live().unwrap();
    let shared = Instance::shared(live).unwrap();
    assert!(Arc::ptr_eq(shared.tool(), tool.tool()) && shared.lease().is_none());

    registry.publish(snapshot([]));
    settled().await;
    assert_eq!(counts.closed(), 1);
    let error = Instance::shared(live).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);

    let factory: Arc<dyn ToolFactory> = Arc::new(One(Arc::clone(tool.tool())));
    let leased = Instance::own(&Body::PerUse(factory), &cx(), None).await.unwrap();
    assert!(leased.lease().is_some());
    assert!(Instance::own(&Body::Client, &cx(), None).await.is_err());
}
