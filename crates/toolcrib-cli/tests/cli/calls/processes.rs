//! The processes of command tools end with the call, and their output does not fill the memory.

use std::fs;
use std::time::{Duration, Instant};

use crate::harness::crib::Crib;

/// A shell that ignores SIGTERM and leaves two children, one of them in its own session; each
/// appends to a file as long as it lives.
const STUBBORN: &str = r#"
toolcrib: 1
tools:
  - name: stubborn
    description: Never ends by itself.
    input: {properties: {beat: {type: string}}, required: [beat]}
    limits: {timeout: 1s}
    run:
      argv:
        - bash
        - -c
        - |
          trap '' TERM
          beat() { trap '' TERM; for i in $(seq 600); do echo x >> "$1"; sleep 0.05; done; }
          export -f beat
          beat "$BEAT" &
          setsid bash -c 'beat "$BEAT"' &
          echo started
          wait
      env: {BEAT: "${args.beat}"}
"#;

#[test]
fn a_command_that_ignores_sigterm_and_leaves_children_is_gone_after_its_timeout() {
    let crib = Crib::new(&[("stubborn.yaml", STUBBORN)]);
    let beat = crib.path().join("beat");
    let started = Instant::now();
    let run = crib.run(&["call", "stubborn", &format!("beat={}", beat.display()), "--json"]);
    assert_eq!(run.json()["error"]["kind"], "timeout", "{run:?}");
    assert_eq!(run.json()["output"], "started\n", "the output so far is handed over");
    assert!(started.elapsed() < Duration::from_secs(10));

    let beats = || fs::read(&beat).map(|text| text.len()).unwrap_or_default();
    let before = beats();
    assert!(before > 0, "the children were alive");
    std::thread::sleep(Duration::from_millis(600));
    assert_eq!(beats(), before, "a child is still alive");
}

#[test]
fn output_floods_are_capped_in_bounded_memory() {
    let crib = Crib::new(&[(
        "flood.yaml",
        r#"
toolcrib: 1
tools:
  - name: flood
    description: Print 100 MB.
    run: {argv: [head, -c, "100000000", /dev/zero]}
    limits: {output: 64KiB}
  - name: trickle
    description: Print 100 KB.
    run: {argv: [head, -c, "100000", /dev/zero]}
    limits: {output: 64KiB}
"#,
    )]);
    // What the program itself needs is in both.
    let (flood, trickle) = (peak_of_call(&crib, "flood"), peak_of_call(&crib, "trickle"));
    assert!(flood < trickle + 16_000, "peak memory {flood} KiB, and {trickle} KiB of 100 KB");
}

/// The most memory, in KiB, that `toolcrib call` has for a tool whose output is truncated.
fn peak_of_call(crib: &Crib, tool: &str) -> u64 {
    let script = format!(
        "{} call {tool} --json & pid=$!; peak=0; while kill -0 $pid 2>/dev/null; do \
         rss=$(awk '/VmHWM/ {{print $2}}' /proc/$pid/status 2>/dev/null); \
         [ -n \"$rss\" ] && peak=$rss; sleep 0.01; done; wait $pid; echo \"peak $peak\" >&2",
        env!("CARGO_BIN_EXE_toolcrib")
    );
    let mut command = assert_cmd::Command::new("bash");
    command
        .current_dir(crib.path())
        .args(["-c", &script])
        .env("XDG_STATE_HOME", crib.state_home())
        .timeout(Duration::from_secs(60));
    let run = crate::harness::crib::run(&mut command);
    let json = run.json();
    assert_eq!(json["success"], true, "{run:?}");
    assert!(json["output"].as_str().is_some_and(|text| text.len() < 200_000));
    let peak = run.stderr.lines().find_map(|line| line.strip_prefix("peak "));
    peak.and_then(|peak| peak.trim().parse().ok()).filter(|peak| *peak > 0).expect("a peak")
}
