//! Many declarations at once yield the same tools, in the same order, as one after another.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use toolcrib_manifest::load_str;
use toolcrib_runners::{RunnerHost, Trust, TrustDecision, TrustRequest, entries, entry};
use toolcrib_tool::{Arguments, Body, ErrorKind};

use crate::declare::context;

#[test]
fn many_declarations_yield_complete_tools_in_order() {
    let mut text = "toolcrib: 1\ntools:\n".to_owned();
    for number in 0..333 {
        let program = if number % 7 == 0 { "no-such-program" } else { "echo" };
        writeln!(
            text,
            "  - {{name: t{number}, description: Number {number}., run: {{argv: [{program}]}}}}"
        )
        .unwrap();
    }
    let loaded = load_str("many.yaml", &text);
    assert_eq!(loaded.diagnostics, []);
    let all: Vec<_> = loaded.declarations.iter().collect();
    let host = RunnerHost::new("/");
    for count in [0, 1, 31, 32, 33, 64, 65, 333] {
        let made = entries(&all[..count], &host);
        assert_eq!(made.len(), count);
        for (made, declaration) in made.iter().zip(&all) {
            let alone = entry(declaration, &host);
            assert_eq!(made.name(), alone.name());
            assert_eq!(made.digest, alone.digest);
            assert_eq!(made.unavailable_reason(), alone.unavailable_reason());
        }
    }
}

/// An operator who vouches for everything until the flag is set.
#[derive(Debug, Clone, Default)]
struct Operator {
    revoked: Arc<AtomicBool>,
    objects: Arc<AtomicBool>,
}

impl Trust for Operator {
    fn decide(&self, _: &TrustRequest<'_>) -> TrustDecision {
        if self.revoked.load(Ordering::SeqCst) {
            TrustDecision::Untrusted { remedy: "run `toolcrib trust`".to_owned() }
        } else {
            TrustDecision::Trusted
        }
    }

    fn objection(&self, _: &TrustRequest<'_>) -> Option<String> {
        self.objects.load(Ordering::SeqCst).then(|| "is blocked: the lock has another".to_owned())
    }
}

#[tokio::test]
async fn revoked_trust_or_a_blocking_lock_stops_a_tool_without_a_reload() {
    let text = "toolcrib: 1\ntools:\n  - {name: free, description: Run unconfined., \
                sandbox: {profile: trusted}, run: {argv: [echo, ran]}}\n  \
                - {name: bound, description: Run confined., run: {argv: [echo, ran]}}\n";
    let loaded = load_str("two.yaml", text);
    assert_eq!(loaded.diagnostics, []);
    let operator = Operator::default();
    let host = RunnerHost::new("/").with_trust(operator.clone());
    let tools: Vec<_> = loaded.declarations.iter().map(|own| (own, entry(own, &host))).collect();
    let refused = async || {
        let mut refused = Vec::new();
        for (declaration, entry) in &tools {
            assert_eq!(entry.unavailable_reason(), None);
            let Body::Shared(tool) = &entry.body else { panic!("it has no body of its own") };
            let cx = context(declaration, []);
            let answer = tool.call(Arguments::from_validated("{}".to_owned()), &cx).await;
            refused.push(answer.is_err_and(|error| error.kind() == ErrorKind::Unavailable));
        }
        refused
    };
    assert_eq!(refused().await, [false, false]);
    operator.revoked.store(true, Ordering::SeqCst);
    assert_eq!(refused().await, [true, false]);
    operator.objects.store(true, Ordering::SeqCst);
    assert_eq!(refused().await, [true, true]);
}
