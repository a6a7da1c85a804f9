//! Every record is a whole line in the file of that name, or counted as lost.

use std::os::unix::fs::PermissionsExt;
use std::time::SystemTime;

use super::*;

fn record(id: usize) -> AuditRecord {
    AuditRecord::new(SystemTime::UNIX_EPOCH, id.to_string(), "t")
}

/// The call ids in a file; fails if a line is not whole.
fn ids(path: &Path) -> Vec<usize> {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'));
    let id = |line: &str| -> usize {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line["call_id"].as_str().unwrap().parse().unwrap()
    };
    text.lines().map(id).collect()
}

#[test]
fn records_of_many_threads_are_whole_lines_and_none_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.jsonl");
    let audit = FileAudit::open(&path).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let audit = &audit;
            scope.spawn(move || (0..500).for_each(|n| audit.record(&record(thread * 500 + n))));
        }
    });
    assert_eq!(audit.lost(), 0);
    drop(audit);
    let mut ids = ids(&path);
    ids.sort_unstable();
    assert_eq!(ids, (0..2000).collect::<Vec<_>>());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_file_that_is_rotated_away_is_begun_again() {
    let dir = tempfile::tempdir().unwrap();
    let (path, rotated) = (dir.path().join("audit.jsonl"), dir.path().join("audit.jsonl.1"));
    let audit = FileAudit::open(&path).unwrap();
    audit.record(&record(1));
    audit.flush();
    fs::rename(&path, &rotated).unwrap();
    audit.record(&record(2));
    audit.flush();
    fs::remove_file(&path).unwrap();
    audit.record(&record(3));
    audit.flush();
    assert_eq!((ids(&rotated), ids(&path), audit.lost()), (vec![1], vec![3], 0));
}

#[test]
fn a_line_that_was_not_finished_stays_a_line_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.jsonl");
    fs::write(&path, "{\"half").unwrap();
    FileAudit::open(&path).unwrap().record(&record(1));
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("{\"half\n{\"time\""), "{text}");
}

#[test]
fn what_cannot_be_written_is_counted_and_later_records_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let inner = dir.path().join("logs");
    fs::create_dir(&inner).unwrap();
    let path = inner.join("audit.jsonl");
    let audit = FileAudit::open(&path).unwrap();
    fs::remove_dir_all(&inner).unwrap();
    audit.record(&record(1));
    audit.flush();
    assert_eq!(audit.lost(), 1);
    fs::create_dir(&inner).unwrap();
    audit.record(&record(2));
    audit.flush();
    assert_eq!((ids(&path), audit.lost()), (vec![2], 1));
}

#[test]
fn a_full_queue_loses_records_and_holds_up_nobody() {
    let (queue, messages) = sync_channel(2);
    let losses = Arc::new(Losses::default());
    let audit = FileAudit { queue: Some(queue), writer: None, losses };
    (0..5).for_each(|n| audit.record(&record(n)));
    assert_eq!(audit.lost(), 3);
    drop(messages);
    audit.record(&record(9));
    assert_eq!(audit.lost(), 4);
    audit.flush();
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let error = FileAudit::open(dir.path()).unwrap_err();
    assert!(error.to_string().contains(dir.path().to_str().unwrap()), "{error}");
}
