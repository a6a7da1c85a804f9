//! Escapes: each works without confinement, and none works in a call.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::Trial;
use tempfile::TempDir;
use tokio::net::{TcpListener, UdpSocket, UnixListener};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use toolcrib_sandbox::{Command, Confinement, Profile, run};
use toolcrib_tool::ToolResult;

use crate::corpus::{Entry, entries};
use crate::harness::{Crib, trial};

const GUARD: &str = include_str!("../../src/code/guard.py");
const PROBE: &str = include_str!("../../src/code/probe.py");
/// Runs the code on standard input.
const BARE: &str = "import sys; exec(compile(sys.stdin.buffer.read(), 'code', 'exec'))";

/// A variable that cargo sets for this process and that no program inherits.
const VARIABLE: &str = "CARGO_MANIFEST_DIR";
const CANARY: &str = "canary-2f61c1";
const PROCESS: &str = "1764-process";
/// The time limit of one attempt, on a loaded machine.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(60);
/// Attempts that run at the same time.
const AT_ONCE: usize = 4;

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial(
        "every_escape_works_unconfined_and_none_works_in_a_call",
        every_escape_works_unconfined_and_none_works_in_a_call,
    )]
}

/// What confines the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Walls {
    Nothing,
    Guard(&'static str),
    Jail,
    /// A call, as clients make it.
    Both(&'static str),
}

impl Walls {
    const ALL: [Self; 6] = [
        Self::Nothing,
        Self::Guard("standard"),
        Self::Guard("strict"),
        Self::Jail,
        Self::Both("standard"),
        Self::Both("strict"),
    ];
}

async fn every_escape_works_unconfined_and_none_works_in_a_call() {
    let escapes = entries(include_str!("escapes.txt"));
    assert!(escapes.len() >= 110, "{}", escapes.len());
    let crib = Arc::new(Crib::new());
    let python = Arc::new(Interpreter::find().await);
    // Code that does not start at all does not escape either.
    for profile in [Profile::Trusted, Profile::Pure] {
        let printed = python.run(BARE, "print('alive')".to_owned(), profile).await;
        assert_eq!(printed, "alive\n", "{profile}");
    }
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut running = JoinSet::new();
    for &escape in &escapes {
        for held in Walls::ALL {
            let (crib, python) = (Arc::clone(&crib), Arc::clone(&python));
            let places = Arc::clone(&places);
            running.spawn(async move {
                let _place = places.acquire_owned().await;
                (held, escape, attempt(escape, held, &crib, &python).await)
            });
        }
    }
    let mut stopped: BTreeMap<(Walls, &str), usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    while let Some(ended) = running.join_next().await {
        let (held, escape, got_out) = ended.expect("an attempt does not panic");
        *stopped.entry((held, escape.word)).or_default() += usize::from(!got_out);
        let expected = match held {
            Walls::Nothing => Some(true),
            Walls::Guard(_) => None,
            Walls::Jail | Walls::Both(_) => Some(false),
        };
        if expected.is_some_and(|expected| expected != got_out) {
            wrong.push(format!("{held:?}: {}: {}", escape.word, escape.name));
        }
    }
    eprint!("{}", table(&escapes, &stopped));
    wrong.sort();
    assert!(wrong.is_empty(), "not as it should be:\n{}", wrong.join("\n"));
}

/// How many escapes of each kind were stopped by what.
fn table(escapes: &[Entry], stopped: &BTreeMap<(Walls, &str), usize>) -> String {
    let mut table = format!("{:<10}{:>5}", "effect", "all");
    for held in &Walls::ALL[1..] {
        let name = match held {
            Walls::Guard(level) => format!("guard, {level}"),
            Walls::Both(level) => format!("both, {level}"),
            other => format!("{other:?}").to_lowercase(),
        };
        let _ = write!(table, "{name:>17}");
    }
    table.push('\n');
    for effect in ["read", "write", "process", "socket", "env", ""] {
        let counts = |word: &str| effect.is_empty() || word == effect;
        let all = escapes.iter().filter(|escape| counts(escape.word)).count();
        let _ =
            write!(table, "{:<10}{all:>5}", if effect.is_empty() { "together" } else { effect });
        for held in &Walls::ALL[1..] {
            let number: usize = stopped
                .iter()
                .filter(|((by, word), _)| by == held && counts(word))
                .map(|(_, number)| number)
                .sum();
            let _ = write!(table, "{number:>17}");
        }
        table.push('\n');
    }
    table
}

/// Whether it escaped.
async fn attempt(escape: Entry, held: Walls, crib: &Crib, python: &Interpreter) -> bool {
    let world = World::new();
    let code = world.filled(escape.text);
    let text = async {
        match held {
            Walls::Nothing => python.run(BARE, code, Profile::Trusted).await,
            Walls::Jail => python.run(BARE, code, Profile::Pure).await,
            Walls::Guard(level) => {
                python.run(GUARD, format!("{level}\n\n{code}"), Profile::Trusted).await
            }
            Walls::Both(level) => printed(&crib.python(&code, level).await),
        }
    };
    let (text, reached) = world.watch(text).await;
    match escape.word {
        "read" => text.contains(CANARY),
        "write" => world.mark.symlink_metadata().is_ok(),
        "process" => text.contains(PROCESS),
        "socket" => reached,
        "env" => text.contains(env!("CARGO_MANIFEST_DIR")),
        other => panic!("{other} is no effect"),
    }
}

/// Everything that a call shows.
fn printed(result: &ToolResult) -> String {
    format!("{}\n{}", result.text(), result.to_value())
}

/// The outside world of one attempt.
struct World {
    directory: TempDir,
    file: PathBuf,
    mark: PathBuf,
    tcp: std::net::TcpListener,
    udp: std::net::UdpSocket,
    unix: std::os::unix::net::UnixListener,
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory outside");
        let file = directory.path().join("file.xml");
        // As one line of text and as XML.
        std::fs::write(&file, format!("<a>{CANARY}</a>\n")).expect("a file outside");
        let mark = directory.path().join("mark");
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let udp = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
        let unix = directory.path().join("socket");
        let unix = std::os::unix::net::UnixListener::bind(unix).expect("a socket");
        tcp.set_nonblocking(true).expect("it can be asked whether anybody is there");
        udp.set_nonblocking(true).expect("it can be asked whether anything is there");
        unix.set_nonblocking(true).expect("it can be asked whether anybody is there");
        Self { directory, file, mark, tcp, udp, unix }
    }

    fn filled(&self, code: &str) -> String {
        let port = |address: std::io::Result<std::net::SocketAddr>| {
            address.expect("it is bound").port().to_string()
        };
        let path = |path: &std::path::Path| path.to_str().expect("the path is text").to_owned();
        [
            ("{file}", path(&self.file)),
            ("{mark}", path(&self.mark)),
            ("{unix}", path(&self.directory.path().join("socket"))),
            ("{port}", port(self.tcp.local_addr())),
            ("{udp}", port(self.udp.local_addr())),
            ("{variable}", VARIABLE.to_owned()),
        ]
        .into_iter()
        .fold(code.to_owned(), |code, (place, value)| code.replace(place, &value))
    }

    /// Waits for the code, closes every incoming connection meanwhile, and returns whether there was one.
    async fn watch(&self, code: impl Future<Output = String>) -> (String, bool) {
        let cloned = "a second handle of a socket";
        let tcp = TcpListener::from_std(self.tcp.try_clone().expect(cloned)).expect(cloned);
        let udp = UdpSocket::from_std(self.udp.try_clone().expect(cloned)).expect(cloned);
        let unix = UnixListener::from_std(self.unix.try_clone().expect(cloned)).expect(cloned);
        let mut code = std::pin::pin!(code);
        let mut reached = false;
        let mut byte = [0];
        let text = loop {
            tokio::select! {
                text = &mut code => break text,
                _ = tcp.accept() => reached = true,
                _ = unix.accept() => reached = true,
                _ = udp.recv(&mut byte) => reached = true,
            }
        };
        // A connection just before the end may not have been reported yet.
        reached |= self.tcp.accept().is_ok() || self.unix.accept().is_ok();
        reached |= self.udp.recv(&mut byte).is_ok();
        (text, reached)
    }
}

/// The machine's Python, without the tool.
struct Interpreter {
    program: PathBuf,
    reads: Vec<PathBuf>,
}

impl Interpreter {
    async fn find() -> Self {
        let command = Command::new("python3").args(["-I", "-S", "-B", "-c", PROBE]);
        let asked = run(command.pass_env(["HOME"]), tokio::time::sleep(ATTEMPT_TIMEOUT)).await;
        let answer = asked.expect("there is a python3").stdout.text();
        let of = |word: &str| {
            let lines = answer.lines().filter_map(|line| line.split_once(' '));
            let found = lines.filter(|(said, _)| *said == word);
            found.map(|(_, path)| PathBuf::from(path)).collect::<Vec<_>>()
        };
        let program = of("program").pop().expect("it says where it is");
        Self { program, reads: of("read") }
    }

    /// The output on either stream.
    async fn run(&self, program: &str, stdin: String, profile: Profile) -> String {
        let reads = self.reads.iter();
        let confinement = reads.fold(Confinement::new(profile), Confinement::read);
        let mut command = Command::new(&self.program)
            .args(["-I", "-S", "-B", "-X", "utf8", "-c", program])
            .stdin(stdin)
            .cwd_in_scratch()
            .confine(confinement);
        if profile == Profile::Trusted {
            // The attempt with `trusted` also gets the environment.
            command = command.pass_env([VARIABLE]);
        }
        let finished = run(command, tokio::time::sleep(ATTEMPT_TIMEOUT)).await.expect("it starts");
        format!("{}{}", finished.stdout.text(), finished.stderr.text())
    }
}
