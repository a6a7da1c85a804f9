//! A server is asked to stop under load: running calls are answered, new ones are refused, and the
//! server ends.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use super::{
    Ledger, Listening, TOKEN, Told, audited, body, crib, figure, processes_with, times, told, until,
};
use crate::harness::connection::Connection;

/// Makes calls until nobody listens any more. A request on a connection that the server has closed was never accepted.
fn client(address: &str, ledger: &Ledger, answered: &AtomicUsize, name: &str) {
    let mut connection = None;
    for call in 0_usize.. {
        let id = format!("{name}-{call}");
        let Ok(mut open) = connection.take().map_or_else(|| Connection::open(address, TOKEN), Ok)
        else {
            break;
        };
        let tool = if call.is_multiple_of(2) { "mark" } else { "note" };
        match open.ask(&format!("POST /v1/tools/{tool}/call"), &[], &body(&id)) {
            Ok(reply) => {
                ledger.enter(&id, told(&id, &reply));
                connection = Some(open);
            }
            Err(_) => ledger.enter(&id, Ok(Told::Refused)),
        }
        answered.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_server_that_is_asked_to_stop_answers_what_runs_and_does_nothing_that_it_refused() {
    let (stops, clients) = (figure(1, 5), figure(6, 20));
    let crib = crib("");
    let ledger = Ledger::default();
    let mut ends = Vec::new();
    for stop in 0..stops {
        let mut server = Listening::start(&crib);
        let answered = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for number in 0..clients {
                let (address, ledger, answered) = (&server.address, &ledger, &answered);
                scope.spawn(move || client(address, ledger, answered, &format!("{stop}-{number}")));
            }
            until("the clients are answered", Duration::from_secs(120), || {
                answered.load(Ordering::SeqCst) >= 10 * clients
            });
            // A call that ends within the grace period, and one that does not. The digits after the point occur in the
            // arguments of no other process.
            let naps = [("1.5", 200), ("600.0", 503)].map(|(seconds, status)| {
                let seconds = format!("{seconds}00{}{stop}", std::process::id());
                let mut connection = server.connection();
                let arguments = json!({"arguments": {"seconds": seconds}});
                let nap =
                    scope.spawn(move || connection.ask("POST /v1/tools/nap/call", &[], &arguments));
                until("the nap has begun", Duration::from_secs(60), || {
                    !processes_with(&seconds).is_empty()
                });
                (nap, status, seconds)
            });
            let began = Instant::now();
            server.server.signal("TERM");
            let naps = naps.map(|(nap, status, seconds)| {
                let reply = nap.join().expect("it has not failed").expect("an answer");
                assert_eq!(reply.status, status, "{reply:?}");
                seconds
            });
            assert_eq!(server.server.ended(), Some(0));
            ends.push(began.elapsed());
            for seconds in naps {
                assert!(processes_with(&seconds).is_empty(), "a program outlives its server");
            }
        });
        assert!(Connection::open(&server.address, TOKEN).is_err(), "nobody listens");
    }
    println!(
        "storm stops: {stops} under {clients} clients; ended {}; {} audited",
        times(ends),
        audited(&crib)
    );
    let sum = ledger.close("stops", &crib);
    assert!(sum.done >= stops * clients, "{sum}");
}
