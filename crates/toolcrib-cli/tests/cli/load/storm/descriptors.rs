//! A server with few file descriptors gets more requests than it can handle.

use std::net::TcpStream;
use std::time::Duration;

use super::{Ledger, Listening, TOKEN, body, crib, figure, told};
use crate::harness::connection::Connection;

#[test]
fn calls_fail_without_file_descriptors_and_recover_later() {
    let (rounds, clients) = (figure(1, 5), 40);
    let crib = crib("");
    let mut server = Listening::start_by(&crib, &["sh", "-c", "ulimit -n 64; exec \"$@\"", "sh"]);
    let ledger = Ledger::default();
    for round in 0..rounds {
        let idle: Vec<_> =
            (0..150).filter_map(|_| TcpStream::connect(&server.address).ok()).collect();
        assert!(idle.len() > 64, "there are more connections than descriptors");
        std::thread::sleep(Duration::from_millis(300));
        drop(idle);
        server.serves_within(Duration::from_secs(30));

        // Each of these needs several descriptors.
        std::thread::scope(|scope| {
            for client in 0..clients {
                let (address, ledger) = (&server.address, &ledger);
                scope.spawn(move || {
                    let id = format!("{round}-{client}");
                    let reply = Connection::open(address, TOKEN).and_then(|mut connection| {
                        connection.ask("POST /v1/tools/mark/call", &[], &body(&id))
                    });
                    let reply = reply.map_err(|error| format!("{id}: {error}"));
                    ledger.enter(&id, reply.and_then(|reply| told(&id, &reply)));
                });
            }
        });
        server.serves_within(Duration::from_secs(30));
        for call in 0_usize..clients {
            let id = format!("{round}-{call}-later");
            let tool = if call.is_multiple_of(2) { "mark" } else { "note" };
            let line = format!("POST /v1/tools/{tool}/call");
            let reply = server.connection().ask(&line, &[], &body(&id)).expect("an answer");
            assert_eq!(reply.status, 200, "there are descriptors again: {reply:?}");
            ledger.enter(&id, told(&id, &reply));
        }
    }
    server.server.signal("TERM");
    assert_eq!(server.server.ended(), Some(0));
    let sum = ledger.close("descriptors", &crib);
    assert!(sum.done >= rounds * clients, "{sum}");
}
