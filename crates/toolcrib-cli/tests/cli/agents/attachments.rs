//! `toolcrib run --attach`: files for the model.

use serde_json::json;
use toolcrib::wire::model::Wire;
use toolcrib_testkit::model_server::Reply;

use super::harness::served;
use crate::harness::crib::Crib;

/// The beginning of a PNG file, and its base64.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n and a picture";
const PNG_BASE64: &str = "iVBORw0KGgogYW5kIGEgcGljdHVyZQ";

#[tokio::test(flavor = "multi_thread")]
async fn files_reach_the_model_as_what_they_contain_in_every_protocol() {
    for &wire in Wire::ALL {
        let (server, crib) = served(wire, [Reply::text("A chart."), Reply::text("Yes.")]).await;
        // Its name does not say what it is.
        std::fs::write(crib.path().join("chart.txt"), PNG).expect("a picture");
        std::fs::write(crib.path().join("notes.md"), "Größe: 3 m").expect("a text");
        let run = crib.run(&["run", "--attach", "chart.txt", "--attach", "notes.md", "Which?"]);
        assert_eq!((run.code, run.stdout.as_str()), (Some(0), "A chart.\n"), "{wire}: {run:?}");
        let sent = &server.requests()[0].text;
        for part in ["Which?", "image/png", PNG_BASE64, "[file notes.md]", "Größe: 3 m"] {
            assert!(sent.contains(part), "{wire}: {part}: {sent}");
        }
        let run = crib.run(&["run", "--resume", "last", "--attach", "notes.md", "Sure?"]);
        assert_eq!(run.code, Some(0), "{wire}: {run:?}");
        assert_eq!(server.requests()[1].text.matches("3 m").count(), 2, "{wire}");
        assert_eq!(server.violations(), [""; 0], "{wire}");
        let shown = crib.run(&["runs", "show", "last", "--md"]);
        assert!(shown.stdout.contains("Which?\n\n[image image/png, 22 bytes]"), "{shown:?}");
    }
}

#[test]
fn a_file_that_cannot_be_sent_is_refused_before_the_run_begins() {
    let crib = Crib::new(&[]);
    std::fs::write(crib.path().join("script.json"), json!([{"text": "No."}]).to_string()).unwrap();
    std::fs::create_dir(crib.path().join("folder")).expect("a folder");
    std::fs::write(crib.path().join("empty"), "").expect("a file");
    std::fs::write(crib.path().join("binary"), [0, 1, 2]).expect("a file");
    std::fs::write(crib.path().join("long"), "x".repeat(1024 * 1024 + 1)).expect("a file");
    let huge = std::fs::File::create(crib.path().join("huge")).expect("a file");
    huge.set_len(11 * 1024 * 1024).expect("room");
    let refused = [
        ("absent", "No such file"),
        ("folder", "it is not a file"),
        ("empty", "it is empty"),
        ("binary", "it is no text in UTF-8, picture"),
        ("long", "a text of more than 1 MiB"),
        ("huge", "it has more than 10 MiB"),
    ];
    for (file, why) in refused {
        let run = crib.run(&["run", "--model", "scripted:script.json", "--attach", file, "Go."]);
        let told = run.stderr.contains(why) && run.stderr.contains(&format!("attaching {file}"));
        assert!(run.code == Some(2) && told, "{file}: {run:?}");
    }
    let run = crib.run(&["run", "--resume", "last", "--attach", "long"]);
    assert_eq!(run.code, Some(2), "there is nothing to say about it: {run:?}");
    let runs = crib.run(&["runs", "list", "--json"]).json();
    assert_eq!(runs["runs"], json!([]));
}
