//! Output of any length is read in constant memory. Alone in its binary: it measures the process.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::future::pending;

use toolcrib_sandbox::{Command, run};

/// The largest this process has ever been, in bytes.
fn peak_memory() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_megabytes_of_output_do_not_grow_memory() {
    let command = Command::new("/bin/sh").args(["-c", "head -c 100000000 /dev/zero; printf END"]);
    let before = peak_memory();
    let finished = run(command, pending()).await.unwrap();
    let growth = peak_memory() - before;
    assert_eq!(finished.stdout.total, 100_000_003);
    assert_eq!(finished.stdout.head.len(), 768 * 1024);
    assert_eq!(finished.stdout.tail.len(), 256 * 1024);
    assert!(finished.stdout.tail.ends_with(b"END"));
    assert!(finished.stdout.is_truncated());
    assert!(growth < 16 * 1024 * 1024, "grew by {growth} bytes");
}
