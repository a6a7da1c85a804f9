//! Two servers share a state folder, and one of them is killed repeatedly under load: answers stay available, and
//! nothing is done twice.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{
    EndsClients, Ledger, Listening, TOKEN, Told, audited, body, crib, effects, figure,
    processes_with, times, told, until,
};
use crate::harness::connection::{Connection, Reply};

/// The current addresses of both servers.
struct Addresses(Mutex<[String; 2]>);

impl Addresses {
    fn get(&self, server: usize) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)[server % 2].clone()
    }

    fn set(&self, server: usize, address: &str) {
        address.clone_into(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner)[server]);
    }
}

struct Client<'a> {
    addresses: &'a Addresses,
    server: usize,
    connection: Option<(String, Connection)>,
}

impl<'a> Client<'a> {
    fn new(addresses: &'a Addresses, server: usize) -> Self {
        Self { addresses, server, connection: None }
    }

    /// Sends once; `Err` if the connection broke.
    fn ask(&mut self, line: &str, key: &str, body: &Value) -> std::io::Result<Reply> {
        let address = self.addresses.get(self.server);
        let mut connection = match self.connection.take() {
            Some((known, connection)) if known == address => connection,
            _ => Connection::open(&address, TOKEN)?,
        };
        let headers = [("idempotency-key", key)];
        let reply = connection.ask(line, if key.is_empty() { &[] } else { &headers }, body)?;
        self.connection = Some((address, connection));
        Ok(reply)
    }

    /// Sends with a key, to either server, until there is an answer.
    fn insist(&mut self, line: &str, key: &str, body: &Value) -> Reply {
        let deadline = Instant::now() + Duration::from_secs(120);
        loop {
            match self.ask(line, key, body) {
                // The other server works on it.
                Ok(Reply { status: 409, .. }) => {}
                Ok(reply) => return reply,
                Err(_) => self.server += 1,
            }
            assert!(Instant::now() < deadline, "{key} is not answered");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// An answer under a key.
struct Kept {
    line: String,
    key: String,
    body: Value,
    status: u16,
    answer: Value,
}

struct Field {
    addresses: Addresses,
    ledger: Ledger,
    kept: Mutex<Vec<Kept>>,
    is_over: AtomicBool,
    answered: AtomicUsize,
}

impl Field {
    fn keep(&self, line: String, key: String, body: Value, reply: &Reply) {
        let (status, answer) = (reply.status, reply.body.clone());
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push(Kept { line, key, body, status, answer });
    }

    /// Makes calls until the test ends; every call has a key, and is repeated until there is an
    /// answer.
    fn client(&self, number: usize) {
        let mut client = Client::new(&self.addresses, number);
        for call in 0.. {
            if self.is_over.load(Ordering::SeqCst) {
                break;
            }
            let id = format!("{number}-{call}");
            if (number + call).is_multiple_of(4) {
                self.signed(&mut client, &id);
            } else {
                let tool = if (number + call).is_multiple_of(2) { "mark" } else { "note" };
                let (line, key) = (format!("POST /v1/tools/{tool}/call"), format!("key-{id}"));
                let reply = client.insist(&line, &key, &body(&id));
                self.ledger.enter(&id, told(&id, &reply));
                self.keep(line, key, body(&id), &reply);
            }
            self.answered.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// A call that waits for approval, and its approval, each with a key.
    fn signed(&self, client: &mut Client<'_>, id: &str) {
        let key = format!("ask-{id}");
        let waits = client.insist("POST /v1/tools/sign/call", &key, &body(id));
        if (waits.status, waits.body["kind"].as_str()) == (424, Some("outcome_unknown")) {
            // The server died before it could report which call waits; nobody approves it.
            return self.ledger.enter(id, Ok(Told::Refused));
        }
        let Some(waiting) = waits.body["waiting"][0]["id"].as_str() else {
            return self.ledger.enter(id, Err(format!("{id}: {waits:?}")));
        };
        let (line, key) = (format!("POST /v1/approvals/{waiting}"), format!("approve-{id}"));
        let decision = json!({"decision": "approve"});
        let reply = client.insist(&line, &key, &decision);
        let told = match (reply.status, reply.body["outcome"]["status"].as_str()) {
            (200, Some("succeeded")) => Ok(Told::Done),
            (200, Some("running" | "waiting")) | (424, _) => Ok(Told::Unknown),
            _ => Err(format!("{id}: {reply:?}")),
        };
        self.ledger.enter(id, told);
        self.keep(line, key, decision, &reply);
    }
}

/// What is pending while the server is killed: a call that a client runs, a call that waits for approval, and a program
/// that must not outlive the server.
struct Waiting {
    run: String,
    approval: String,
    number: String,
}

impl Waiting {
    fn begin(field: &Field, round: usize) -> Self {
        let mut client = Client::new(&field.addresses, 0);
        let calls = json!({"calls": [{"tool": "pick", "call_id": format!("pick-{round}")}]});
        let run = client.ask("POST /v1/runs", "", &calls).expect("an answer");
        assert_eq!(run.status, 201, "{run:?}");
        let number = format!("over-{round}");
        let waits = client.ask("POST /v1/tools/sign/call", "", &body(&number)).expect("an answer");
        assert_eq!(waits.status, 202, "{waits:?}");
        let text = |value: &Value| value.as_str().expect("an id").to_owned();
        Self { run: text(&run.body["id"]), approval: text(&waits.body["waiting"][0]["id"]), number }
    }

    /// After the restart both servers know it, and if two decide at once, one of them succeeds.
    fn end(self, field: &Field, round: usize) {
        let line = format!("POST /v1/runs/{}/submit_tool_outputs", self.run);
        let id = format!("pick-{round}");
        let outputs = json!({"tool_outputs": [{"tool_call_id": id, "output": "a.txt"}]});
        let mut client = Client::new(&field.addresses, round);
        let over = client.ask(&line, "", &outputs).expect("an answer");
        assert_eq!((over.status, &over.body["status"]), (200, &json!("completed")), "{over:?}");
        assert_eq!(over.body["results"][0]["output"], "a.txt", "{over:?}");
        field.ledger.right();

        let line = format!("POST /v1/approvals/{}", self.approval);
        let decisions: Vec<_> = std::thread::scope(|scope| {
            let both: Vec<_> = [0, 1]
                .map(|server| {
                    let (line, addresses) = (&line, &field.addresses);
                    scope.spawn(move || {
                        let mut client = Client::new(addresses, server);
                        client.ask(line, "", &json!({"decision": "approve"})).expect("an answer")
                    })
                })
                .into();
            both.into_iter().map(|one| one.join().expect("an answer")).collect()
        });
        let won: Vec<_> = decisions.iter().filter(|reply| reply.status == 200).collect();
        let told = match won.as_slice() {
            [reply] if reply.body["outcome"]["status"] == "succeeded" => Ok(Told::Done),
            [reply] if reply.body["outcome"]["status"] == "running" => Ok(Told::Unknown),
            _ => Err(format!("{}: {decisions:?}", self.number)),
        };
        field.ledger.enter(&self.number, told);
    }
}

#[test]
fn a_server_that_is_killed_again_and_again_loses_nothing_and_does_nothing_twice() {
    let (kills, clients, each) = (figure(2, 8), figure(4, 20), figure(24, 400));
    // Each client's runs and answers are kept; there are more of them than the default limit.
    let crib = crib("limits: {per_client: {runs: 100000, keys: 100000}}\n");
    let mut killed = Listening::start(&crib);
    let mut stays = Listening::start(&crib);
    let field = Field {
        addresses: Addresses(Mutex::new([killed.address.clone(), stays.address.clone()])),
        ledger: Ledger::default(),
        kept: Mutex::default(),
        is_over: AtomicBool::new(false),
        answered: AtomicUsize::new(0),
    };
    let mut restarts = Vec::new();
    std::thread::scope(|scope| {
        let over = EndsClients(&field.is_over);
        let all: Vec<_> = (0..clients)
            .map(|number| {
                scope.spawn({
                    let field = &field;
                    move || field.client(number)
                })
            })
            .collect();
        for round in 0..kills {
            let waiting = Waiting::begin(&field, round);
            // With digits that occur in the arguments of no other process.
            let seconds = format!("600.{}{round}", std::process::id());
            let mut nap = killed.connection();
            scope.spawn({
                let seconds = seconds.clone();
                move || {
                    nap.ask(
                        "POST /v1/tools/nap/call",
                        &[],
                        &json!({"arguments": {"seconds": seconds}}),
                    )
                }
            });
            until("the nap has begun", Duration::from_secs(60), || {
                !processes_with(&seconds).is_empty()
            });
            let goal = field.answered.load(Ordering::SeqCst) + each;
            until("the clients are answered", Duration::from_secs(120), || {
                field.answered.load(Ordering::SeqCst) >= goal
                    || all.iter().any(std::thread::ScopedJoinHandle::is_finished)
            });
            killed.server.signal("KILL");
            killed.server.ended();
            let began = Instant::now();
            killed = Listening::start(&crib);
            restarts.push(began.elapsed());
            field.addresses.set(0, &killed.address);
            until("no program outlives its server", Duration::from_secs(10), || {
                processes_with(&seconds).is_empty()
            });
            waiting.end(&field, round);
        }
        drop(over);
    });

    // Every answer is still available at both servers, and asking for it has no effect.
    let before = effects(&crib);
    let kept = field.kept.into_inner().expect("nobody failed");
    let mut again = 0;
    for (index, one) in kept.iter().enumerate() {
        let mut client = Client::new(&field.addresses, index);
        let reply = client.insist(&one.line, &one.key, &one.body);
        let is_same = reply.status == one.status && reply.body == one.answer;
        // Without a stored answer, an outcome that was lost with a server is reported each time.
        let is_again = reply.header("idempotency-replayed") == Some("true") || one.status == 424;
        if is_same && is_again {
            again += 1;
        } else {
            field
                .ledger
                .wrong(format!("{}: {} {} and then {reply:?}", one.key, one.status, one.answer));
        }
    }
    assert_eq!(effects(&crib), before, "nothing ran again");
    for server in [&mut killed, &mut stays] {
        server.server.signal("TERM");
        assert_eq!(server.server.ended(), Some(0));
    }
    println!(
        "storm kills: {kills} under {clients} clients; back {}; {again} of {} keys answered again; {} audited",
        times(restarts),
        kept.len(),
        audited(&crib)
    );
    let sum = field.ledger.close("kills", &crib);
    assert!(sum.done > kills * each / 2, "{sum}");
}
