//! Changes between a call and its answer, on real servers over one store: every pair of how the
//! call is made, its key, who approves, why the tool is trusted, what changes, and how many servers
//! there are.
//!
//! A failing row prints its name; `TOOLCRIB_JOINTS='NAME'` runs it alone. `TOOLCRIB_JOINTS=all` runs every
//! combination.

use std::collections::VecDeque;
use std::fs;
use std::panic::catch_unwind;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcrib_testkit::covering::{covering, every_two, product};
use toolcrib_testkit::{combination, dimension};

use crate::harness::connection::{Connection, Reply};
use crate::harness::crib::Crib;
use crate::harness::http::Http;

dimension! {
    /// How the call is made.
    Way { Call = "call", Batch = "batch", Run = "run" }
}

dimension! {
    /// Whether the request has a key under which its answer is stored.
    Key { Without = "no key", With = "key" }
}

dimension! {
    /// Who decides whether the call may run.
    Consent { Free = "no consent", Approved = "approved", Denied = "denied" }
}

dimension! {
    /// Why the tool may run unconfined.
    Word { Config = "trusted by the config", Recorded = "trusted as it was" }
}

dimension! {
    /// What changes while the call waits or, if it does not wait, after its answer.
    Change {
        Nothing = "no change", Rewritten = "files written again", Script = "script changed",
        Manifest = "manifest changed", Distrusted = "trust withdrawn", Revoked = "client revoked",
        Restarted = "killed and started again",
    }
}

dimension! {
    /// How many servers use the same files and the same store. With two, the other one is asked
    /// after the change.
    Servers { One = "one server", Two = "two servers" }
}

combination! {
    /// One combination.
    Row { way: Way, key: Key, consent: Consent, word: Word, change: Change, servers: Servers }
}

impl Row {
    fn name(self) -> String {
        self.names().collect::<Vec<_>>().join(", ")
    }

    /// Whether the tool that would run is still the one that was called, and may run.
    fn goes_on(self) -> bool {
        matches!(self.change, Change::Nothing | Change::Rewritten | Change::Restarted)
    }
}

const OPERATOR: &str = "operator-token-for-tests";
const ADA: &str = "ada-token-for-these-tests";

/// The tool's program; it appends a line to the file `DEEDS`.
const SCRIPT: &str = "#!/bin/sh\necho one >> 'DEEDS'\necho \"did $1 as one\"\n";

/// How long a server may take to notice a change.
const PATIENCE: Duration = Duration::from_secs(20);

/// The output of `toolcrib token` for ada's token.
fn hash() -> &'static str {
    static HASH: OnceLock<String> = OnceLock::new();
    HASH.get_or_init(|| {
        let crib = Crib::new(&[]);
        let mut command = crib.command(&["token", "ada", "--hash", "--json"]);
        let output = command.write_stdin(ADA).output().expect("it runs");
        let said: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        said["hash"].as_str().expect("a hash").to_owned()
    })
}

/// A running row.
struct Stage {
    row: Row,
    crib: Crib,
    servers: Vec<Http>,
    problems: Vec<String>,
}

impl Stage {
    fn new(row: Row) -> Self {
        let crib = Crib::new(&[]);
        let stage = Self { row, crib, servers: Vec::new(), problems: Vec::new() };
        stage.write("do it", SCRIPT);
        stage.config(true, row.word == Word::Config);
        if row.word == Word::Recorded {
            let run = stage.crib.run(&["trust", "tools.d/deed.yaml", "--yes"]);
            assert_eq!(run.code, Some(0), "{run:?}");
        }
        stage
    }

    /// The manifest, with this description, and its script.
    fn write(&self, description: &str, script: &str) {
        let approval =
            if self.row.consent == Consent::Free { "" } else { "    approval: always\n" };
        self.write_script(script);
        self.crib.write(
            "deed.yaml",
            &format!(
                "toolcrib: 1\ntools:\n  - name: deed\n    description: {description}\n{approval}    \
                 input: {{properties: {{what: {{type: string}}}}, required: [what]}}\n    run: \
                 {{script: ./deed.sh, args: ['${{args.what}}']}}\n    sandbox: {{profile: trusted}}\n"
            ),
        );
    }

    fn write_script(&self, script: &str) {
        let deeds = self.deeds_file().display().to_string();
        self.crib.write("deed.sh", &script.replace("DEEDS", &deeds));
    }

    fn config(&self, with_ada: bool, with_trust: bool) {
        let ada = format!(", tokens: {{ada: {{hash: \"{}\"}}}}", hash());
        let trust = "manifests: {trusted: [tools.d/deed.yaml]}\n";
        self.crib.config(&format!(
            "state: {{dir: state}}\n{}server: {{token: {OPERATOR}{}}}\n",
            if with_trust { trust } else { "" },
            if with_ada { &ada } else { "" },
        ));
    }

    fn deeds_file(&self) -> std::path::PathBuf {
        self.crib.data().join("deeds")
    }

    /// How often the script has run.
    fn deeds(&self) -> usize {
        fs::read_to_string(self.deeds_file()).map_or(0, |text| text.lines().count())
    }

    fn problem(&mut self, problem: impl Into<String>) {
        self.problems.push(problem.into());
    }

    /// The server that is asked after the change.
    fn other(&self) -> &Http {
        self.servers.last().expect("there is one")
    }

    fn ask(http: &Http, token: &str, line: &str, key: Option<&str>, body: &Value) -> Reply {
        let key: Vec<_> = key.map(|key| ("idempotency-key", key)).into_iter().collect();
        let mut connection = Connection::open(&http.address, token).expect("it listens");
        connection.ask(line, &key, body).expect("an answer")
    }

    /// Makes the call.
    fn call(&self, http: &Http, keyed: bool) -> Reply {
        let key = (keyed && self.row.key == Key::With).then_some("the-key");
        let call = json!({"tool": "deed", "arguments": {"what": "it"}});
        let (line, body) = match self.row.way {
            Way::Call => {
                ("POST /v1/tools/deed/call", json!({"arguments": call["arguments"].clone()}))
            }
            Way::Batch => ("POST /v1/batch", json!({"calls": [call]})),
            Way::Run => ("POST /v1/runs", json!({"calls": [call]})),
        };
        Self::ask(http, ADA, line, key, &body)
    }

    fn play(mut self) -> Vec<String> {
        let count = if self.row.servers == Servers::Two { 2 } else { 1 };
        self.servers = (0..count).map(|_| Http::start(&self.crib, "")).collect();
        let first = self.call(&self.servers[0], true);
        if self.row.consent == Consent::Free {
            self.says(&first, "did it as one", "the first call");
            self.change();
        } else {
            self.decided(&first);
        }
        let ran = usize::from(match self.row.consent {
            Consent::Free => true,
            Consent::Approved => self.row.goes_on(),
            Consent::Denied => false,
        });
        self.ran(ran, "the call");
        if self.row.key == Key::With {
            self.called_again_under_its_key(&first);
            self.ran(ran, "the call and its repetition");
        }
        self.called_anew(ran);
        self.problems
    }

    /// The call waits while something changes, and is then decided on twice.
    fn decided(&mut self, first: &Reply) {
        let run = first.body["id"].as_str().unwrap_or_default().to_owned();
        if first.body["status"] != "requires_action" {
            return self.problem(format!("it does not wait: {first:?}"));
        }
        self.ran(0, "a call that waits");
        self.change();
        let waiting = first.body["waiting"][0]["id"].as_str().unwrap_or_default();
        let line = format!("POST /v1/approvals/{waiting}");
        let decision = match self.row.consent {
            Consent::Denied => json!({"decision": "deny", "message": "not today"}),
            _ => json!({"decision": "approve"}),
        };
        let decided = Self::ask(self.other(), OPERATOR, &line, None, &decision);
        // The calls of a removed client may have been denied already.
        let is_over = self.row.change == Change::Revoked && [404, 409].contains(&decided.status);
        if decided.status != 200 && !is_over {
            self.problem(format!("the decision: {decided:?}"));
        }
        for http in &self.servers {
            let again = Self::ask(http, OPERATOR, &line, None, &json!({"decision": "approve"}));
            if !(400..500).contains(&again.status) {
                return self.problem(format!("a second decision: {again:?}"));
            }
        }
        if self.row.change == Change::Revoked {
            return;
        }
        let begun = Instant::now();
        let ended = loop {
            let line = format!("GET /v1/runs/{run}");
            let answer = Self::ask(&self.servers[0], ADA, &line, None, &Value::Null);
            if answer.status != 200 || answer.body["status"] == "completed" {
                break answer;
            }
            if begun.elapsed() > PATIENCE {
                return self.problem(format!("the run does not end: {answer:?}"));
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let says = match self.row.consent {
            Consent::Denied if self.row.goes_on() => "not today",
            Consent::Approved if self.row.goes_on() => "did it as one",
            // Asserts that it was denied, or that it could no longer run.
            _ => "\"error\"",
        };
        self.says(&ended, says, "the run");
    }

    fn says(&mut self, reply: &Reply, text: &str, what: &str) {
        if !reply.body.to_string().contains(text) {
            self.problem(format!("{what} does not say {text:?}: {reply:?}"));
        }
    }

    fn ran(&mut self, wanted: usize, what: &str) {
        let deeds = self.deeds();
        if deeds != wanted {
            self.problem(format!("{what} ran {deeds} times instead of {wanted}"));
        }
    }

    /// Makes the change, and waits until the servers have noticed it if they have to look for it.
    fn change(&mut self) {
        match self.row.change {
            Change::Nothing => {}
            Change::Rewritten => self.write("do it", SCRIPT),
            // Regardless of whether a server has noticed: the executed call is compared with the
            // approved one.
            Change::Script => self.write_script(&SCRIPT.replace("as one", "as another")),
            Change::Manifest => {
                self.write("do it anew", SCRIPT);
                let is_anew = |reply: &Reply| {
                    reply.status != 200 || reply.body.to_string().contains("do it anew")
                };
                self.until("GET /v1/tools/deed", is_anew);
            }
            Change::Distrusted => {
                if self.row.word == Word::Config {
                    self.config(true, false);
                    self.reload();
                } else {
                    let run = self.crib.run(&["trust", "--revoke", "tools.d/deed.yaml"]);
                    assert_eq!(run.code, Some(0), "{run:?}");
                }
                let is_gone = |reply: &Reply| !reply.body.to_string().contains("\"deed\"");
                self.until("GET /v1/tools", is_gone);
            }
            Change::Revoked => {
                self.config(false, self.row.word == Word::Config);
                self.reload();
                self.until_revoked();
            }
            Change::Restarted => {
                self.servers[0].server.signal("KILL");
                self.servers[0] = Http::start(&self.crib, "");
            }
        }
    }

    fn reload(&self) {
        for http in &self.servers {
            http.server.signal("HUP");
        }
    }

    /// Waits until each server returns this answer.
    fn until(&mut self, line: &str, holds: impl Fn(&Reply) -> bool) {
        let begun = Instant::now();
        for http in &self.servers {
            loop {
                let reply = Self::ask(http, OPERATOR, line, None, &Value::Null);
                if holds(&reply) {
                    break;
                }
                if begun.elapsed() > PATIENCE {
                    return self.problem(format!("{line} stays as it was: {reply:?}"));
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }

    fn until_revoked(&mut self) {
        let begun = Instant::now();
        for http in &self.servers {
            while Self::ask(http, ADA, "GET /v1/tools", None, &Value::Null).status != 401 {
                if begun.elapsed() > PATIENCE {
                    return self.problem("the token stays good");
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }

    /// The answer under a key is repeated, whatever the tool would do now.
    fn called_again_under_its_key(&mut self, first: &Reply) {
        let again = self.call(self.other(), true);
        if self.row.change == Change::Revoked {
            if again.status != 401 {
                self.problem(format!("a revoked client is answered under its key: {again:?}"));
            }
            return;
        }
        let said = (again.status, again.header("idempotency-replayed"), again.body["id"].clone());
        if said != (first.status, Some("true"), first.body["id"].clone()) {
            self.problem(format!("not what was answered before: {again:?} instead of {first:?}"));
        }
    }

    /// A new call gets the current tool, if there is one.
    fn called_anew(&mut self, ran: usize) {
        let begun = Instant::now();
        let is_recorded = self.row.word == Word::Recorded;
        let (is_let, says) = match self.row.change {
            Change::Revoked | Change::Distrusted => (false, "did it"),
            Change::Script | Change::Manifest if is_recorded => (false, "did it"),
            Change::Script => (true, "did it as another"),
            _ => (true, "did it as one"),
        };
        loop {
            let reply = self.call(self.other(), false);
            let text = reply.body.to_string();
            // The waiting call is approved: it runs as it was shown, or not at all.
            let waiting = reply.body["waiting"][0]["id"].as_str();
            let has_run = match waiting {
                None => text.contains(says),
                Some(id) => {
                    let line = format!("POST /v1/approvals/{id}");
                    let approve = json!({"decision": "approve"});
                    let decided = Self::ask(self.other(), OPERATOR, &line, None, &approve);
                    decided.body["outcome"]["status"] == "succeeded"
                }
            };
            let deeds = self.deeds() - ran;
            if !is_let && deeds > 0 {
                return self.problem(format!("what may not run has run: {reply:?}"));
            }
            let is_asked = self.row.consent != Consent::Free;
            let is_as_asked = deeds > 0 && waiting.is_some() == is_asked;
            let is_right = has_run == is_let && (is_as_asked || !is_let);
            if is_right {
                return;
            }
            // A server needs a moment to notice a changed file.
            if begun.elapsed() > PATIENCE {
                return self.problem(format!("a new call: {reply:?}"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn what_changes_meanwhile_holds_for_calls_of_every_kind_on_every_server() {
    let wanted = std::env::var("TOOLCRIB_JOINTS").ok();
    let all = product(Row::SIZES, |_| true);
    let pairs = covering(&all, &every_two(Row::SIZES.len()));
    let is_wanted = |(place, row): &(usize, Row)| match wanted.as_deref() {
        None => pairs.contains(place),
        Some("all") => true,
        Some(name) => row.name() == name,
    };
    let rows = all.iter().map(|values| Row::of(values)).enumerate().filter(is_wanted);
    let queue: Mutex<VecDeque<Row>> = Mutex::new(rows.map(|(_, row)| row).collect());
    let lock = |queue: &Mutex<VecDeque<Row>>| queue.lock().expect("no panic").pop_front();
    let count = queue.lock().expect("no panic").len();
    assert!(count > 0, "no row has that name");
    let failures: Mutex<Vec<String>> = Mutex::default();
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(row) = lock(&queue) {
                    let played = catch_unwind(|| Stage::new(row).play());
                    let problems = played.unwrap_or_else(|panic| {
                        let text = panic.downcast_ref::<String>().cloned();
                        vec![format!("it panicked: {}", text.unwrap_or_default())]
                    });
                    if !problems.is_empty() {
                        let failure = format!("{}\n    {}", row.name(), problems.join("\n    "));
                        failures.lock().expect("no panic").push(failure);
                    }
                }
            });
        }
    });
    println!("{count} rows in {:?}", begun.elapsed());
    let failures = failures.into_inner().expect("no panic");
    assert!(failures.is_empty(), "{} rows failed\n{}", failures.len(), failures.join("\n"));
}
