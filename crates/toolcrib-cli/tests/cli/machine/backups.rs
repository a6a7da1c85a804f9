//! `toolcrib state`: backups while servers write, and servers that start from them.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::crib::{Crib, Run};
use crate::harness::http::Http;

/// Changes a file outside of the state folder with each run.
const COUNT: &str = r#"
toolcrib: 1
tools:
  - name: count
    description: Append a line to a file.
    input: {properties: {id: {type: string}}, required: [id]}
    run: {argv: [tee, -a, lines], stdin: "${args.id}\n"}
"#;

const CONFIG: &str = "state: {dir: state}\nserver: {token: a-token-of-the-test-0123456789}\n";
const TOKEN: &str = "a-token-of-the-test-0123456789";

fn backup(crib: &Crib, file: &Path) -> Run {
    crib.run(&["state", "backup", &file.display().to_string(), "--json"])
}

fn restore(crib: &Crib, file: &Path) -> Run {
    crib.run(&["state", "restore", &file.display().to_string()])
}

fn lines(crib: &Crib) -> usize {
    let text = std::fs::read_to_string(crib.path().join("lines")).unwrap_or_default();
    text.lines().count()
}

#[test]
fn a_backup_while_four_servers_write_has_every_answer_given_before_it() {
    let crib = Crib::new(&[("count.yaml", COUNT)]);
    crib.config(CONFIG);
    let servers: Vec<Http> = (0..4).map(|_| Http::start(&crib, TOKEN)).collect();
    let answered: Mutex<Vec<(String, Value)>> = Mutex::default();
    let file = crib.home().join("backup.db");
    let before = std::thread::scope(|scope| {
        for (number, server) in servers.iter().enumerate() {
            let answered = &answered;
            scope.spawn(move || {
                for call in 0..25 {
                    let key = format!("{number}-{call}");
                    let reply = server.ask_under(&key, "count", &json!({"id": key}));
                    let reply = reply.expect("an answer");
                    assert_eq!(reply.status, 200, "{}", reply.body);
                    answered.lock().expect("no panic").push((key, reply.body));
                }
            });
        }
        let until = Instant::now() + Duration::from_secs(60);
        while answered.lock().expect("no panic").len() < 20 {
            assert!(Instant::now() < until, "the servers answer");
            std::thread::sleep(Duration::from_millis(2));
        }
        let before = answered.lock().expect("no panic").clone();
        let run = backup(&crib, &file);
        assert_eq!(run.code, Some(0), "{run:?}");
        before
    });
    let mode = file.metadata().expect("a file").permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    let run = restore(&crib, &file);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("stop it first"), "{run:?}");

    drop(servers);
    let run = restore(&crib, &file);
    assert_eq!(run.code, Some(0), "{run:?}");
    let all = lines(&crib);
    let server = Http::start(&crib, TOKEN);
    for (key, body) in &before {
        let again = server.ask_under(key, "count", &json!({"id": key})).expect("an answer");
        assert_eq!(again.body, *body, "{key}");
    }
    assert_eq!(lines(&crib), all, "nothing has run again");
}

#[test]
fn a_backup_follows_no_link_replaces_no_file_and_is_not_written_where_tools_work() {
    let crib = Crib::new(&[]);
    crib.config(CONFIG);
    assert_eq!(crib.run(&["call", "calculator", "expression=1"]).code, Some(0));
    let work = crib.path().join("workspace");
    std::fs::create_dir_all(&work).expect("a folder");
    let run = backup(&crib, &work.join("backup.db"));
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("where tools can read and change it"), "{run:?}");
    assert_eq!(std::fs::read_dir(&work).expect("it is there").count(), 0);

    // Nor through a link to it.
    let door = crib.home().join("door");
    symlink(&work, &door).expect("a link");
    assert_eq!(backup(&crib, &door.join("backup.db")).code, Some(2));

    let (file, target) = (crib.home().join("backup.db"), crib.home().join("target"));
    symlink(&target, &file).expect("a link");
    let run = backup(&crib, &file);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(!target.exists(), "the link is not followed");
    std::fs::remove_file(&file).expect("it is ours");
    std::fs::write(&file, "mine").expect("it is ours");
    assert_eq!(backup(&crib, &file).code, Some(2));
    assert_eq!(std::fs::read_to_string(&file).expect("it is there"), "mine");

    let open = crib.home().join("open");
    std::fs::create_dir(&open).expect("a folder");
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o777)).expect("it is ours");
    let run = backup(&crib, &open.join("backup.db"));
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("others may"), "{run:?}");
    assert_eq!(restore(&crib, &crib.home().join("none.db")).code, Some(2));
    crib.config("state: {dir: none}\n");
    let run = backup(&crib, &crib.home().join("b.db"));
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("there is no state folder"), "{run:?}");
}

#[test]
fn a_backup_is_not_written_to_a_place_of_the_server() {
    let crib = Crib::new(&[]);
    // The config is `config.yml`. With a second one, no server would start.
    crib.config(&format!(
        "{CONFIG}workspace: {{root: workspace}}\naudit: {{file: logs/audit.jsonl}}\n\
         secrets: {{key: {{file: secrets/key}}}}\n"
    ));
    for folder in ["logs", "secrets", "tools.d/more", "elsewhere"] {
        std::fs::create_dir_all(crib.path().join(folder)).expect("a folder");
    }
    assert_eq!(crib.run(&["call", "calculator", "expression=1"]).code, Some(0));
    let door = crib.home().join("manifests");
    symlink(crib.path().join("tools.d"), &door).expect("a link");
    for place in [
        "config.yml",
        "config.yaml",
        "config.toml",
        "tools.d/backup.yaml",
        "tools.d/backup.db",
        "tools.d/more/backup.db",
        "state/backup.db",
        "state/toolcrib.db",
        "state/servers/1",
        "logs/audit.jsonl",
        "logs/audit.jsonl.1",
        "secrets/key",
        "toolcrib.lock",
    ] {
        let file = crib.path().join(place);
        let before = std::fs::read(&file).ok();
        let run = backup(&crib, &file);
        assert_eq!(run.code, Some(2), "{place}: {run:?}");
        assert!(run.stderr.contains("belongs to this server"), "{place}: {run:?}");
        assert_eq!(std::fs::read(&file).ok(), before, "{place}");
    }
    assert_eq!(backup(&crib, &door.join("backup.db")).code, Some(2), "nor through a link");
    let run = backup(&crib, &crib.path().join("elsewhere/backup.db"));
    assert_eq!(run.code, Some(0), "{run:?}");
}
