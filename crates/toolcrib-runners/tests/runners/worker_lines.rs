//! What a worker says before its answer, what its answer may hold, and its questions.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use toolcrib_manifest::declaration::Declaration;
use toolcrib_manifest::load_str;
use toolcrib_runners::{RunnerHost, WorkerRunner};
use toolcrib_tool::{
    Arguments, BoxFuture, ByteMasks, CallContext, CallContextBuilder, CallHost, Content, ErrorKind,
    StatusUpdate, Tool, ToolError, ToolOutcome, ToolOutput,
};

/// A worker that obeys the argument `do`.
const WORKER: &str = r#"
import json, os, sys, threading, time

lock = threading.Lock()

def say(id, **line):
    with lock:
        print(json.dumps({"id": id, **line}), flush=True)

def wait_for(file):
    while not os.path.exists(file): time.sleep(0.01)

def slowly(id, name):
    for part in range(3):
        say(id, chunk=f"{name}{part}\n")
        time.sleep(0.06)
    say(id, output=name)

for line in sys.stdin:
    call = json.loads(line)
    if "cancel" in call:
        say(call["cancel"], error="given up")
        continue
    id, arguments = call["id"], call["arguments"]
    match arguments["do"]:
        case "tell":
            say(id, progress=0.4, total=1, message="halfway")
            say(id, chunk="one ")
            say(id, chunk="two")
            wait_for(arguments["file"])
            say(id, message="nearly done", chunk="\nthree")
            say(id, output="done")
            say(id, progress=1, chunk="after the end")
        case "burst":
            for n in range(arguments["n"]):
                say(id, progress=n, message=f"step {n}", chunk="0123456789" * 10)
            say(id, output="done")
        case "forever":
            while True: say(id, progress=1, chunk="x" * 100)
        case "slowly": threading.Thread(target=slowly, args=(id, arguments["name"]), daemon=True).start()
        case "strays":
            for n in range(100): say(id + 1000 + n, progress=1, chunk="not yours")
            say(0, message="nobody's")
            say(id, output="mine")
        case "secret":
            say(id, chunk="a secret-")
            time.sleep(0.2)
            say(id, chunk="1 b\n", progress=1, message="secret-2")
            wait_for(arguments["file"])
            say(id, chunk="secret-3")
            say(id, output="done")
        case "leak":
            hidden = "CTL\x1b\x9b-one\r\r\ntwo"
            match arguments["file"]:
                case "chunk":
                    say(id, chunk="a" + hidden[:9])
                    time.sleep(0.2)
                    say(id, chunk=hidden[9:] + "\n")
                    say(id, output="done")
                case "message":
                    say(id, progress=1, message="x" * 8185 + hidden)
                    say(id, output="done")
                case "output": say(id, output=hidden)
                case "error": say(id, error=hidden)
                case "data": say(id, data={"a": hidden})
                case "text": say(id, content=[{"type": "text", "text": hidden}])
                case "link": say(id, content=[{"type": "resource_link", "uri": "a:b", "name": hidden}])
                case "ask": say(id, ask={"message": hidden, "schema": {"type": "object"}})
                case "stderr":
                    sys.stderr.write(hidden + "\n")
                    sys.stderr.flush()
                    os._exit(3)
        case "crash":
            say(id, chunk="last words\n")
            wait_for(arguments["file"])
            os._exit(7)
        case "content":
            say(id, output="a", data={"n": 1}, content=[
                {"type": "image", "data": "AAEC", "mimeType": "image/png"},
                {"type": "text", "text": "secret-1"},
                {"type": "resource", "resource": {"uri": "a:b", "text": "hi"}}])
        case "bad": say(id, content=[{"type": "image", "data": "?", "mimeType": "image/png"}])
        case "ask":
            if "answer" not in call:
                schema = {"type": "object", "properties": {"town": {"type": "string"}}}
                say(id, progress=1, message="about to ask")
                say(id, ask={"message": "Where?", "schema": schema}, remember={"step": 1})
            else:
                say(id, data={"answer": call["answer"], "remembered": call["remembered"]})
"#;

fn declared(folder: &Path, redact: &str) -> Declaration {
    fs::write(folder.join("work.py"), WORKER).unwrap();
    let text = format!(
        "toolcrib: 1
tools:
  - name: geo
    description: Do what is asked.
    input:
      properties: {{do: {{type: string}}, file: {{type: string}}}}
    output: {{redact: ['{redact}']}}
    sandbox: {{profile: trusted}}
    run: {{worker: [python3, work.py]}}
"
    );
    let file = folder.join("geo.yaml").to_string_lossy().into_owned();
    let loaded = load_str(&file, &text);
    loaded.declarations.into_iter().next().unwrap()
}

/// Hears what watchers of a call are told, in order.
#[derive(Default)]
struct Watcher {
    heard: Mutex<Vec<String>>,
    /// Never catches up with a part of the output.
    is_slow: bool,
    cancel_at: Option<Instant>,
    /// Masks this value in streams of bytes.
    secret: Option<&'static str>,
}

impl Watcher {
    fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }

    fn text(&self) -> String {
        self.heard().concat()
    }

    async fn until(&self, text: &str) {
        let found = async {
            while !self.text().contains(text) {
                sleep(Duration::from_millis(5)).await;
            }
        };
        let found = timeout(Duration::from_secs(20), found).await;
        let heard = self.heard();
        assert!(found.is_ok(), "no {text} in {} parts: {:?}", heard.len(), heard.iter().take(9));
    }
}

impl CallHost for Watcher {
    fn byte_masks(&self) -> Option<ByteMasks> {
        let secret = self.secret?;
        let json = Value::from(secret).to_string();
        Some(Arc::new(move || {
            let (mut held, json) = (Vec::new(), json.trim_matches('"').to_owned());
            Box::new(move |piece, shown| {
                if let Some(piece) = piece {
                    held.extend_from_slice(piece);
                    return;
                }
                let text = String::from_utf8(std::mem::take(&mut held)).unwrap();
                let text = text.replace(secret, "[masked]").replace(&json, "[masked]");
                shown.extend_from_slice(text.as_bytes());
            })
        }))
    }

    fn cancelled(&self) -> BoxFuture<'_, ()> {
        match self.cancel_at {
            Some(at) => Box::pin(sleep(at.saturating_duration_since(Instant::now()))),
            None => Box::pin(std::future::pending()),
        }
    }

    fn is_cancelled(&self) -> bool {
        self.cancel_at.is_some_and(|at| Instant::now() >= at)
    }

    fn is_watched(&self) -> bool {
        true
    }

    fn status(&self, update: StatusUpdate) {
        let numbers = Value::Object(update.params).to_string();
        self.heard.lock().unwrap().push(format!("<{numbers} {}>", update.tip.unwrap_or_default()));
    }

    fn stream(&self, part: Content) -> BoxFuture<'_, ()> {
        self.heard.lock().unwrap().push(part.as_text().into_owned());
        if self.is_slow {
            Box::pin(std::future::pending())
        } else {
            Box::pin(std::future::ready(()))
        }
    }
}

struct Fixture {
    folder: tempfile::TempDir,
    declaration: Declaration,
    runner: Arc<WorkerRunner>,
}

impl Fixture {
    fn new() -> Self {
        Self::redacting("secret-[0-9]")
    }

    fn redacting(pattern: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let declaration = declared(folder.path(), pattern);
        let runner = Arc::new(WorkerRunner::new(&declaration, &RunnerHost::new("/")));
        Self { folder, declaration, runner }
    }

    fn context(&self) -> CallContextBuilder {
        CallContext::builder("call_1", Arc::clone(&self.declaration.definition))
            .output_chars(200_000)
    }

    async fn outcome(&self, arguments: &Value, cx: &CallContext) -> Result<ToolOutcome, ToolError> {
        let arguments = Arguments::from_validated(arguments.to_string());
        timeout(Duration::from_secs(20), self.runner.call(arguments, cx)).await.unwrap()
    }

    async fn call(
        &self,
        arguments: &Value,
        watcher: &Arc<Watcher>,
    ) -> Result<ToolOutput, ToolError> {
        let host = Arc::clone(watcher) as Arc<dyn CallHost>;
        let cx = self.context().host(host).build();
        match self.outcome(arguments, &cx).await? {
            ToolOutcome::Done(output) => Ok(output),
            other => panic!("not done: {other:?}"),
        }
    }

    fn file(&self) -> String {
        self.folder.path().join("go").to_string_lossy().into_owned()
    }

    /// Lets a worker go on that waits for the file.
    fn go(&self) {
        fs::write(self.file(), "").unwrap();
    }
}

#[tokio::test]
async fn lines_are_shown_while_the_call_runs_and_nothing_after_its_answer() {
    let fixture = Fixture::redacting("never-there");
    for _ in 0..2 {
        let watcher = Arc::new(Watcher::default());
        let asked = json!({"do": "tell", "file": fixture.file()});
        let (answer, ()) = tokio::join!(fixture.call(&asked, &watcher), async {
            watcher.until("<{\"progress\":0.4,\"total\":1} halfway>").await;
            fixture.go();
        });
        assert_eq!(answer.unwrap().text(), "done");
        let text = watcher.text();
        assert!(text.contains("<{} nearly done>"), "{text}");
        let shown: String =
            watcher.heard().into_iter().filter(|part| !part.starts_with('<')).collect();
        // With patterns, whole lines are judged; the rest of the text at its end.
        assert_eq!(shown, "one two\nthree");
        assert!(!text.contains("after the end"), "{text}");
        sleep(Duration::from_millis(100)).await;
        fs::remove_file(fixture.file()).unwrap();
    }
}

#[tokio::test]
async fn a_burst_of_lines_is_shown_in_part_and_delays_nothing() {
    let fixture = Fixture::new();
    for is_slow in [false, true] {
        let watcher = Arc::new(Watcher { is_slow, ..Watcher::default() });
        let answer = fixture.call(&json!({"do": "burst", "n": 20_000}), &watcher).await.unwrap();
        assert_eq!(answer.text(), "done");
        let heard = watcher.heard();
        let bytes: usize = heard.iter().map(String::len).sum();
        assert!(bytes < 300_000, "{bytes} bytes");
        assert!(heard.len() < 2_000, "{} events", heard.len());
        assert!(heard.concat().contains("{\"progress\":19999}"), "the last step is told");
    }
}

#[tokio::test]
async fn a_worker_that_never_stops_talking_can_be_cancelled() {
    let fixture = Fixture::new();
    for _ in 0..2 {
        let at = Instant::now() + Duration::from_millis(1_500);
        let watcher = Arc::new(Watcher { cancel_at: Some(at), ..Watcher::default() });
        let error = fixture.call(&json!({"do": "forever"}), &watcher).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
        assert!(at.elapsed() < fixture.runner.wind_down(), "{:?}", at.elapsed());
        let heard = watcher.heard().len();
        assert!(heard > 0);
        sleep(Duration::from_millis(150)).await;
        assert_eq!(watcher.heard().len(), heard, "nothing is told after the end");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_in_flight_hear_their_own_lines_only() {
    let fixture = Arc::new(Fixture::new());
    let calls: Vec<_> = ["red", "green", "blue"]
        .into_iter()
        .map(|name| {
            let fixture = Arc::clone(&fixture);
            tokio::spawn(async move {
                let watcher = Arc::new(Watcher::default());
                let asked = json!({"do": "slowly", "name": name});
                let answer = fixture.call(&asked, &watcher).await.unwrap();
                assert_eq!(answer.text(), name);
                assert_eq!(watcher.text(), format!("{name}0\n{name}1\n{name}2\n"));
            })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
}

#[tokio::test]
async fn lines_of_calls_that_do_not_wait_are_dropped() {
    let fixture = Fixture::new();
    for _ in 0..2 {
        let watcher = Arc::new(Watcher::default());
        let answer = fixture.call(&json!({"do": "strays"}), &watcher).await.unwrap();
        assert_eq!(answer.text(), "mine");
        assert_eq!(watcher.heard(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_call_that_nobody_watches_is_answered_all_the_same() {
    let fixture = Fixture::new();
    let cx = fixture.context().build();
    let outcome = fixture.outcome(&json!({"do": "burst", "n": 1_000}), &cx).await.unwrap();
    assert!(matches!(outcome, ToolOutcome::Done(output) if output.text() == "done"));
}

#[tokio::test]
async fn patterns_hide_what_is_split_over_chunks() {
    let fixture = Fixture::new();
    let watcher = Arc::new(Watcher::default());
    let asked = json!({"do": "secret", "file": fixture.file()});
    let (answer, ()) = tokio::join!(fixture.call(&asked, &watcher), async {
        watcher.until("a [redacted] b\n").await;
        fixture.go();
    });
    answer.unwrap();
    let text = watcher.text();
    assert!(text.contains("<{\"progress\":1} [redacted]>"), "{text}");
    assert!(text.ends_with("[redacted]") && !text.contains("secret"), "{text}");

    // What may go over lines cannot be judged early: only numbers are shown.
    let fixture = Fixture::redacting("(?s)secret.*END");
    let watcher = Arc::new(Watcher::default());
    fixture.go();
    let asked = json!({"do": "secret", "file": fixture.file()});
    fixture.call(&asked, &watcher).await.unwrap();
    assert_eq!(watcher.heard(), ["<{\"progress\":1} >"]);
}

#[tokio::test]
async fn secrets_of_a_worker_are_masked_before_control_characters_are_escaped_or_texts_are_cut() {
    let fixture = Fixture::redacting("never-there");
    let paths = ["chunk", "message", "output", "error", "data", "text", "link", "ask", "stderr"];
    for path in paths {
        let secret = Some("CTL\u{1b}\u{9b}-one\r\r\ntwo");
        let watcher = Arc::new(Watcher { secret, ..Watcher::default() });
        let host = Arc::clone(&watcher) as Arc<dyn CallHost>;
        let cx = fixture.context().host(host).build();
        let outcome = fixture.outcome(&json!({"do": "leak", "file": path}), &cx).await;
        let told = match outcome {
            Ok(ToolOutcome::Done(output)) => output.text().into_owned(),
            Err(error) => format!("{error:?} {:?}", error.partial()),
            Ok(other) => format!("{other:?}"),
        };
        let shown = format!("{told} {}", watcher.text());
        let cut = path == "message";
        assert!(shown.contains(if cut { "xxx[mas" } else { "[masked]" }), "{path}: {shown}");
        for part in ["CTL", "-one", "two"] {
            assert!(!shown.contains(part), "{path}: {shown}");
        }
    }
}

#[tokio::test]
async fn lines_of_a_worker_that_crashes_come_before_the_failure_and_the_next_call_is_clean() {
    let fixture = Fixture::new();
    fixture.call(&json!({"do": "strays"}), &Arc::default()).await.unwrap();
    let watcher = Arc::new(Watcher::default());
    let asked = json!({"do": "crash", "file": fixture.file()});
    let (answer, ()) = tokio::join!(fixture.call(&asked, &watcher), async {
        watcher.until("last words").await;
        fixture.go();
    });
    assert_eq!(answer.unwrap_err().message(), "the worker exited with code 7");
    assert_eq!(watcher.text(), "last words\n");
    let again = Arc::new(Watcher::default());
    let answer = fixture.call(&json!({"do": "slowly", "name": "new"}), &again).await.unwrap();
    assert_eq!((answer.text().as_ref(), again.text().as_str()), ("new", "new0\nnew1\nnew2\n"));
}

#[tokio::test]
async fn a_tool_that_is_closed_while_lines_flow_fails_its_call() {
    let fixture = Fixture::new();
    let watcher = Arc::new(Watcher::default());
    let asked = json!({"do": "forever"});
    let (answer, ()) = tokio::join!(fixture.call(&asked, &watcher), async {
        watcher.until("progress").await;
        fixture.runner.close().await;
    });
    assert_eq!(answer.unwrap_err().message(), "the worker was ended: the tool was removed");
}

#[tokio::test]
async fn an_answer_holds_pictures_and_files_beside_text_and_data() {
    let fixture = Fixture::new();
    let watcher = Arc::new(Watcher::default());
    let answer = fixture.call(&json!({"do": "content"}), &watcher).await.unwrap();
    let file = Content::TextFile { uri: "a:b".into(), text: "hi".into(), mime_type: None };
    let image = Content::Image { data: vec![0, 1, 2], mime_type: "image/png".into() };
    let parts = [Content::text("a"), image, Content::text("[redacted]"), file];
    assert_eq!(answer.content(), parts);
    assert_eq!(answer.data(), Some(&json!({"n": 1})));

    let error = fixture.call(&json!({"do": "bad"}), &watcher).await.unwrap_err();
    let said = "the worker wrote an invalid answer (`content[0]` needs base64 in `data`";
    assert!(error.message().starts_with(said), "{error}");
}

#[tokio::test]
async fn a_question_ends_the_run_and_the_next_line_brings_the_answer() {
    let fixture = Fixture::new();
    let watcher = Arc::new(Watcher::default());
    let host = || Arc::clone(&watcher) as Arc<dyn CallHost>;
    let asked = json!({"do": "ask"});
    let first = fixture.outcome(&asked, &fixture.context().host(host()).build()).await.unwrap();
    let ToolOutcome::NeedsInput(request) = first else { panic!("{first:?}") };
    assert_eq!(request.message, "Where?");
    assert_eq!(request.remembered, Some(json!({"step": 1})));
    assert_eq!(watcher.text(), "<{\"progress\":1} about to ask>");

    let answer = json!({"town": "Ulm"});
    let cx = fixture.context().answer(answer.clone()).remembered(request.remembered).build();
    let ToolOutcome::Done(output) = fixture.outcome(&asked, &cx).await.unwrap() else {
        panic!("it has its answer")
    };
    let data = output.data().unwrap();
    assert_eq!((&data["answer"], &data["remembered"]["step"]), (&answer, &json!(1)));
}
