//! Numbers that no machine type can hold, through every surface of the built program: a program gets what was sent, and
//! a client gets what the program returned.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::crib::Crib;
use crate::harness::server::Server;

const ECHO: &str = r#"
toolcrib: 1
tools:
  - name: echo
    description: Say what was said. Read-only.
    annotations: {read_only: true}
    input: {properties: {numbers: {type: array, items: {type: number}}}, required: [numbers]}
    output: {format: json}
    run:
      argv:
        - sh
        - -c
        - 'printf "{\"numbers\":["; comma=; for n; do printf "%s%s" "$comma" "$n"; comma=,; done; printf "]}"'
        - sh
        - {each: numbers}
"#;

const TOKEN: &str = "a-token-that-is-kept-over-restarts";
const ACCEPTS_BOTH: &str = "application/json, text/event-stream";

/// All kinds of difficult numbers, and some random ones.
fn numbers() -> Vec<String> {
    let mut numbers: Vec<String> = [
        "9223372036854775808",
        "18446744073709551616",
        "-9223372036854775809",
        "1606938044258990275541962092341162602522202993782792835301376",
        "0.1000000000000000055",
        "-0.0",
        "1E5",
        "123456789012345678901234567890",
        "0.80000000000000004",
        "4.9e-324",
        "1.7976931348623157e308",
        "3",
        "-12.5",
    ]
    .map(str::to_owned)
    .into();
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut digits = |count: usize| {
        let mut text = String::new();
        for _ in 0..count {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            text.push(char::from(b'1' + u8::try_from(state % 9).expect("a digit")));
        }
        text
    };
    for size in 1..30 {
        let whole = digits(size);
        let (one, other, power) = (digits(size), digits(31 - size), digits(2));
        numbers.extend([whole, format!("-{one}.{other}"), format!("{one}.{other}e-{power}")]);
    }
    numbers
}

/// The sign, the digits and the power of ten of the last digit, and whether it is written as a whole number.
fn meaning(number: &str) -> (bool, String, i64, bool) {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{}{fraction}", whole.trim_start_matches('-'));
    let shown = digits.trim_start_matches('0').trim_end_matches('0');
    let zeros = digits.len() - digits.trim_end_matches('0').len();
    let places = |count: usize| i64::try_from(count).expect("a short number");
    let exponent = exponent.parse::<i64>().expect("a power");
    let power = exponent - places(fraction.len()) + places(zeros);
    // All zeros are the same number.
    let power = if shown.is_empty() { 0 } else { power };
    let is_negative = number.starts_with('-') && !shown.is_empty();
    let is_whole = !number.contains(['.', 'e', 'E']);
    (is_negative, shown.to_owned(), power, is_whole)
}

/// Checks that every list under `key` in an answer equals what was sent; there has to be at least
/// one.
#[track_caller]
fn has_them(surface: &str, answer: &str, key: &str) {
    let expected: Vec<_> = numbers().iter().map(|number| meaning(number)).collect();
    let blank = |text: &str| text.replace(['\n', ' ', '\r'], "");
    // Quotes are escaped inside a JSON text.
    let answer = blank(answer).replace('\\', "");
    let lists: Vec<_> = answer.split(key).skip(1).collect();
    assert!(!lists.is_empty(), "{surface}: no numbers in {answer}");
    for list in lists {
        let list = list.split(']').next().unwrap_or_default();
        let got: Vec<_> = list.split(',').collect();
        for (number, expected) in got.iter().zip(&expected) {
            assert!(number.parse::<f64>().is_ok(), "{surface}: {number} in {list}");
            let mut got = meaning(number);
            // Whole numbers with a power of ten may be written without it.
            got.3 &= expected.3;
            assert_eq!(&got, expected, "{surface}: {number}");
        }
        assert_eq!(got.len(), expected.len(), "{surface}: {list}");
    }
}

const LIST: &str = "\"numbers\":[";

fn arguments() -> String {
    format!("{{\"numbers\":[{}]}}", numbers().join(","))
}

/// One request on its own connection, and the complete response.
fn asked(address: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a limit");
    let mut request = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
         authorization: Bearer {TOKEN}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        let _ = write!(request, "{name}: {value}\r\n");
    }
    write!(stream, "{request}\r\n{body}").expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

fn header<'a>(answer: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = answer.lines().take_while(|line| !line.is_empty());
    lines.find_map(|line| {
        let (known, value) = line.split_once(": ")?;
        known.eq_ignore_ascii_case(name).then_some(value)
    })
}

/// A message that calls the tool; if it asks for progress, the protocol library answers it.
fn call(tool: &str, arguments: &str, progress: bool) -> String {
    let meta = if progress { r#""_meta":{"progressToken":7},"# } else { "" };
    format!(
        r#"{{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{{meta}"name":"{tool}","arguments":{arguments}}}}}"#
    )
}

fn initialize() -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }})
    .to_string()
}

/// A server over HTTP, and its address.
struct Served {
    _server: Server,
    address: String,
    url: String,
}

fn crib() -> Crib {
    let crib = Crib::new(&[("echo.yaml", ECHO)]);
    crib.config(&format!("state: {{dir: state}}\nserver: {{token: {TOKEN}}}\n"));
    crib
}

fn serve(crib: &Crib) -> Served {
    let mut server = Server::start(crib, &["serve", "--listen", "127.0.0.1:0", "--json"]);
    let said = server.receive();
    let url = said["url"].as_str().expect("a URL").to_owned();
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    Served { _server: server, address, url }
}

/// The ways to send an MCP message over HTTP: a name, and the headers.
fn mcp_ways(address: &str) -> Vec<(&'static str, Vec<(&'static str, String)>)> {
    let begun = asked(address, "/mcp", &[("accept", ACCEPTS_BOTH)], &initialize());
    let session = header(&begun, "mcp-session-id").expect("a session").to_owned();
    let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let in_session = [("mcp-session-id", &*session), ("accept", ACCEPTS_BOTH)];
    asked(address, "/mcp", &in_session, ready);
    let revision = || ("mcp-protocol-version", "2025-11-25".to_owned());
    let accept = |first: &str| ("accept", first.to_owned());
    let session = || ("mcp-session-id", session.clone());
    vec![
        ("alone", vec![revision(), accept(ACCEPTS_BOTH)]),
        ("in a session", vec![revision(), accept(ACCEPTS_BOTH), session()]),
        (
            "in a session, as events",
            vec![revision(), accept("text/event-stream, application/json"), session()],
        ),
    ]
}

fn mcp_over_http(
    address: &str,
    way: &[(&str, String)],
    tool: &str,
    arguments: &str,
    progress: bool,
) -> String {
    let headers: Vec<_> = way.iter().map(|(name, value)| (*name, value.as_str())).collect();
    asked(address, "/mcp", &headers, &call(tool, arguments, progress))
}

#[test]
fn numbers_stay_exact_on_the_command_line() {
    let crib = crib();
    let answer = crib.call("echo", arguments(), &[]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    has_them("call --input", &answer.stdout, LIST);
    let pair = format!("numbers=[{}]", numbers().join(","));
    let answer = crib.run(&["call", "echo", &pair]);
    has_them("call", &answer.stdout, LIST);
}

#[test]
fn numbers_stay_as_they_are_over_http_and_over_restarts() {
    let crib = crib();
    let served = serve(&crib);
    let body = format!("{{\"arguments\":{}}}", arguments());
    let path = "/v1/tools/echo/call";
    let under_a_key = |address: &str| asked(address, path, &[("idempotency-key", "k")], &body);
    has_them("/v1", &asked(&served.address, path, &[], &body), LIST);
    let first = under_a_key(&served.address);
    has_them("/v1 under a key", &first, LIST);
    let events = asked(&served.address, path, &[("accept", "text/event-stream")], &body);
    let last = events.split("event: result").nth(1).expect("a result");
    has_them("/v1 as events", last, LIST);
    let calls = format!(r#"{{"calls":[{{"tool":"echo","arguments":{}}}]}}"#, arguments());
    has_them("/v1/batch", &asked(&served.address, "/v1/batch", &[], &calls), LIST);
    drop(served);
    let served = serve(&crib);
    let again = under_a_key(&served.address);
    assert_eq!(header(&again, "idempotency-replayed"), Some("true"), "{again}");
    has_them("/v1 under a key, after a restart", &again, LIST);
}

#[test]
fn numbers_stay_exact_over_mcp() {
    let crib = crib();
    let served = serve(&crib);
    for (name, way) in mcp_ways(&served.address) {
        for progress in [false, true] {
            let answer = mcp_over_http(&served.address, &way, "echo", &arguments(), progress);
            has_them(&format!("MCP over HTTP {name}, progress: {progress}"), &answer, LIST);
            assert!(answer.contains("\"structuredContent\":{\"numbers\""), "{name}: {answer}");
        }
    }
    let mut lines = Server::mcp(&crib);
    for progress in [false, true] {
        lines.send_line(call("echo", &arguments(), progress).as_bytes());
        let answer = lines.receive_line();
        has_them(&format!("MCP over lines, progress: {progress}"), &answer, LIST);
    }
}

#[test]
fn numbers_stay_exact_to_another_server_and_back() {
    let far = crib();
    let served = serve(&far);
    let program = env!("CARGO_BIN_EXE_toolcrib");
    let over_http = format!(
        "  - {{name: far, url: '{}', allow_private: [127.0.0.0/8], auth: {{bearer: '{TOKEN}'}}}}\n",
        served.url
    );
    let over_lines = format!(
        "  - {{name: far, command: ['{program}', mcp], cwd: '{}', sandbox: {{profile: trusted}}}}\n",
        far.path().display()
    );
    for (name, declared) in [("HTTP", over_http), ("lines", over_lines)] {
        let near = Crib::new(&[("far.yaml", &format!("toolcrib: 1\nupstream:\n{declared}"))]);
        near.config("state: {dir: state}\nmanifests: {trusted: [tools.d/far.yaml]}\n");
        let answer = near.call("far_echo", arguments(), &[]);
        assert_eq!(answer.code, Some(0), "{name}: {answer:?}");
        has_them(&format!("a server over {name}"), &answer.stdout, LIST);
    }
}

/// Arguments that two parsers could read differently, or that none could read.
const AMBIGUOUS: [&str; 4] = [
    r#"{"numbers":[1],"numbers":[2]}"#,
    r#"{"numbers":[1],"\u006eumbers":[2]}"#,
    r#"{"numbers":[1],"x":"\ud800"}"#,
    r#"{"numbers":[1e400]}"#,
];

#[test]
fn ambiguous_arguments_and_numbers_out_of_range_are_refused_on_every_surface() {
    let crib = crib();
    let served = serve(&crib);
    let refused = |surface: &str, arguments: &str, answer: &str| {
        let answer = answer.replace('\\', "");
        let is_refused = answer.contains("\"error\":")
            || answer.contains("\"isError\":true")
            || answer.contains("HTTP/1.1 4");
        assert!(is_refused, "{surface}: {arguments} is taken: {answer}");
        assert!(!answer.contains("\"structuredContent\""), "{surface}: {arguments}: {answer}");
    };
    let ways = mcp_ways(&served.address);
    let mut lines = Server::mcp(&crib);
    for arguments in AMBIGUOUS {
        for (name, way) in &ways {
            for progress in [false, true] {
                let answer = mcp_over_http(&served.address, way, "echo", arguments, progress);
                refused(&format!("MCP over HTTP {name}, {progress}"), arguments, &answer);
            }
        }
        for progress in [false, true] {
            lines.send_line(call("echo", arguments, progress).as_bytes());
            let answer: Value = lines.receive();
            refused(&format!("MCP over lines, {progress}"), arguments, &answer.to_string());
        }
        let body = format!("{{\"arguments\":{arguments}}}");
        let answer = asked(&served.address, "/v1/tools/echo/call", &[], &body);
        refused("/v1", arguments, &answer);
        assert_eq!(crib.call("echo", arguments, &[]).code, Some(1), "call: {arguments}");
    }
}

const CHECKED: &str = r#"
toolcrib: 1
tools:
  - name: count
    description: Say the number. Read-only.
    annotations: {read_only: true}
    input: {properties: {n: {type: integer, maximum: 100}}, required: [n]}
    run: {argv: [echo, "n=${args.n}"]}
  - name: find
    description: Find a number. Read-only.
    annotations: {read_only: true}
    input: {properties: {n: {type: number, minimum: 0}}, required: [n]}
    run: {argv: [echo, "${args.n}"]}
  - name: pick
    description: Say the listed number. Read-only.
    annotations: {read_only: true}
    input: {properties: {n: {enum: [1, -5]}}, required: [n]}
    run: {argv: [echo, "n=${args.n}"]}
"#;

#[test]
fn numbers_are_validated_to_the_last_digit() {
    let crib = Crib::new(&[("checked.yaml", CHECKED)]);
    crib.config(&format!("state: {{dir: state}}\nserver: {{token: {TOKEN}}}\n"));
    let served = serve(&crib);
    let called = |tool: &str, number: &str| {
        let body = format!("{{\"arguments\":{{\"n\":{number}}}}}");
        asked(&served.address, &format!("/v1/tools/{tool}/call"), &[], &body)
    };
    for (tool, number) in [
        ("count", "99.00000000000000000001"),
        ("count", "100.00000000000000001"),
        ("count", "1e-400"),
        ("find", "-1e-400"),
        ("find", "-0.00000000000000000000000001"),
        ("pick", "1.00000000000000000001"),
        ("pick", "-5.00000000000000000001"),
    ] {
        let answer = called(tool, number);
        assert!(answer.contains("HTTP/1.1 422"), "{tool} {number}: {answer}");
        assert!(answer.contains("/n") && answer.contains(number), "{tool} {number}: {answer}");
    }
    for (tool, number, said) in [
        ("count", "1e2", "n=100"),
        ("count", "-123456789012345678901", "n=-123456789012345678901"),
        ("find", "-0.0", "\"output\":\"0"),
        ("find", "-0e99999999999999999999", "\"output\":\"0"),
        ("find", "1e-400", "\"output\":\"1e-400"),
        ("pick", "-5.0", "n=-5"),
    ] {
        let answer = called(tool, number);
        assert!(answer.contains("HTTP/1.1 200"), "{tool} {number}: {answer}");
        assert!(answer.contains(said), "{tool} {number}: {answer}");
    }
}
