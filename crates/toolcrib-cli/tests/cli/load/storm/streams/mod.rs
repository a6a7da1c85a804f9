//! Many streams of the Responses API at once, with clients that hang up, come back with `starting_after` and cancel.
//!
//! The answers of the scripted model are numbered, and so are the calls of its agent. At the end each response has a whole
//! answer that no other response has, or was cancelled; each call that a response shows ran once; and nothing is left at
//! work: no response, no program, no connection.

mod client;
mod ledger;
mod visits;

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use toolcrib::wire::model::Wire;
use toolcrib_testkit::model_server::ModelServer;

use self::ledger::Ledger;
use self::visits::{Script, visit};
use super::{EndsClients, Listening, crib, effects, figure, processes_with, until};

/// Descriptors that a server may have beyond those that it had before the first response: databases, the audit log.
const DESCRIPTORS: usize = 24;
/// How much memory may grow between the middle of the long test and its end, in KiB.
const GROWTH: usize = 32 * 1024;

/// The entries of a folder of the server's process.
fn entries(server: &Listening, folder: &str) -> usize {
    fs::read_dir(format!("/proc/{}/{folder}", server.server.id())).expect("it runs").count()
}

/// The memory of the server that is no file's, in KiB.
fn memory(server: &Listening) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", server.server.id()));
    let status = status.expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("a size");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Takes the memory ten times while the clients work, and then ends them.
fn watch(server: &Listening, over: EndsClients<'_>, lasts: Duration) -> Vec<usize> {
    let mut seen = Vec::new();
    for _ in 0..10 {
        std::thread::sleep(lasts / 10);
        seen.push(memory(server));
    }
    drop(over);
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_whose_clients_hang_up_come_back_and_cancel_lose_and_leave_nothing() {
    let clients = figure(12, 200);
    let lasts = Duration::from_secs(figure(3, 60).try_into().expect("small"));
    let script = Script {
        texts: ModelServer::for_several(Wire::Chat, []).await,
        calls: ModelServer::for_several(Wire::Chat, []).await,
        naps: ModelServer::for_several(Wire::Chat, []).await,
        nap: format!("600.01{}", std::process::id()),
    };
    // All responses are looked at again at the end.
    let mut config = "limits: {per_client: {runs: 100000}}\nproviders:\n".to_owned();
    for (name, model) in
        [("texts", &script.texts), ("calls", &script.calls), ("naps", &script.naps)]
    {
        let url = model.base_url();
        config.extend([
            "  ",
            name,
            ": {kind: chat, models: {scripted: {}}, base_url: \"",
            &url,
            "\"}\n",
        ]);
    }
    config += "agents:\n  marker: {model: calls/scripted, instruction: Mark.}\n  sleeper: {model: naps/scripted, instruction: Sleep.}\n";
    let crib = crib(&config);
    let mut server = Listening::start(&crib);
    let descriptors = entries(&server, "fd");

    let ledger = Ledger::default();
    let is_over = AtomicBool::new(false);
    let began = Instant::now();
    let sizes = std::thread::scope(|scope| {
        let over = EndsClients(&is_over);
        for client in 0..clients {
            let (server, script, ledger, is_over) = (&server, &script, &ledger, &is_over);
            scope.spawn(move || {
                let mut visits = client;
                // So that every kind of visit is made, also in a short test on a slow machine.
                while !is_over.load(Ordering::SeqCst) || visits < client + 2 {
                    if let Err(problem) = visit(server, script, ledger, visits) {
                        ledger.wrong(format!("client {client}, visit {visits}: {problem}"));
                    }
                    visits += 1;
                }
            });
        }
        watch(&server, over, lasts)
    });
    let took = began.elapsed();

    until("no program is left", Duration::from_secs(20), || processes_with(&script.nap).is_empty());
    until("no connection is left", Duration::from_secs(20), || {
        entries(&server, "fd") <= descriptors + DESCRIPTORS
    });
    let mut connection = server.connection();
    for id in ledger.responses() {
        let path = format!("GET /v1/responses/{id}");
        let reply = connection.ask(&path, &[], &Value::Null).expect("an answer");
        ledger.rests(&id, &reply.body);
    }
    let at_end = memory(&server);
    server.server.signal("TERM");
    assert_eq!(server.server.ended(), Some(0));
    for model in [&script.texts, &script.calls, &script.naps] {
        assert_eq!(model.violations(), [""; 0]);
    }
    let asked = script.texts.requests().len();
    println!(
        "storm streams: memory in MiB {:?}, at the end {}; {} descriptors before; {:.0} s",
        sizes.iter().map(|size| size / 1024).collect::<Vec<_>>(),
        at_end / 1024,
        descriptors,
        took.as_secs_f64(),
    );
    ledger.close(clients, asked, &effects(&crib));
    // A short test ends before the bounded logs of responses are full.
    if lasts >= Duration::from_secs(60) {
        let middle = sizes[4].max(sizes[5]);
        let last = sizes[8].max(sizes[9]);
        assert!(last <= middle + middle / 5 + GROWTH, "memory grows: {sizes:?}");
    }
}
