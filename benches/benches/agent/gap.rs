//! The time between a model's answer and the next request, by the clock of the scripted server: `toolcrib run` beside `codex exec`,
//! each with its journal and settings as they are by default.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use toolcrib_testkit::model_server::{ModelServer, Reply};
use toolcrib_wire::model::Wire;

use crate::{head, median, row};

/// Turns of a run.
const TURNS: usize = 40;
/// Runs of each program, interleaved.
const RUNS: usize = 3;
/// The first gaps of a run, in which a program still loads what it needs.
const FIRST: usize = 5;
/// The longest run.
const LIMIT: Duration = Duration::from_secs(60);

const TOOLS: &str = r#"
toolcrib: 1
tools:
  - name: say
    description: Say a text. Read-only.
    annotations: {read_only: true}
    input: {properties: {text: {type: string}}, required: [text]}
    run: {argv: [echo, "${args.text}"]}
"#;

/// A program that runs an agent.
struct Peer {
    /// The environment variable with its path.
    variable: &'static str,
    /// Writes its settings into the folder, for a model at this base URL, and adds its arguments.
    prepare: fn(&Path, &str, &mut Command),
    /// A call of a tool inside the program that does next to nothing, and of one that starts a program.
    calls: [fn(usize) -> Reply; 2],
    /// What the last of these calls answers.
    answers: [&'static str; 2],
}

const OURS: Peer = Peer {
    variable: "TOOLCRIB_PROGRAM",
    prepare: |folder, base_url, command| {
        let config = json!({
            "providers": {"script": {"kind": "responses", "base_url": base_url}},
            "agents": {"default": {"model": "script/scripted"}},
            "workspace": {"root": "workspace"},
        });
        std::fs::create_dir_all(folder.join("tools.d")).expect("a folder");
        std::fs::write(folder.join("tools.d/tools.yaml"), TOOLS).expect("a file");
        std::fs::write(folder.join("config.yml"), config.to_string()).expect("a file");
        command.args(["run", "Go."]);
    },
    calls: [
        |number| Reply::call("calculator", json!({"expression": format!("{number} + 1")})),
        |number| Reply::call("say", json!({"text": format!("turn {number}")})),
    ],
    answers: ["40", "turn 39"],
};

const CODEX: Peer = Peer {
    variable: "CODEX_PROGRAM",
    prepare: |folder, base_url, command| {
        let config = format!(
            "model = \"scripted\"\nmodel_provider = \"script\"\napproval_policy = \"never\"\n\
             [model_providers.script]\nname = \"script\"\nbase_url = \"{base_url}\"\n\
             wire_api = \"responses\"\nsupports_websockets = false\n\
             [analytics]\nenabled = false\n"
        );
        std::fs::write(folder.join("config.toml"), config).expect("a file");
        command.args(["exec", "--skip-git-repo-check", "Go."]).env("CODEX_HOME", folder);
    },
    calls: [
        |_| Reply::call("get_goal", json!({})),
        |number| Reply::call("exec_command", json!({"cmd": format!("echo turn {number}")})),
    ],
    answers: ["goal", "turn 39"],
};

/// Ends when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only if it has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn gap(_: &Runtime) -> bool {
    let path = |peer: &Peer| std::env::var_os(peer.variable).map(PathBuf::from);
    let (Some(ours), Some(codex)) = (path(&OURS), path(&CODEX)) else {
        println!(
            "\nThe gap between turns beside codex's: `benches/turn-gap` installs codex and shows it."
        );
        return true;
    };
    // The server works while a program runs.
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let mut rows = Vec::new();
    for kind in 0..2 {
        let (mut own, mut other) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            own.extend(gaps(&runtime, &OURS, &ours, kind));
            other.extend(gaps(&runtime, &CODEX, &codex, kind));
        }
        rows.push((median(own), median(other)));
    }
    head("The gap between an answer and the next request, median");
    let kinds = ["of a tool inside the program", "of a tool that starts a program"];
    let mut holds = true;
    for (kind, (own, other)) in kinds.into_iter().zip(rows) {
        holds &= row(&format!("{kind}, beside codex's"), own / other, 1.0);
        println!("| {kind}, in ms: ours, codex's | {:.1}, {:.1} | | |", own * 1e3, other * 1e3);
    }
    holds
}

/// The gaps of one run, in seconds.
fn gaps(runtime: &Runtime, peer: &Peer, program: &Path, kind: usize) -> Vec<f64> {
    let script = (1..=TURNS)
        .map(|number| if number < TURNS { peer.calls[kind](number) } else { Reply::text("Done.") });
    let server = runtime.block_on(ModelServer::start(Wire::Responses, script));
    // Not below /tmp, which may be in memory: journals are written to a disk.
    let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let workspace = folder.path().join("workspace");
    std::fs::create_dir(&workspace).expect("a folder");
    let said = std::fs::File::create(folder.path().join("said")).expect("a file");
    #[expect(clippy::disallowed_methods, reason = "the program whose time is taken")]
    let mut command = Command::new(program);
    command.env("HOME", folder.path()).env("XDG_STATE_HOME", folder.path().join("state"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
    (peer.prepare)(folder.path(), &server.base_url(), &mut command);
    let is_codex = peer.variable == CODEX.variable;
    command.current_dir(if is_codex { &workspace } else { folder.path() });
    let mut running = Running(command.spawn().expect("it starts"));
    let deadline = Instant::now() + LIMIT;
    let status = loop {
        if let Some(status) = running.0.try_wait().expect("it is ours") {
            break status;
        }
        assert!(Instant::now() < deadline, "{} takes too long", program.display());
        std::thread::sleep(Duration::from_millis(20));
    };
    let said = || std::fs::read_to_string(folder.path().join("said")).unwrap_or_default();
    assert!(status.success(), "{}: {}", program.display(), said());
    assert_eq!(server.violations(), [""; 0], "{}: {}", program.display(), said());
    let requests = server.requests();
    assert_eq!(requests.len(), TURNS, "{}: {}", program.display(), said());
    let items = requests.last().and_then(|request| request.body["input"].as_array());
    let answer = items.and_then(|items| items.last()).map_or(&Value::Null, |item| &item["output"]);
    assert!(answer.to_string().contains(peer.answers[kind]), "{}: {answer}", program.display());
    let gaps = requests.iter().filter_map(|request| request.gap);
    gaps.skip(FIRST).map(|gap| gap.as_secs_f64()).collect()
}
