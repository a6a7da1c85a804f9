//! Code that exhausts resources: it ends within its limits, and the server survives.

use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use toolcrib_builtins::code::{PythonSettings, Strictness};
use toolcrib_core::ExecutorConfig;

use crate::harness::{Crib, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("a_bomb_ends_within_its_limits_and_the_server_lives", bombs_end)]
}

const BOMBS: &[(&str, &str)] = &[
    ("memory in one piece", "x = bytes(1 << 40)"),
    ("memory in small pieces", "x = []\nwhile True: x.append('x' * 1_000_000 + str(len(x)))"),
    ("memory by doubling", "x = [0]\nwhile True: x = x + x"),
    ("a large number", "x = 10 ** 10 ** 10"),
    ("time", "while True: pass"),
    ("time in a pattern", "import re\nre.match(r'(a+)+$', 'a' * 60 + 'b')"),
    ("time in a sum", "sum(range(10 ** 14))"),
    ("time asleep", "import time\ntime.sleep(10_000)"),
    ("output", "while True: print('x' * 10_000)"),
    ("output on the other stream", "import logging\nwhile True: logging.warning('x' * 10_000)"),
    ("recursion", "def f(): return f()\nf()"),
    ("recursion in what is printed", "x = []\nfor _ in range(100_000): x = [x]\nprint(x)"),
    ("recursion in a comparison", "class A:\n  def __eq__(s, o): return s == o\nprint(A() == A())"),
    ("text in the parser", "x = 1"),
    ("a refusal to end", "class A:\n  def __del__(s):\n    while True: pass\na = A()"),
    (
        "an exception that is always caught",
        "while True:\n  try:\n    while True: pass\n  except BaseException: pass",
    ),
];

async fn bombs_end() {
    let short = |python: PythonSettings| {
        python.with_timeout(Strictness::Standard, Duration::from_secs(2)).with_allow_lenient(true)
    };
    let crib = Crib::with(|bash| bash, short, ExecutorConfig::default());
    for (name, code) in BOMBS {
        let nested = format!("x = {}0", "-~".repeat(200_000));
        let code = if *name == "text in the parser" { &nested } else { *code };
        // A tool that has timed out three times in a row is paused and would not run.
        crib.executor.resume("execute_python");
        let start = Instant::now();
        let result = crib.python(code, "standard").await;
        assert!(!result.is_success(), "{name} succeeds: {}", result.text());
        assert!(start.elapsed() < Duration::from_secs(60), "{name}: {:?}", start.elapsed());
        assert!(result.text().len() < 100_000, "{name}: {}", result.text().len());
    }
    let code = "open('large', 'wb').truncate(1 << 40)";
    let file = crib.python(code, "lenient").await;
    assert!(file.text().contains("File too large"), "{}", file.text());
    crib.executor.resume("execute_python");
    assert_eq!(crib.python("print('alive')", "standard").await.text(), "alive\n");
}
