//! Which folder a call works in, and the order of refusals.

use std::fs;

use serde_json::json;
use tempfile::TempDir;
use toolcrib_builtins::{NameProfile, Projects};
use toolcrib_tool::ErrorKind;

use crate::harness::Crib;

fn two() -> (TempDir, Projects) {
    let home = TempDir::new().unwrap();
    for project in ["docs", "shop"] {
        fs::create_dir(home.path().join(project)).unwrap();
        fs::write(home.path().join(project).join("name.txt"), project).unwrap();
    }
    let roots = ["docs", "shop", "gone"].map(|project| (project, home.path().join(project)));
    (home, Projects::named(roots))
}

fn crib(project: Option<&str>) -> Crib {
    let (home, projects) = two();
    let crib = Crib::over(home, projects, NameProfile::Default);
    match project {
        Some(project) => crib.with_value("project_id", project),
        None => crib,
    }
}

#[tokio::test]
async fn the_host_chooses_the_project_and_the_model_cannot() {
    for project in ["docs", "shop"] {
        let crib = crib(Some(project));
        for arguments in [
            json!({"path": "name.txt"}),
            json!({"path": "name.txt", "project_id": "shop"}),
            json!({"path": "name.txt", "project_id": "../shop"}),
        ] {
            assert_eq!(crib.text("file_read", arguments).await, project);
        }
        crib.fails("file_read", json!({"path": "../shop/name.txt"}), ErrorKind::Denied).await;
    }
}

#[tokio::test]
async fn refusals_come_in_one_order() {
    let outside = json!({"path": "../../etc/passwd"});
    let nobody = crib(None).fails("file_read", outside.clone(), ErrorKind::MissingContext).await;
    assert!(nobody.contains("`project_id`"), "{nobody}");
    let unknown =
        crib(Some("none")).fails("file_read", outside.clone(), ErrorKind::Execution).await;
    assert!(unknown.contains("there is no project \"none\""), "{unknown}");
    let denied = crib(Some("docs")).fails("file_read", outside, ErrorKind::Denied).await;
    assert!(denied.contains("outside the project"), "{denied}");
    let docs = crib(Some("docs"));
    let missing = docs.fails("file_read", json!({"path": "x"}), ErrorKind::Execution).await;
    assert!(missing.contains("there is no such file"), "{missing}");
}

#[tokio::test]
async fn a_missing_project_folder_is_reported_until_it_exists() {
    let crib = crib(Some("gone"));
    let said = crib.fails("file_list", json!({}), ErrorKind::Execution).await;
    assert!(said.contains("the project's folder cannot be opened"), "{said}");
    assert!(!said.contains(crib.home().to_str().unwrap()), "a path of the server: {said}");
    for round in 0..2 {
        fs::create_dir(crib.home().join("gone")).unwrap();
        crib.text("file_write", json!({"path": "a.txt", "content": "x"})).await;
        assert_eq!(crib.data("file_list", json!({})).await["total"], 1, "{round}");
        // Deleted and recreated, it is another folder with the same name.
        fs::remove_dir_all(crib.home().join("gone")).unwrap();
    }
}

#[tokio::test]
async fn without_projects_an_id_is_ignored() {
    let crib = Crib::new(&[("a.txt", b"alpha")]).with_value("project_id", "whatever");
    assert_eq!(crib.text("file_read", json!({"path": "a.txt"})).await, "alpha");
}

#[tokio::test]
async fn every_tool_gives_the_same_answer_for_paths_outside() {
    let crib = Crib::new(&[("a.txt", b"alpha")]);
    std::os::unix::fs::symlink("../secret.txt", crib.path("link")).unwrap();
    let there = crib.home().join("secret.txt");
    let missing = crib.home().join("missing.txt");
    for path in ["../secret.txt", "../missing.txt", "/etc/passwd", "/etc/none"]
        .into_iter()
        .chain([there.to_str().unwrap(), missing.to_str().unwrap()])
    {
        for (tool, arguments) in [
            ("file_read", json!({"path": path})),
            ("file_write", json!({"path": path, "content": "x"})),
            ("file_write", json!({"path": path, "content": "x", "mode": "append"})),
            ("file_delete", json!({"path": path, "recursive": true})),
            ("file_list", json!({"path": path})),
            ("file_exists", json!({"path": path})),
            ("file_mkdir", json!({"path": path})),
            ("file_search", json!({"pattern": "x", "path": path})),
            ("edit_file", json!({"path": path, "source_text": "a", "target_text": "b"})),
        ] {
            let said = crib.fails(tool, arguments, ErrorKind::Denied).await;
            let said = said.replace(path, "PATH");
            let expected = format!(
                "Error executing {tool}: `PATH`: it is outside the project: only what is inside the \
                 project's folder can be reached\nUse a path inside the project's folder, such as \
                 `notes.txt` or `src/main.rs`."
            );
            assert_eq!(said, expected);
        }
    }
    crib.fails("file_read", json!({"path": "link"}), ErrorKind::Denied).await;
    crib.fails("file_search", json!({"path": "link", "pattern": "s"}), ErrorKind::Denied).await;
    assert_eq!(crib.data("file_search", json!({"pattern": "secret"})).await["total"], 0);
    assert_eq!(fs::read_to_string(there).unwrap(), "secret");
}
