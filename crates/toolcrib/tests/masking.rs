//! Secrets in what programs print are hidden before anything is cut.
#![expect(clippy::expect_used, reason = "a test that cannot be set up fails")]
#![cfg(all(feature = "manifests", unix))]

use std::fs;
#[cfg(feature = "http-tools")]
use std::io::{Read as _, Write as _};
#[cfg(feature = "http-tools")]
use std::net::TcpListener;

use proptest::prelude::*;
use tempfile::TempDir;
use toolcrib::core::masking::Mask;
use toolcrib::manifests::Manifests;
use toolcrib::runners::RunnerHost;
use toolcrib::{
    Executor, Registration, Registry, RegistryBuilder, ToolCall, ToolResult, TurnOptions,
};

/// A secret of characters that stand nowhere else in what the tools print.
const SECRET: &str = "S3CRETQ7-ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// Bytes of output that the tools keep.
const KEPT: usize = 1024;

const TOOLS: &str = r#"toolcrib: 1
defaults: {output: 1KiB}
x-shared:
  input: &input
    properties: {block: {type: integer, minimum: 1}}
    required: [block]
tools:
  - name: both
    description: Print the file in blocks, and keep both ends.
    input: *input
    run: {argv: [dd, if=f, status=none, "bs=${args.block}"]}
  - name: head
    description: Print the file in blocks, and keep the beginning.
    input: *input
    run: {argv: [dd, if=f, status=none, "bs=${args.block}"]}
    output: {keep: head}
  - name: tail
    description: Print the file in blocks, and keep the end.
    input: *input
    run: {argv: [dd, if=f, status=none, "bs=${args.block}"]}
    output: {keep: tail}
  - name: errors
    description: Print the file in blocks on standard error.
    input: *input
    run: {argv: [sh, -c, 'dd if=f status=none bs="$1" >&2', sh, "${args.block}"]}
  - name: last_words
    description: A worker that dies with the file on its lips.
    run: {worker: [sh, -c, 'read -r line; cat ../f >&2; exit 3']}
  - name: no_answer
    description: A worker that answers with a line that is not JSON.
    run: {worker: [sh, -c, 'read -r line; cat ../g; echo; sleep 5']}
  - name: number
    description: Print a number that is a secret, as JSON.
    run: {argv: [echo, '{"pin": 12345678, "other": 9}']}
    output: {format: json}
  - name: slowly
    description: Print the new secret once it is one.
    run: {argv: [sh, -c, 'touch started; while [ ! -e go ]; do sleep 0.01; done; cat h']}
  - name: patterns
    description: Print the file, and hide what follows a word.
    run: {argv: [cat, p]}
    output: {keep: tail, redact: ['password=\S+']}
"#;

struct Crib {
    workspace: TempDir,
    executor: Executor,
}

impl Crib {
    fn new() -> Self {
        let workspace = tempfile::tempdir().expect("a directory");
        let folder = workspace.path().join("declared");
        fs::create_dir(&folder).expect("a directory");
        fs::write(folder.join("tools.yaml"), TOOLS).expect("a file");
        let manifests = Manifests::load(&[folder], RunnerHost::new(workspace.path()));
        let problems: Vec<_> = manifests.files().problems().map(|(_, problem)| problem).collect();
        assert!(problems.is_empty(), "{problems:#?}");
        let mut registry = RegistryBuilder::new();
        for entry in manifests.entries() {
            assert!(matches!(registry.register(entry), Registration::Registered));
        }
        let secrets = [SECRET.to_owned(), "12345678".to_owned()];
        let executor = Executor::builder(Registry::new(registry.build()))
            .mask(Mask::new(secrets).expect("a mask"))
            .build();
        Self { workspace, executor }
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.workspace.path().join(name), text).expect("a file");
    }

    async fn call(&self, tool: &str, arguments: &str) -> ToolResult {
        let turn = self.executor.turn(TurnOptions::default());
        turn.call(ToolCall::new("call", tool, arguments)).await
    }
}

/// All that a result tells, to a model or to anybody else.
fn told(result: &ToolResult) -> String {
    format!("{} {result:?}", result.text())
}

/// The first piece of four bytes of the secret that stands in a text.
fn piece_of_secret(text: &str) -> Option<&str> {
    (0..=SECRET.len() - 4).map(|start| &SECRET[start..start + 4]).find(|part| text.contains(part))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_piece_of_a_secret_is_left_at_a_cut(
        // Around the cut of each kind of capture: 768, 1024, and as far from the end.
        cut in prop::sample::select(vec![KEPT * 3 / 4, KEPT]),
        shift in 0..SECRET.len() * 2,
        after in prop::sample::select(vec![KEPT / 4, KEPT, KEPT * 3 / 4]),
        after_shift in 0..SECRET.len() * 2,
        block in prop::sample::select(vec![1_usize, 7, 64, 1000, 65536]),
        tool in prop::sample::select(vec!["both", "head", "tail", "errors"]),
    ) {
        let crib = Crib::new();
        let before = "x".repeat(cut - SECRET.len() * 3 / 2 + shift);
        let between = "y".repeat(KEPT * 3);
        let end = "z".repeat(after - SECRET.len() * 3 / 2 + after_shift);
        crib.write("f", &format!("{before}{SECRET}{between}{SECRET}{end}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let result = runtime.block_on(crib.call(tool, &format!("{{\"block\": {block}}}")));
        let told = told(&result);
        prop_assert!(told.contains("bytes omitted"), "{told}");
        prop_assert_eq!(piece_of_secret(&told), None, "{} in {}", tool, told);
    }
}

#[tokio::test]
async fn the_last_words_of_a_worker_are_masked_before_they_are_cut() {
    for shift in 0..SECRET.len() {
        // A worker that ends without an answer is left alone for a while: each has its own.
        let crib = Crib::new();
        // 16 KiB of standard error are kept, of its end.
        crib.write("f", &format!("xx{SECRET}{}", "y".repeat(16 * 1024 - SECRET.len() + shift)));
        let told = told(&crib.call("last_words", "{}").await);
        assert!(told.contains("the worker exited with code 3"), "{told}");
        assert_eq!(piece_of_secret(&told), None, "{shift}");
    }
}

#[tokio::test]
async fn a_line_that_is_no_answer_is_masked_before_it_is_cut() {
    let crib = Crib::new();
    // 200 characters of it are shown.
    crib.write("g", &format!("{}{SECRET}{}", "x".repeat(190), "y".repeat(50)));
    let told = told(&crib.call("no_answer", "{}").await);
    assert!(told.contains("an invalid answer") && told.contains("[masked]"), "{told}");
    assert_eq!(piece_of_secret(&told), None, "{told}");
}

#[tokio::test]
async fn json_with_a_masked_number_is_still_json() {
    let result = Crib::new().call("number", "{}").await;
    let data = result.output().and_then(|output| output.data()).expect("data");
    assert_eq!(*data, serde_json::json!({"pin": "[masked]", "other": 9}));
}

#[tokio::test]
async fn a_secret_that_is_renewed_is_masked_in_programs_that_run_already() {
    let crib = Crib::new();
    crib.write("h", "the renewed value");
    let renew = async {
        while !crib.workspace.path().join("started").exists() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        crib.executor.mask_also(["renewed value".to_owned()]).expect("a mask");
        crib.write("go", "");
    };
    let (result, ()) = tokio::join!(crib.call("slowly", "{}"), renew);
    assert_eq!(result.text(), "the [masked]");
}

#[tokio::test]
async fn a_line_that_was_cut_is_not_shown_where_patterns_hide_something() {
    let crib = Crib::new();
    let password = "hunter22".repeat(100);
    crib.write("p", &format!("{}\npassword={password}\n{}\n", "x".repeat(2000), "z".repeat(600)));
    let result = crib.call("patterns", "{}").await;
    let text = result.text();
    assert_eq!(text, format!("[… 2811 bytes omitted …]\n{}\n", "z".repeat(600)));
}

/// Answers one request with this text, and gives the address to ask.
#[cfg(feature = "http-tools")]
fn answering(text: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    std::thread::spawn(move || {
        let Ok((mut stream, _)) = listener.accept() else { return };
        let _ = stream.read(&mut [0; 4096]);
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n", text.len());
        let _ =
            stream.write_all(format!("{head}content-type: text/plain\r\n\r\n{text}").as_bytes());
    });
    address
}

#[cfg(feature = "http-tools")]
#[tokio::test(flavor = "multi_thread")]
async fn the_answer_of_a_server_is_masked_before_it_is_cut() {
    let crib = Crib::new();
    for keep in ["both", "head", "tail"] {
        for shift in (0..SECRET.len() * 2).step_by(5) {
            let before = "x".repeat(KEPT * 3 / 4 - SECRET.len() * 3 / 2 + shift);
            let end = "z".repeat(KEPT - SECRET.len() * 3 / 2 + shift);
            let between = "y".repeat(KEPT * 2);
            let address = answering(format!("{before}{SECRET}{between}{SECRET}{end}"));
            let tools = format!(
                "toolcrib: 1\ntools:\n- name: ask\n  description: Ask a server.\n  http:\n    url: \
                 http://{address}/\n    allow_private: [127.0.0.0/8]\n  limits: {{output: 1KiB}}\n  \
                 output: {{format: text, keep: {keep}}}\n"
            );
            let folder = crib.workspace.path().join("asking");
            fs::create_dir_all(&folder).expect("a directory");
            fs::write(folder.join("ask.yaml"), tools).expect("a file");
            let manifests = Manifests::load(&[folder], RunnerHost::new(crib.workspace.path()));
            let mut registry = RegistryBuilder::new();
            for entry in manifests.entries() {
                assert!(matches!(registry.register(entry), Registration::Registered));
            }
            let executor = Executor::builder(Registry::new(registry.build()))
                .mask(Mask::new([SECRET.to_owned()]).expect("a mask"))
                .build();
            let turn = executor.turn(TurnOptions::default());
            let told = told(&turn.call(ToolCall::new("call", "ask", "{}")).await);
            assert!(told.contains("bytes omitted"), "{told}");
            assert_eq!(piece_of_secret(&told), None, "{keep} {shift}: {told}");
        }
    }
}
