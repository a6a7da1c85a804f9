//! Calls that are stopped from outside keep their output so far.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::time::sleep;
use toolcrib_tool::{BoxFuture, CallContext, CallHost, ErrorKind, Tool};

use crate::declare::{call_with, runner, sh};

/// Cancels by itself after a time.
struct Cancelling {
    at: Instant,
}

impl CallHost for Cancelling {
    fn cancelled(&self) -> BoxFuture<'_, ()> {
        Box::pin(sleep(self.at.saturating_duration_since(Instant::now())))
    }

    fn is_cancelled(&self) -> bool {
        Instant::now() >= self.at
    }
}

#[tokio::test]
async fn a_stopped_call_reports_the_reason_and_its_partial_output() {
    let declaration = sh("trap '' TERM; echo begun; echo note >&2; sleep 1000 & sleep 1000");
    let grace = runner(&declaration).wind_down();
    for (deadline, kind) in [(true, ErrorKind::Timeout), (false, ErrorKind::Cancelled)] {
        let at = Instant::now() + Duration::from_millis(300);
        let mut cx = CallContext::builder("call_1", Arc::clone(&declaration.definition))
            .host(Arc::new(Cancelling { at }));
        if deadline {
            cx = cx.deadline(at);
        }
        let error = call_with(&declaration, json!({}), &cx.build()).await.unwrap_err();
        let late = at.elapsed();
        assert_eq!(error.kind(), kind);
        assert!(error.message().starts_with("sh was stopped after "), "{error}");
        let partial = error.partial().unwrap();
        assert_eq!(partial.text(), "begun\n[stderr]\nnote\n");
        assert_eq!(partial.meta()["signal"], 9);
        assert!(late < grace, "{late:?} of {grace:?}");
    }
}
