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
    assert!(text.starts_with("{\"half\n{\"v\":1,\"time\""), "{text}");
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
    let path = std::path::PathBuf::from("nowhere");
    let rotation = Arc::new(Mutex::new(Rotation::NEVER));
    let audit = FileAudit { path, rotation, queue: Some(queue), writer: None, losses };
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

#[test]
fn a_log_that_has_grown_is_moved_aside_and_no_record_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.jsonl");
    let rotation = Rotation { max_bytes: Some(1000), keep: 3, max_age: None };
    let audit = FileAudit::rotating(&path, rotation).unwrap();
    let beside = FileAudit::rotating(&path, rotation).unwrap();
    for id in 0..60 {
        let writer = if id % 2 == 0 { &audit } else { &beside };
        writer.record(&record(id));
        writer.flush();
    }
    let aside = |number: usize| dir.path().join(format!("audit.jsonl.{number}"));
    let files = [aside(3), aside(2), aside(1), path.clone()];
    let kept: Vec<usize> =
        files.iter().filter(|file| file.exists()).flat_map(|file| ids(file)).collect();
    assert_eq!(kept, (60 - kept.len()..60).collect::<Vec<_>>(), "the newest, in their order");
    assert!(aside(3).exists() && !aside(4).exists());
    let tail = audit.tail(5).unwrap();
    let tail: Vec<_> = tail.iter().map(|one| one["call_id"].as_str().unwrap()).collect();
    assert_eq!(tail, ["55", "56", "57", "58", "59"]);
    assert_eq!(audit.tail(1000).unwrap().len(), kept.len());
    assert_eq!(audit.lost() + beside.lost(), 0);
}

#[test]
fn the_end_of_a_long_log_is_read_in_whole_lines() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.jsonl");
    let filler = format!("{{\"call_id\":\"{}\"}}\n", "x".repeat(1000));
    fs::write(&path, filler.repeat(5000)).unwrap();
    let audit = FileAudit::open(&path).unwrap();
    audit.record(&record(7));
    let tail = audit.tail(10_000).unwrap();
    assert!(tail.len() > 4000 && tail.len() < 5000, "{}", tail.len());
    assert_eq!(tail.last().unwrap()["call_id"], "7");
    assert!(FileAudit::open(dir.path().join("none.jsonl")).unwrap().tail(3).unwrap().is_empty());
}

#[test]
fn old_files_are_removed_and_the_file_is_moved_aside_by_age_also_after_a_change_of_the_rules() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.jsonl");
    let aside = |number: usize| dir.path().join(format!("audit.jsonl.{number}"));
    let hour = Duration::from_secs(60 * 60);
    for (number, hours) in [(1, 1), (2, 5), (3, 30), (4, 1), (5, 1)] {
        let file = File::create(aside(number)).unwrap();
        file.set_modified(SystemTime::now() - hours * hour).unwrap();
    }
    let rotation = Rotation { max_bytes: None, keep: 5, max_age: Some(20 * hour) };
    let audit = FileAudit::rotating(&path, rotation).unwrap();
    let now = |id: &str| AuditRecord::new(SystemTime::now(), id, "t");
    audit.record(&now("1"));
    audit.flush();
    assert!(path.exists() && aside(2).exists() && !aside(3).exists(), "only one is too old");

    // The first record of the file is five hours old: a fifth of the age is four.
    fs::remove_file(&path).unwrap();
    audit.record(&AuditRecord::new(SystemTime::now() - 5 * hour, "2", "t"));
    audit.flush();
    assert!(!path.exists() && ids(&aside(1)) == [2]);

    audit.rotate_by(Rotation { max_bytes: Some(1), keep: 2, max_age: None });
    audit.record(&now("3"));
    audit.flush();
    assert_eq!((ids(&aside(1)), ids(&aside(2))), (vec![3], vec![2]));
    assert!((3..9).all(|number| !aside(number).exists()), "fewer files are kept now");
}
