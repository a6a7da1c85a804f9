//! Kept-alive workers: one process for many calls, and what happens to calls when it misbehaves.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use toolcrib_manifest::declaration::Declaration;
use toolcrib_manifest::load_str;
use toolcrib_runners::{RunnerHost, SecretSource, SecretSources, Secrets, WorkerRunner, entry};
use toolcrib_tool::{
    Arguments, BoxFuture, CallContext, CallHost, ContextValues, ErrorKind, Tool, ToolError,
    ToolOutcome, ToolOutput,
};

/// A worker that obeys the argument `do`.
const WORKER: &str = r#"
import json, os, sys, threading, time

lock = threading.Lock()

def say(**answer):
    with lock:
        print(json.dumps(answer), flush=True)

def later(id, seconds):
    time.sleep(seconds)
    say(id=id, output="late")

for line in sys.stdin:
    call = json.loads(line)
    if "cancel" in call:
        if os.environ.get("STUBBORN") != "yes":
            say(id=call["cancel"], error="given up")
        continue
    id, arguments = call["id"], call["arguments"]
    match arguments["do"]:
        case "pid": say(id=id, output=os.readlink("/proc/self"))
        case "echo": say(id=id, data=call)
        case "both": say(id=id, output="a\x1b[31m secret-1", data={"n": 1, "s": "secret-2"})
        case "env": say(id=id, output=os.environ.get("GIVEN", "none"))
        case "error": say(id=id, error={"message": "no such place", "retryable": True})
        case "exit":
            print("last words", file=sys.stderr, flush=True)
            os._exit(7)
        case "hang": pass
        case "later": threading.Thread(target=later, args=(id, arguments["n"]), daemon=True).start()
        case "deaf":
            while True: time.sleep(1)
        case "note": print("loading ...", flush=True)
        case "stranger": say(id=id + 1000, output="x")
        case "flood":
            while True: sys.stdout.write("x" * 65536)
        case "unasked":
            say(id=id, output="done")
            while True: say(id=0, output="x" * 1000)
        case "child":
            import subprocess
            child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
            say(id=id, output=f"{os.readlink('/proc/self')} {child.pid}")
"#;

/// A declaration in a folder that contains the worker.
fn declared(folder: &Path, lines: &str) -> Declaration {
    fs::write(folder.join("work.py"), WORKER).unwrap();
    read(folder, lines)
}

/// The same, without rewriting the worker.
fn read(folder: &Path, lines: &str) -> Declaration {
    let text = format!(
        "toolcrib: 1
tools:
  - name: geo
    description: Do what is asked.
    input:
      properties: {{do: {{type: string}}, n: {{type: number}}}}
    context: {{tenant: {{from: ctx.tenant, required: false}}}}
    output: {{redact: ['secret-[0-9]']}}
{lines}"
    );
    let file = folder.join("geo.yaml").to_string_lossy().into_owned();
    let loaded = load_str(&file, &text);
    let said: Vec<_> =
        loaded.diagnostics.iter().map(|found| found.render(&file, &text, false)).collect();
    assert!(said.is_empty(), "{}", said.join("\n"));
    loaded.declarations.into_iter().next().unwrap()
}

struct Fixture {
    folder: tempfile::TempDir,
    declaration: Declaration,
    runner: Arc<WorkerRunner>,
}

impl Fixture {
    fn new(lines: &str) -> Self {
        Self::with(lines, Secrets::default())
    }

    fn with(lines: &str, secrets: Secrets) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let declaration = declared(folder.path(), lines);
        let host = RunnerHost::new("/").with_secrets(secrets);
        let runner = Arc::new(WorkerRunner::new(&declaration, &host));
        Self { folder, declaration, runner }
    }

    fn context(&self) -> CallContext {
        CallContext::builder("call_1", Arc::clone(&self.declaration.definition))
            .values(ContextValues::new().with("tenant", "acme").with("other", "hidden"))
            .build()
    }

    async fn ask(&self, what: &str) -> Result<ToolOutput, ToolError> {
        self.call(&json!({"do": what})).await
    }

    async fn call(&self, arguments: &Value) -> Result<ToolOutput, ToolError> {
        run(&self.runner, arguments, &self.context()).await
    }

    async fn pid(&self) -> String {
        self.ask("pid").await.unwrap().text().into_owned()
    }
}

async fn run(
    runner: &WorkerRunner,
    arguments: &Value,
    cx: &CallContext,
) -> Result<ToolOutput, ToolError> {
    let arguments = Arguments::from_validated(arguments.to_string());
    let call = timeout(Duration::from_secs(20), runner.call(arguments, cx));
    match call.await.unwrap()? {
        ToolOutcome::Done(output) => Ok(output),
        other => panic!("not done: {other:?}"),
    }
}

const PLAIN: &str = "    run: {worker: [python3, work.py]}\n";

/// Whether a process exists and is not a zombie.
fn is_alive(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .is_some_and(|rest| !rest.trim().is_empty() && !rest.trim().starts_with('Z'))
}

/// Waits until a process is gone; returns how long that took.
async fn gone(pid: &str) -> Duration {
    let begun = Instant::now();
    while is_alive(pid) {
        assert!(begun.elapsed() < Duration::from_secs(30), "{pid} is still there");
        sleep(Duration::from_millis(10)).await;
    }
    begun.elapsed()
}

/// Cancels by itself at this time.
struct Cancelling(Instant);

impl CallHost for Cancelling {
    fn cancelled(&self) -> BoxFuture<'_, ()> {
        Box::pin(sleep(self.0.saturating_duration_since(Instant::now())))
    }

    fn is_cancelled(&self) -> bool {
        Instant::now() >= self.0
    }
}

async fn cancelled_after(fixture: &Fixture, what: &Value, limit: Duration) -> ToolError {
    let at = Instant::now() + limit;
    let cx = CallContext::builder("call_1", Arc::clone(&fixture.declaration.definition));
    let cx = cx.host(Arc::new(Cancelling(at))).deadline(at).build();
    let error = run(&fixture.runner, what, &cx).await.unwrap_err();
    assert!(at.elapsed() < fixture.runner.wind_down(), "{:?}", at.elapsed());
    error
}

#[tokio::test]
async fn one_process_answers_every_call_and_sees_what_is_declared() {
    let fixture = Fixture::new(PLAIN);
    let first = fixture.pid().await;
    let echoed = fixture.ask("echo").await.unwrap();
    let call = echoed.data().unwrap();
    assert_eq!(call["tool"], "geo");
    assert_eq!(call["arguments"], json!({"do": "echo"}));
    assert_eq!(call["context"], json!({"tenant": "acme"}));
    assert_eq!(fixture.pid().await, first);

    let both = fixture.ask("both").await.unwrap();
    assert_eq!(both.text(), "a\\u{1b}[31m [redacted]");
    assert_eq!(both.data().unwrap(), &json!({"n": 1, "s": "[redacted]"}));
    let error = fixture.ask("error").await.unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Execution, "no such place"));
    assert!(error.retryable());
    assert_eq!(fixture.pid().await, first, "an error is an answer");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_in_flight_are_answered_in_any_order() {
    let fixture = Arc::new(Fixture::new(PLAIN));
    let begun = Instant::now();
    let calls: Vec<_> = (0..20)
        .map(|at| {
            let fixture = Arc::clone(&fixture);
            let seconds = f64::from(30 - at) / 10.0;
            tokio::spawn(async move { fixture.call(&json!({"do": "later", "n": seconds})).await })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().text(), "late");
    }
    assert!(begun.elapsed() < Duration::from_secs(30), "one after another they take 41 s");
}

#[tokio::test]
async fn a_crash_fails_its_calls_with_the_last_output_and_the_next_call_starts_a_worker() {
    let fixture = Fixture::new(PLAIN);
    let first = fixture.pid().await;
    let waits = json!({"do": "later", "n": 10});
    let (crashed, beside) = tokio::join!(
        async {
            sleep(Duration::from_millis(100)).await;
            fixture.ask("exit").await
        },
        fixture.call(&waits)
    );
    for error in [crashed.unwrap_err(), beside.unwrap_err()] {
        assert_eq!(error.message(), "the worker exited with code 7");
        assert_eq!(error.partial().unwrap().text(), "[stderr]\nlast words\n");
    }
    let second = fixture.pid().await;
    assert_ne!(second, first);

    // If it is killed between two calls, nobody notices.
    let pid = rustix::process::Pid::from_raw(second.parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    sleep(Duration::from_millis(100)).await;
    assert_ne!(fixture.pid().await, second);
}

#[tokio::test]
async fn an_invalid_answer_ends_the_worker_and_is_reported() {
    let fixture = Fixture::new(PLAIN);
    for (what, said) in [
        ("note", "wrote an invalid answer (it is not JSON; write logs to standard error): load"),
        ("stranger", "answered call 1"),
        ("flood", "wrote a line of more than 65536 bytes; `limits.output` sets the limit"),
    ] {
        let before = fixture.pid().await;
        let error = fixture.ask(what).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Execution);
        assert!(error.message().starts_with(&format!("the worker {said}")), "{error}");
        assert!(gone(&before).await < Duration::from_secs(1));
    }
    // Unsolicited output is not read before the next call, which reports it.
    let before = fixture.pid().await;
    assert_eq!(fixture.ask("unasked").await.unwrap().text(), "done");
    assert!(is_alive(&before));
    let error = fixture.ask("pid").await.unwrap_err();
    assert_eq!(error.message(), "the worker answered call 0, which is not waiting");
    assert!(gone(&before).await < Duration::from_secs(1));
    fixture.pid().await;
}

#[tokio::test]
async fn a_cancelled_call_is_acknowledged_or_its_worker_is_ended() {
    let polite = Fixture::new(PLAIN);
    let first = polite.pid().await;
    let hang = json!({"do": "hang"});
    let error = cancelled_after(&polite, &hang, Duration::from_millis(200)).await;
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert_eq!(polite.pid().await, first, "it answered the cancel line and stays");

    let stubborn = Fixture::new("    run: {worker: [python3, work.py], env: {STUBBORN: 'yes'}}\n");
    for what in ["hang", "deaf"] {
        let first = stubborn.pid().await;
        let beside = json!({"do": "later", "n": 30});
        let what = json!({"do": what});
        let (error, beside) = tokio::join!(
            cancelled_after(&stubborn, &what, Duration::from_millis(200)),
            stubborn.call(&beside)
        );
        assert_eq!(error.kind(), ErrorKind::Timeout);
        assert_eq!(
            beside.unwrap_err().message(),
            "the worker was ended: it did not acknowledge a cancelled call"
        );
        assert!(gone(&first).await < Duration::from_secs(1));
        assert_ne!(stubborn.pid().await, first);
    }
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_too() {
    let fixture = Fixture::new("    run: {worker: [python3, work.py], env: {STUBBORN: 'yes'}}\n");
    let first = fixture.pid().await;
    assert!(timeout(Duration::from_millis(200), fixture.ask("hang")).await.is_err());
    assert!(gone(&first).await < Duration::from_millis(1500), "500 ms to answer, then its end");
    assert_ne!(fixture.pid().await, first);
}

#[tokio::test]
async fn a_call_that_comes_while_a_cancelled_one_is_not_acknowledged_waits_for_the_next_worker() {
    for stubborn in [true, false] {
        let env = if stubborn { ", env: {STUBBORN: 'yes'}" } else { "" };
        let fixture = Fixture::new(&format!("    run: {{worker: [python3, work.py]{env}}}\n"));
        let first = fixture.pid().await;
        let hang = if stubborn { "deaf" } else { "hang" };
        assert!(timeout(Duration::from_millis(200), fixture.ask(hang)).await.is_err());
        assert_eq!(fixture.pid().await != first, stubborn, "the call that comes at once");
    }
}

#[tokio::test]
async fn a_line_larger_than_a_pipe_buffer_passes_both_ways() {
    let fixture = Fixture::new(&format!("{PLAIN}    limits: {{output: 1MiB}}\n"));
    let text = "ä\n\"".repeat(100_000);
    let echoed = fixture.call(&json!({"do": "echo", "s": text})).await.unwrap();
    assert_eq!(echoed.data().unwrap()["arguments"]["s"], text.as_str());
}

#[tokio::test]
async fn a_worker_ends_when_idle_and_is_replaced_after_its_maximum_of_calls() {
    let idle = Fixture::new("    run: {worker: [python3, work.py], idle: 300ms}\n");
    let first = idle.pid().await;
    sleep(Duration::from_millis(150)).await;
    assert_eq!(idle.pid().await, first);
    // A call in flight is use.
    assert_eq!(idle.call(&json!({"do": "later", "n": 0.6})).await.unwrap().text(), "late");
    assert!(is_alive(&first));
    let took = gone(&first).await;
    assert!(took > Duration::from_millis(100), "{took:?}");
    assert_ne!(idle.pid().await, first);

    let counted = Fixture::new("    run: {worker: [python3, work.py], max_calls: 2}\n");
    let pids = [counted.pid().await, counted.pid().await, counted.pid().await];
    assert!(pids[0] == pids[1] && pids[1] != pids[2], "{pids:?}");
    assert!(gone(&pids[0]).await < Duration::from_secs(1));
}

#[tokio::test]
async fn closing_leaves_nothing_behind_and_starts_nothing_again() {
    // Trusted, so that its child has the same process id inside and outside.
    let fixture = Fixture::new(&format!("{PLAIN}    sandbox: {{profile: trusted}}\n"));
    let pids = fixture.ask("child").await.unwrap().text().into_owned();
    let (worker, child) = pids.split_once(' ').unwrap();
    fixture.runner.close().await;
    assert!(gone(worker).await + gone(child).await < Duration::from_secs(1));
    let error = fixture.ask("pid").await.unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Unavailable, "the tool was removed"));
}

#[tokio::test]
async fn a_dropped_tool_takes_its_worker_with_it() {
    let Fixture { runner, declaration, folder: _folder } = Fixture::new(PLAIN);
    let cx = CallContext::builder("call_1", declaration.definition).build();
    let pid = run(&runner, &json!({"do": "pid"}), &cx).await.unwrap().text().into_owned();
    drop(runner);
    assert!(gone(&pid).await < Duration::from_secs(1));
}

#[tokio::test]
async fn a_worker_that_has_never_answered_is_told_what_an_answer_is() {
    let rows = [
        ("import sys\nsys.stdin.readline()\n", "exited with code 0"),
        ("import sys\nsys.stdin.readline()\nprint('hello', flush=True)\n", "it is not JSON"),
    ];
    for (script, reason) in rows {
        let fixture = Fixture::new(PLAIN);
        fs::write(fixture.folder.path().join("work.py"), script).unwrap();
        let error = fixture.ask("pid").await.unwrap_err();
        assert!(error.message().contains(reason), "{error}");
        let hints = error.hints().join(" ");
        assert!(hints.contains("one JSON line with the call's `id`"), "{hints}");
    }
    let fixture = Fixture::new(PLAIN);
    fixture.ask("pid").await.unwrap();
    let error = fixture.ask("exit").await.unwrap_err();
    assert!(!error.hints().join(" ").contains("never answered"), "{error}");
}

#[tokio::test]
async fn a_worker_that_waits_for_the_end_of_its_input_is_told_to_read_lines() {
    let fixture = Fixture::new(PLAIN);
    fs::write(fixture.folder.path().join("work.py"), "import sys\nsys.stdin.read()\n").unwrap();
    let at = Instant::now() + Duration::from_millis(700);
    let cx = CallContext::builder("call_1", Arc::clone(&fixture.declaration.definition));
    let cx = cx.host(Arc::new(Cancelling(at))).deadline(at).build();
    let error = run(&fixture.runner, &json!({"do": "hang"}), &cx).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    let told = error.hints().join(" ");
    assert!(told.contains("has never answered") && told.contains("flush"), "{told}");
}

#[tokio::test]
async fn a_worker_that_fails_to_start_is_retried_with_backoff() {
    let fixture = Fixture::new("    run: {worker: [sh, start.sh]}\n");
    let start = |text: &str| fs::write(fixture.folder.path().join("start.sh"), text).unwrap();
    start("echo x >> starts; echo no config >&2; exit 3");
    let starts =
        || fs::read_to_string(fixture.folder.path().join("starts")).unwrap().lines().count();
    let error = fixture.ask("pid").await.unwrap_err();
    assert_eq!(error.message(), "the worker exited with code 3");
    assert_eq!(error.partial().unwrap().text(), "[stderr]\nno config\n");
    for _ in 0..10 {
        let error = fixture.ask("pid").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.retryable());
        assert!(error.message().starts_with("the worker did not come up, once in a row; the next try is in 0.1 s. The last time: the worker exited with code 3"), "{error}");
    }
    assert_eq!(starts(), 1);
    sleep(Duration::from_millis(120)).await;
    assert_eq!(fixture.ask("pid").await.unwrap_err().message(), "the worker exited with code 3");
    assert!(
        fixture
            .ask("pid")
            .await
            .unwrap_err()
            .message()
            .contains("2 times in a row; the next try is in 0.2 s")
    );
    start("exec python3 work.py");
    sleep(Duration::from_millis(220)).await;
    fixture.pid().await;
    assert_eq!(starts(), 2);

    let missing = Fixture::new("    run: {worker: [no-such-program]}\n");
    assert_eq!(missing.ask("pid").await.unwrap_err().kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn a_worker_gets_secrets_in_its_environment_only_where_it_names_them() {
    let secrets = Secrets::from_values([("key", "hunter2-secret")]);
    let lines = "    run: {worker: [python3, work.py], env: {GIVEN: '${secret.key}!'}}\n";
    let fixture = Fixture::with(lines, secrets);
    assert_eq!(fixture.ask("env").await.unwrap().text(), "hunter2-secret!");
    let without = Fixture::new(lines);
    assert!(without.ask("env").await.unwrap_err().message().contains("needs the secret `key`"));

    let held = SecretSources::new().named("home", SecretSource::Env("HOME".into()));
    let passing = "    run: {worker: [python3, work.py], pass_env: [HOME]}\n";
    let fixture = Fixture::with(passing, Secrets::read(held.clone()));
    assert_eq!(fixture.ask("env").await.unwrap_err().kind(), ErrorKind::Unavailable);
    let host = RunnerHost::new("/").with_secrets(Secrets::read(held));
    let entry = entry(&fixture.declaration, &host);
    assert!(entry.unavailable_reason().unwrap().starts_with("passes on the variable `HOME`"));
    assert_eq!(entry.definition.max_concurrent(), Some(1));
}

#[tokio::test]
async fn a_worker_whose_file_has_changed_since_it_was_accepted_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let first = declared(folder.path(), PLAIN);
    let pinned = RunnerHost::new("/").with_pinned_scripts(true);
    let context = CallContext::builder("call_1", Arc::clone(&first.definition)).build();
    let asked = json!({"do": "pid"});
    assert_eq!(entry(&first, &pinned).unavailable_reason(), None);

    let file = folder.path().join("work.py");
    fs::write(&file, format!("{WORKER}\n# Another.\n")).unwrap();
    let refused = run(&WorkerRunner::new(&first, &pinned), &asked, &context).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unavailable);
    assert!(refused.message().contains("which has changed since the tools were loaded"));
    assert!(entry(&first, &pinned).unavailable_reason().is_some());
    // Without pinning nothing has been accepted.
    assert!(run(&WorkerRunner::new(&first, &RunnerHost::new("/")), &asked, &context).await.is_ok());

    // A file that is too long to be a script is named but not read.
    fs::File::create(folder.path().join("large")).unwrap().set_len(5 << 20).unwrap();
    let large = read(folder.path(), "    run: {worker: [./large, large]}\n");
    assert!(large.worker().unwrap().files.is_empty());

    let second = read(folder.path(), PLAIN);
    assert_ne!(first.digest(), second.digest());
    assert!(run(&WorkerRunner::new(&second, &pinned), &asked, &context).await.is_ok());
}
