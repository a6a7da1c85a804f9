//! Manifests are rewritten in all ways that editors and deployments use, while many clients of two servers with a
//! common state folder make calls.

use std::fs::{self, File, FileTimes};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use super::{Ledger, Listening, Told, audited, body, crib, figure, times, told};
use crate::harness::connection::{Connection, Reply};
use crate::harness::crib::Crib;

/// How long a file may be missing before its tools may disappear.
const AWAY: Duration = Duration::from_millis(80);
/// How long a tool may be missing after its file is back.
const BACK: Duration = Duration::from_secs(5);

/// A tool whose answers contain its version; all versions have the same length.
fn turn(tool: &str, version: usize) -> String {
    format!(
        "toolcrib: 1\ntools:\n  - name: {tool}\n    description: Say version {version:06}. Read-only.\n    \
         annotations: {{read_only: true}}\n    input: {{properties: {{number: {{type: string}}}}, required: [number]}}\n    \
         limits: {{timeout: 120s}}\n    run: {{argv: [printf, '{version:06} %s', '${{args.number}}']}}\n"
    )
}

const BROKEN: [&str; 6] = [
    "toolcrib: 1\ntools: [",
    "toolcrib: 1\ntools: [{name: turn}]\n",
    "",
    "\u{0}\u{1}\u{2}",
    "toolcrib: 1\ntools: [{name: turn, description: Two., run: {argv: [x]}, run: {argv: [y]}}]\n",
    "tools: {turn: {turn: {turn: 1}}}\n",
];

/// The known versions of one tool.
struct Turning {
    tool: &'static str,
    /// The newest version that was started to be written.
    written: AtomicUsize,
    /// The newest version that a client got, by server: no server may go back.
    seen: [AtomicUsize; 2],
}

impl Turning {
    const fn new(tool: &'static str) -> Self {
        let seen = [AtomicUsize::new(0), AtomicUsize::new(0)];
        Self { tool, written: AtomicUsize::new(0), seen }
    }

    /// Whether an answer's version was written, and had not been replaced before the call began.
    fn judge(&self, server: usize, floor: usize, version: usize) -> Result<(), String> {
        self.seen[server].fetch_max(version, Ordering::SeqCst);
        let written = self.written.load(Ordering::SeqCst);
        if (floor..=written).contains(&version) {
            return Ok(());
        }
        Err(format!("{} {version}: {floor} was live before, {written} is the newest", self.tool))
    }
}

struct Field<'a> {
    crib: &'a Crib,
    servers: [Listening; 2],
    /// A plain file, and one that is reached through links as Kubernetes creates them.
    turning: [Turning; 2],
    ledger: Ledger,
    is_over: AtomicBool,
}

/// A moment at which a tool was not found.
struct Missed {
    turning: usize,
    at: Instant,
}

impl Field<'_> {
    /// One of fifty clients, which makes calls until the test ends.
    fn client(&self, number: usize) -> (Vec<Missed>, Vec<Duration>) {
        let server = number % 2;
        let mut connection = self.servers[server].connection();
        let (mut missed, mut took) = (Vec::new(), Vec::new());
        for call in 0.. {
            if self.is_over.load(Ordering::SeqCst) {
                break;
            }
            let id = format!("{number}-{call}");
            let began = Instant::now();
            match (number / 2 + call) % 8 {
                0 => self.effect(&mut connection, "mark", &id),
                1 => self.effect(&mut connection, "note", &id),
                2 => self.listed(&mut connection),
                3 => self.over_mcp(&mut connection, &id),
                kind => {
                    let which = kind % 2;
                    if !self.turned(&mut connection, server, which, &id) {
                        missed.push(Missed { turning: which, at: Instant::now() });
                    }
                }
            }
            took.push(began.elapsed());
        }
        (missed, took)
    }

    fn effect(&self, connection: &mut Connection, tool: &str, id: &str) {
        let reply = connection.ask(&format!("POST /v1/tools/{tool}/call"), &[], &body(id));
        let told =
            reply.map_err(|error| format!("{id}: {error}")).and_then(|reply| told(id, &reply));
        self.ledger.enter(id, told);
    }

    /// Tools whose files were always valid are always available.
    fn listed(&self, connection: &mut Connection) {
        let list = connection.ask("GET /v1/tools", &[], &Value::Null).expect("an answer");
        let names: Vec<_> = list.body["tools"].as_array().into_iter().flatten().collect();
        let has = |name: &str| names.iter().any(|tool| tool["name"] == name);
        if ["mark", "note", "nap", "pick", "text_process"].into_iter().all(has) {
            self.ledger.right();
        } else {
            self.ledger.wrong(format!("a list without a steady tool: {}", list.body));
        }
    }

    fn over_mcp(&self, connection: &mut Connection, id: &str) {
        let params = json!({"name": "note", "arguments": {"number": id}});
        let message = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        let headers = [
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", "2025-11-25"),
        ];
        let reply = connection.ask("POST /mcp", &headers, &message).expect("an answer");
        let text = &reply.body["result"]["content"][0]["text"];
        let is_right = reply.body["id"] == id && *text == format!("noted {id}");
        let told = if is_right { Ok(Told::Done) } else { Err(format!("{id}: {reply:?}")) };
        self.ledger.enter(id, told);
    }

    /// Calls a tool that changes. Returns `false` if it was not found.
    fn turned(&self, connection: &mut Connection, server: usize, which: usize, id: &str) -> bool {
        let turning = &self.turning[which];
        let floor = turning.seen[server].load(Ordering::SeqCst);
        let line = format!("POST /v1/tools/{}/call", turning.tool);
        let reply = connection.ask(&line, &[], &body(id)).expect("an answer");
        let Reply { status, body, .. } = &reply;
        if *status == 404 && body["kind"] == "not_found" {
            return false;
        }
        let output = body["output"].as_str().unwrap_or_default();
        let version = output.strip_suffix(id).and_then(|text| text.trim().parse().ok());
        match version {
            Some(version) if *status == 200 => match turning.judge(server, floor, version) {
                Ok(()) => self.ledger.right(),
                Err(wrong) => self.ledger.wrong(wrong),
            },
            _ => self.ledger.wrong(format!("{id}: {reply:?}")),
        }
        true
    }

    fn path(&self, name: &str) -> PathBuf {
        self.crib.path().join("tools.d").join(name)
    }

    /// Writes a version of the plain file in the way with this number. If the file was missing for too long, returns
    /// from when to when.
    fn rewrite(&self, number: usize) -> Option<(Instant, Instant)> {
        let turning = &self.turning[0];
        let path = self.path("turn.yaml");
        // Invalid contents never have the number of a version.
        let text = turn(turning.tool, number);
        turning.written.store(number, Ordering::SeqCst);
        let began = Instant::now();
        match number % 10 {
            0 => save(&path, &text),
            1 => fs::write(&path, &text).expect("written"),
            2 => {
                let (first, rest) = text.split_at(text.len() / 2);
                fs::write(&path, first).expect("written");
                std::thread::sleep(Duration::from_millis(2));
                fs::write(&path, [first, rest].concat()).expect("written");
            }
            3 => {
                fs::remove_file(&path).expect("it is there");
                fs::write(&path, &text).expect("written");
            }
            4 => {
                fs::rename(&path, self.path("aside")).expect("renamed");
                fs::create_dir(&path).expect("a folder in its place");
                fs::remove_dir(&path).expect("it is empty");
                fs::rename(self.path("aside"), &path).expect("renamed");
                save(&path, &text);
            }
            5 => {
                fs::write(&path, BROKEN[number / 10 % BROKEN.len()]).expect("written");
                std::thread::sleep(Duration::from_millis(3));
                fs::write(&path, &text).expect("written");
            }
            6 => {
                // The same size, and an old time.
                fs::write(&path, &text).expect("written");
                let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
                let times = FileTimes::new().set_modified(long_ago);
                File::options()
                    .append(true)
                    .open(&path)
                    .and_then(|file| file.set_times(times))
                    .expect("set");
            }
            7 => {
                fs::remove_file(&path).expect("it is there");
                fs::write(self.path("..other"), &text).expect("written");
                symlink("..other", &path).expect("linked");
                save(&path, &text);
            }
            8 => {
                // A file whose tools stay the same is saved again, and a file that never existed appears and
                // disappears.
                let steady = self.path("tools.yaml");
                save(&steady, &fs::read_to_string(&steady).expect("it is there"));
                fs::write(self.path("passing.yaml"), turn("passing", number)).expect("written");
                fs::remove_file(self.path("passing.yaml")).expect("it is there");
                save(&path, &text);
            }
            _ => self.swap(number),
        }
        let ended = Instant::now();
        (ended - began > AWAY).then_some((began, ended))
    }

    /// A separate folder for each version, and a link that is moved from one to the next.
    fn swap(&self, number: usize) {
        let folder = |number: usize| self.path(&format!("..v{number}"));
        let text = turn(self.turning[1].tool, number);
        fs::create_dir(folder(number)).expect("a folder");
        fs::write(folder(number).join("cloud.yaml"), text).expect("written");
        self.turning[1].written.store(number, Ordering::SeqCst);
        let next = self.path("..next");
        symlink(format!("..v{number}"), &next).expect("linked");
        let before = fs::read_link(self.path("..data")).ok();
        fs::rename(&next, self.path("..data")).expect("renamed");
        if let Some(before) = before {
            fs::remove_dir_all(self.path(before.to_str().expect("UTF-8"))).expect("it is there");
        }
    }

    /// How long it takes until both servers have this version.
    fn live(&self, version: usize) -> Duration {
        let began = Instant::now();
        for server in &self.servers {
            let mut connection = server.connection();
            let wanted = format!("version {version:06}.");
            loop {
                let shown =
                    connection.ask("GET /v1/tools/turn", &[], &Value::Null).expect("an answer");
                if shown.body["description"].as_str().is_some_and(|text| text.contains(&wanted)) {
                    break;
                }
                assert!(
                    began.elapsed() < Duration::from_secs(60),
                    "{version} is not live: {:?}",
                    shown.body
                );
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        began.elapsed()
    }
}

fn save(path: &Path, text: &str) {
    let saving = path.with_file_name("..saving");
    fs::write(&saving, text).expect("written");
    fs::rename(saving, path).expect("renamed");
}

#[test]
fn manifests_are_rewritten_under_clients_and_no_call_is_lost_doubled_or_wrong() {
    let (rewrites, clients) = (figure(60, 1_000), figure(8, 50));
    let crib = crib("");
    let turning = [Turning::new("turn"), Turning::new("cloud")];
    crib.write("turn.yaml", &turn("turn", 0));
    let folder = crib.path().join("tools.d");
    fs::create_dir(folder.join("..v0")).expect("a folder");
    fs::write(folder.join("..v0/cloud.yaml"), turn("cloud", 0)).expect("written");
    symlink("..v0", folder.join("..data")).expect("linked");
    symlink("..data/cloud.yaml", folder.join("cloud.yaml")).expect("linked");
    let servers = [Listening::start(&crib), Listening::start(&crib)];
    let field = Field {
        crib: &crib,
        servers,
        turning,
        ledger: Ledger::default(),
        is_over: AtomicBool::new(false),
    };

    let began = Instant::now();
    let (all, (away, live)) = std::thread::scope(|scope| {
        let all: Vec<_> = (0..clients)
            .map(|number| {
                scope.spawn({
                    let field = &field;
                    move || field.client(number)
                })
            })
            .collect();
        let editor = scope.spawn(|| {
            let (mut away, mut live) = (Vec::new(), Vec::new());
            for number in 1..=rewrites {
                away.extend(field.rewrite(number));
                if number.is_multiple_of(20) {
                    live.push(field.live(number));
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            (away, live)
        });
        let edited = editor.join();
        field.is_over.store(true, Ordering::SeqCst);
        let all: Vec<_> =
            all.into_iter().map(|client| client.join().expect("it has not failed")).collect();
        (all, edited.expect("it has not failed"))
    });
    let took = began.elapsed();
    let (missed, calls): (Vec<_>, Vec<_>) = all.into_iter().unzip();
    for Missed { turning, at } in missed.into_iter().flatten() {
        // A file that is reached through links was never missing.
        let excused =
            turning == 0 && away.iter().any(|(begin, end)| (*begin..*end + BACK).contains(&at));
        if !excused {
            field
                .ledger
                .wrong(format!("`{}` was not found; away: {away:?}", field.turning[turning].tool));
        }
    }
    let Field { servers, ledger, .. } = field;
    for mut one in servers {
        let health = one.connection().ask("GET /health", &[], &Value::Null).expect("an answer");
        assert_eq!(health.body["audit_lost"], 0, "{:?}", health.body);
        one.server.signal("TERM");
        assert_eq!(one.server.ended(), Some(0));
    }
    println!(
        "storm rewrites: {rewrites} under {clients} clients in {took:.1?}; live {}; calls {}; {} audited",
        times(live),
        times(calls.into_iter().flatten().collect()),
        audited(&crib)
    );
    let sum = ledger.close("rewrites", &crib);
    assert!(sum.done > clients && sum.others > clients && sum.refused + sum.unknown == 0, "{sum}");
}
