//! toolcrib as the client: the MCP reference servers as sources of tools, over stdio and HTTP.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::crib::{BINARY, Crib};
use crate::installed::{Clients, clients};
use crate::lines::Lines;
use crate::process::Running;

const LIMIT: Duration = Duration::from_secs(60);

/// Runs the binary on a crib and takes its answer as JSON.
fn answer(crib: &Crib, arguments: &[&str]) -> Value {
    let config = crib.file("config.yml");
    let finished = Running::start(Path::new(BINARY), |command| {
        command.args(["--config", &config]).args(arguments);
    })
    .finish(LIMIT);
    serde_json::from_str(&finished.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}\n{}", finished.stdout, finished.stderr))
}

/// Calls a tool with arguments as JSON.
fn called(crib: &Crib, tool: &str, arguments: &str) -> Value {
    let file = crib.file("arguments.json");
    fs::write(&file, arguments).unwrap();
    answer(crib, &["call", tool, "--json", "--input", &file])
}

fn names(crib: &Crib) -> Vec<String> {
    let listed = answer(crib, &["list", "--json", "--connect"]);
    let tools = listed["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// A manifest that starts a server with node.
fn started(clients: &Clients, name: &str, script: &Path, argument: &str) -> String {
    let (node, script) = (clients.node.display(), script.display());
    format!(
        "toolcrib: 1\nupstream:\n  - name: {name}\n    command: ['{node}', '{script}', \
         '{argument}']\n    sandbox: {{profile: trusted}}\n"
    )
}

/// What a call printed between the two lines that mark it.
fn marked(result: &Value, server: &str) -> String {
    let text = result["output"].as_str().unwrap_or_else(|| panic!("{result}"));
    let opening = format!("[untrusted output of the MCP server `{server}`, up to ");
    assert!(text.starts_with(&opening), "{text}");
    let (_, rest) = text.split_once('\n').unwrap();
    rest.rsplit_once("\n[end ").unwrap().0.to_owned()
}

/// What holds of the reference server with everything, however it is reached.
fn everything_works(crib: &Crib) {
    let names = names(crib);
    assert!(names.len() > 8, "{names:?}");
    let echo = called(crib, "everything_echo", r#"{"message": "hello"}"#);
    assert_eq!(marked(&echo, "everything"), "Echo: hello");
    let sum = called(crib, "everything_get-sum", r#"{"a": 19, "b": 23}"#);
    assert!(marked(&sum, "everything").contains("42"), "{sum}");

    // What does not fit the server's schema never reaches it.
    let wrong = called(crib, "everything_get-sum", r#"{"a": "x"}"#);
    assert_eq!(wrong["error"]["kind"], "invalid_args", "{wrong}");

    let image = called(crib, "everything_get-tiny-image", "{}");
    assert!(image["output"].as_str().unwrap().contains("[image image/png, "), "{image}");
    // Files and links are told as what they are: their text is marked, bytes have a size.
    let tool = "everything_get-resource-reference";
    let shown = |tool, arguments| {
        let answer = called(crib, tool, arguments);
        answer["output"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    };
    let text = shown(tool, r#"{"resourceType": "Text", "resourceId": 1}"#);
    assert!(
        text.contains("\n[file demo://resource/dynamic/text/1 text/plain]\nResource 1:"),
        "{text}"
    );
    let bytes = shown(tool, r#"{"resourceType": "Blob", "resourceId": 2}"#);
    assert!(bytes.contains("\n[file demo://resource/dynamic/blob/2 text/plain, "), "{bytes}");
    let links = shown("everything_get-resource-links", r#"{"count": 2}"#);
    assert!(
        links.contains("\n[link Text Resource 2: demo://resource/dynamic/text/2]\n"),
        "{links}"
    );
    let weather = r#"{"location": "Chicago"}"#;
    let data = called(crib, "everything_get-structured-content", weather);
    assert!(data["data"]["temperature"].is_number(), "{data}");
}

/// What its links lead to is read through toolcrib, by a client that was given the link.
fn links_can_be_followed(crib: &Crib) {
    let config = crib.file("config.yml");
    let open = || Lines::open(BINARY, &["--config", &config, "mcp"]);
    let read = |client: &mut Lines, uri: &str| client.ask("resources/read", &json!({"uri": uri}));
    let mut client = open();
    // A server may not be there at once.
    let call = json!({"name": "everything_get-resource-links", "arguments": {"count": 4}});
    let begun = Instant::now();
    let links = loop {
        let answer = client.ask("tools/call", &call);
        let content = answer["result"]["content"].as_array().cloned().unwrap_or_default();
        let links = content.into_iter().filter(|part| part["type"] == "resource_link");
        let links: Vec<_> = links.map(|link| link["uri"].as_str().unwrap().to_owned()).collect();
        if !links.is_empty() {
            break links;
        }
        assert!(begun.elapsed() < LIMIT, "{answer}");
    };
    assert_eq!(links.len(), 4, "{links:?}");
    for uri in &links {
        let answer = read(&mut client, uri);
        let [contents] = answer["result"]["contents"].as_array().unwrap().as_slice() else {
            panic!("{answer}")
        };
        assert_eq!(contents["uri"], *uri, "{answer}");
        assert_eq!(contents["_meta"]["toolcrib/untrusted"], "everything");
        let text = contents["text"].as_str();
        let marked = |text: &str| {
            text.starts_with("[untrusted output of the MCP server `everything`, up to ")
                && text.contains("\nResource ")
        };
        let is_whole = text.is_some_and(marked) || contents["blob"].is_string();
        assert!(is_whole, "{answer}");
    }
    // The server has this one, too, but gave nobody a link to it.
    let refused = read(&mut client, "demo://resource/dynamic/text/77");
    assert!(refused["error"].is_object(), "{refused}");
    // Nor is it read for somebody else.
    let refused = read(&mut open(), &links[0]);
    assert!(refused["error"].is_object(), "{refused}");
}

#[test]
fn the_reference_server_with_everything_is_a_source_over_stdio() {
    let Some(clients) = clients() else { return };
    let crib = Crib::empty();
    crib.add("e.yaml", &started(clients, "everything", &clients.everything, "stdio"));
    everything_works(&crib);
    links_can_be_followed(&crib);

    // A call that takes long is told of as it goes on, and does not outlive its time limit.
    let limited = started(clients, "everything", &clients.everything, "stdio")
        + "    limits: {timeout: 2s}\n";
    crib.add("e.yaml", &limited);
    let long = r#"{"duration": 30, "steps": 60}"#;
    let begun = Instant::now();
    let tool = "everything_trigger-long-running-operation";
    let late = called(&crib, tool, long);
    assert_eq!(late["error"]["kind"], "timeout", "{late}");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[test]
fn the_reference_server_with_everything_is_a_source_over_http() {
    let Some(clients) = clients() else { return };
    // Free a moment ago; nobody else asks for ports here.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let _server = Running::start(&clients.node, |command| {
        command.arg(&clients.everything).arg("streamableHttp").env("PORT", port.to_string());
    });
    let crib = Crib::empty();
    let manifest = format!(
        "toolcrib: 1\nupstream:\n  - name: everything\n    url: http://127.0.0.1:{port}/mcp\n"
    );
    // The operator wrote the address, and has to say that it may be a loopback one.
    crib.add("e.yaml", &manifest);
    let checked = answer(&crib, &["check", "--json"]);
    let found = checked["diagnostics"].to_string();
    assert!(found.contains("private-address") && found.contains("loopback"), "{checked}");

    crib.add("e.yaml", &(manifest + "    allow_private: [127.0.0.1/32]\n"));
    let begun = Instant::now();
    while names(&crib).iter().all(|name| !name.starts_with("everything_")) {
        assert!(begun.elapsed() < LIMIT, "the server never came up");
    }
    everything_works(&crib);
}

#[test]
fn the_reference_server_of_files_is_a_source() {
    let Some(clients) = clients() else { return };
    let crib = Crib::empty();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("note.txt"), "remember the milk\n").unwrap();
    let root = folder.path().to_str().unwrap();
    crib.add("f.yaml", &started(clients, "files", &clients.filesystem, root));
    let listed = names(&crib);
    assert!(listed.contains(&"files_read_text_file".to_owned()), "{listed:?}");

    let path = |name: &str| format!(r#"{{"path": "{root}/{name}"}}"#);
    let read = called(&crib, "files_read_text_file", &path("note.txt"));
    assert_eq!(marked(&read, "files"), "remember the milk");
    let refused = called(&crib, "files_read_text_file", r#"{"path": "/etc/hostname"}"#);
    assert_eq!(refused["error"]["kind"], "execution", "{refused}");
    let message = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("the MCP server `files` reports a failure"), "{refused}");
}
