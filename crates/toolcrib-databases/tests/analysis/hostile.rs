//! Queries that try to leave their tables or to never end: none reads anything else, each ends in time.

use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use toolcrib_databases::AnalysisSettings;
use toolcrib_tool::ErrorKind;

use crate::harness::{Crib, trial};

const CORPUS: &str = include_str!("hostile.txt");

/// The limit of each query.
const LIMIT: Duration = Duration::from_secs(2);

/// What an answer would have that was read elsewhere.
const ELSEWHERE: [&str; 3] = ["SESAME", "root:x:", "/bin/bash"];

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("no_hostile_query_reads_or_writes_elsewhere_and_each_ends", no_hostile_query),
        trial("the_jail_alone_keeps_queries_from_other_files", the_jail_alone),
    ]
}

async fn no_hostile_query() {
    let settings = AnalysisSettings::default().with_timeout(LIMIT).with_memory(128 << 20);
    let crib = Crib::with(&[("a.csv", "n,text\n1,x\n2,y\n")], settings);
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in CORPUS.lines().filter(|line| !line.starts_with('#')) {
        let (verdict, sql) = line.split_once(' ').expect("a verdict and a query");
        let began = Instant::now();
        let result = crib.query(&["a.csv"], sql).await;
        let text = result.text();
        let fits = match verdict {
            "denied" => {
                result.error_kind() == Some(ErrorKind::Denied)
                    && text.contains("Only SELECT queries allowed")
            }
            "fails" => !result.is_success(),
            _ => true,
        };
        // Generous, because the machine may be busy: what never ends is what is looked for.
        let in_time = began.elapsed() < LIMIT + Duration::from_secs(30);
        if !fits || !in_time || ELSEWHERE.iter().any(|word| text.contains(word)) {
            wrong.push(format!("{sql} ({:?}): {text}", began.elapsed()));
        }
        count += 1;
    }
    assert!(count >= 100, "{count} queries");
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    for stolen in ["/tmp/toolcrib-stolen", "/tmp/toolcrib-stolen.db"] {
        assert!(!std::path::Path::new(stolen).exists(), "{stolen}");
    }
    let rows = crib.rows(&["a.csv"], "SELECT count(*) FROM a").await;
    assert_eq!(rows, serde_json::json!([[2]]));
}

/// The process of a query, started with the same confinement, cannot open what its engine would refuse to open.
async fn the_jail_alone() {
    use toolcrib_sandbox::{Command, Confinement, Profile, run};

    let crib = Crib::new(&[("a.csv", "n\n1\n")]);
    let secret = crib.path("a.csv");
    let confinement = Confinement::new(Profile::Pure).writable_scratch();
    let script = "f=$1; (read x < \"$f\") 2>/dev/null && echo read; (read x < /etc/passwd) 2>/dev/null && echo read; \
                  (echo x > \"$f\") 2>/dev/null && echo written; echo x > own && echo scratch";
    let command = Command::new("/bin/sh")
        .args(["-c", script, "sh"])
        .arg(secret.as_os_str())
        .cwd_in_scratch()
        .confine(confinement);
    let finished = run(command, std::future::pending()).await.expect("a shell");
    // A subshell needs a process, which is refused as well, so the shell may end at its first line.
    let text = finished.stdout.text();
    assert!(!text.contains("read") && !text.contains("written"), "{text}");
    assert_eq!(std::fs::read_to_string(&secret).ok().as_deref(), Some("n\n1\n"));
}
