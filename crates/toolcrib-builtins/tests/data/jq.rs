//! Queries: jq's answers, and limits that hold whatever the program does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::json;
use toolcrib_tool::{BoxFuture, CallContext, CallHost, ErrorKind};

use crate::harness::{call, call_in, context, data, fails, jq, text, within};

/// Every query ends within this time: its limit of two seconds, plus the time to stop.
const LIMIT: Duration = Duration::from_secs(5);

const ITEMS: &str =
    r#"{"items":[{"id":1,"name":"b","n":5.5},{"id":2,"name":"a","n":20}],"total":2}"#;

#[test]
fn answers_are_those_of_jq() {
    let table = [
        (".items[].id", "1\n2"),
        (".items | map(.name) | sort", r#"["a","b"]"#),
        (".items[] | select(.n > 10) | .name", r#""a""#),
        ("[.items[] | {id, double: (.n * 2)}]", r#"[{"id":1,"double":11},{"id":2,"double":40}]"#),
        ("keys", r#"["items","total"]"#),
        (".missing.deeper", "null"),
        (".items[-1].id, (.items | length)", "2\n2"),
        (".items | map({(.name): .id}) | add", r#"{"b":1,"a":2}"#),
        ("reduce .items[] as $i (0; . + $i.n)", "25.5"),
        (".items |= map(.id) | .items", "[1,2]"),
        ("del(.items[0]) | .items | length", "1"),
        (".new.path = 1 | .new", r#"{"path":1}"#),
        ("[paths(type == \"number\")] | length", "5"),
        (".items | group_by(.n > 10) | map(length)", "[1,1]"),
        (".items | min_by(.n).name", r#""b""#),
        ("to_entries | map(.key)", r#"["items","total"]"#),
        ("with_entries(select(.key == \"total\"))", r#"{"total":2}"#),
        ("[.. | numbers]", "[1,5.5,2,20,2]"),
        ("try error(\"x\") catch .", r#""x""#),
        (".items[0] as {name: $n} | $n", r#""b""#),
        ("[limit(3; repeat(1))]", "[1,1,1]"),
        ("[1 | while(. < 50; . * 2)]", "[1,2,4,8,16,32]"),
        ("1 | until(. > 1000; . * 2)", "1024"),
        ("[recurse(if . < 2 then . + 1 else empty end)] | length", "1"),
        ("def inc: . + 1; [.items[].id | inc]", "[2,3]"),
        ("def f(g): g | g; 2 | f(. * .)", "16"),
        (r#""a,b" | split(",")"#, r#"["a","b"]"#),
        (r#""xay1" | test("[0-9]")"#, "true"),
        (r#""aXbX" | gsub("X"; "-")"#, r#""a-b-""#),
        (r#""2024-05" | capture("(?<y>\\d+)-(?<m>\\d+)")"#, r#"{"y":"2024","m":"05"}"#),
        (r#"[1,"a\"b",null,true] | @csv"#, r#""1,\"a\"\"b\",,true""#),
        (r#""é" | @uri, length, utf8bytelength"#, "\"%C3%A9\"\n1\n2"),
        ("[3,1,2] | sort | .[1:]", "[2,3]"),
        (r#""héllo" | .[1:3]"#, r#""él""#),
        (r#"{"a":{"b":1}} * {"a":{"c":2}}"#, r#"{"a":{"b":1,"c":2}}"#),
        ("[1,2,3] - [2]", "[1,3]"),
        ("1 / 4, 6 / 3, 7 % 3, -7 % 3", "0.25\n2\n1\n-1"),
        (r#""3" | tonumber + 1"#, "4"),
        ("[nan, 1, null] | sort", "[null,null,1]"),
        ("nan < nan, (nan | isnan), infinite", "true\ntrue\n1.7976931348623157e308"),
        (r#"[{"a":1,"b":2}] | INDEX(.a)"#, r#"{"1":{"a":1,"b":2}}"#),
        ("1000000 | todate", r#""1970-01-12T13:46:40Z""#),
        ("[[1,2],[3,4]] | transpose", "[[1,3],[2,4]]"),
        ("[1,[2,[3]]] | flatten", "[1,2,3]"),
        ("tojson | fromjson | .total", "2"),
        ("getpath([\"items\",0,\"id\"])", "1"),
        ("null | .[2] = 1", "[null,null,1]"),
        ("empty", "(no results)"),
        ("label $out | 1, break $out, 2", "1"),
        ("first(range(10)), isempty(empty), any(.items[]; .id == 2)", "0\ntrue\ntrue"),
        ("[.items[] | .n] | add / length", "12.75"),
        (".items[0].name | ascii_upcase | ltrimstr(\"B\")", r#""""#),
    ];
    for (query, expected) in table {
        assert_eq!(text("json_process", &jq(ITEMS, query)), expected, "{query}");
    }
}

#[test]
fn results_come_as_lines_and_as_data() {
    let found = data("json_process", &jq(ITEMS, ".items[].name"));
    assert_eq!(found, json!({"results": ["b", "a"], "count": 2}));
}

#[test]
fn numbers_pass_through_as_they_are_written() {
    let input =
        "[100000000000000000000, 0.1, 3.0, 1e3, 1.234567890123456789, -0, 9007199254740993]";
    let expected = "[100000000000000000000,0.1,3,1000,1.234567890123456789,-0,9007199254740993]";
    assert_eq!(text("json_process", &jq(input, ".")), expected);
    let sorted = "[9007199254740992,9007199254740993.0,9007199254740993]";
    assert_eq!(call("json_process", &jq(sorted, "sort | length")).unwrap().text(), "3");
}

#[test]
fn an_invalid_program_is_the_models_mistake() {
    let table = [
        (".a |", "at its end"),
        (".a ] b", "character 4"),
        ("nosuch", "no filter `nosuch`"),
        ("$x", "no variable `$x`"),
        ("\"abc", "not a valid jq program"),
        ("def f: 1 + f; f", "recursive"),
        ("def f: def g: f; g; f", "recursive"),
        ("[1,2] | map(def r($n): if $n == 0 then 0 else r($n - 1) end; r(.))", "recursive"),
        ("\"\\(def f: f; f)\"", "recursive"),
        (". as {(def f: f; f): $x} | $x", "recursive"),
        ("import \"a\" as a; .", "not a valid jq program"),
        ("include \"a\"; .", "not a valid jq program"),
        ("module {}; def f: f; f", "not a valid jq program"),
    ];
    for (query, says) in table {
        fails("json_process", &jq("{}", query), ErrorKind::InvalidArgs, says);
    }
    fails("json_process", &jq("{}", &".".repeat(4_001)), ErrorKind::InvalidArgs, "4000");
    let deep = "[".repeat(1_000) + &"]".repeat(1_000);
    fails("json_process", &jq("{}", &deep), ErrorKind::InvalidArgs, "brackets");
}

#[test]
fn a_query_that_fails_says_why_and_what_it_had_yielded() {
    let error = call("json_process", &jq(ITEMS, ".items[].id, .total[0]")).expect_err("a failure");
    assert_eq!(error.kind(), ErrorKind::Execution);
    assert_eq!(error.message(), "jq: cannot index 2 with 0");
    assert_eq!(error.partial().unwrap().text(), "1\n2");
    fails("json_process", &jq("0", "1 / 0"), ErrorKind::Execution, "divisor is zero");
    let long = json!("x".repeat(100_000)).to_string();
    let error = call("json_process", &jq(&long, ".[0]")).expect_err("a failure");
    assert!(error.message().len() < 200, "{}", error.message().len());
}

#[test]
fn a_query_sees_nothing_of_its_host() {
    let outside = [
        "env",
        "$ENV",
        "$ENV.PATH",
        "now",
        "input",
        "inputs",
        "input_filename",
        "halt",
        "halt_error",
        "halt(1)",
        "debug",
        "stderr",
        "localtime",
        "get_search_list",
        "$__prog_args",
        "strflocaltime(\"%Z\")",
        "input_line_number",
    ];
    for query in outside {
        fails("json_process", &jq("{}", query), ErrorKind::InvalidArgs, "there is no");
    }
}

#[test]
fn endless_and_exploding_queries_are_stopped() {
    let wide = format!("[{}]", "try ".repeat(990));
    let piped = format!(".{}", "|.".repeat(1_900));
    let negated = format!("{}1", "-".repeat(3_900));
    let closures = format!("def f(g): g | g; {}.{}", "f(".repeat(90), ")".repeat(90));
    let endless = [
        "repeat(1)",
        "last(repeat(1))",
        "[repeat(1)]",
        "first(repeat(empty))",
        "until(false; .)",
        "[while(true; .)] | length",
        "last(range(infinite))",
        "[range(infinite)]",
        "range(0; 1; 0)",
        "[limit(1e18; range(infinite))] | length",
        "first(skip(1e18; range(infinite)))",
        "0 | last(recurse(. + 1))",
        "reduce range(infinite) as $i (0; . + $i)",
        "last(foreach range(infinite) as $i (0; . + 1))",
        "reduce range(1e9) as $i (0; ., 1)",
        "reduce range(1e9) as $i (\"x\"; . + .)",
        "reduce range(1e9) as $i ([0]; . + .)",
        "reduce range(1e9) as $i ([0]; [., .])",
        "reduce range(100) as $i ([0]; [., .]) | tojson",
        "reduce range(100) as $i ([0]; [., .]) | flatten",
        "reduce range(100) as $i ([0]; [., .]) | . == (reduce range(100) as $j ([0]; [., .]))",
        "reduce range(100) as $i ([0]; [., .]) | [..] | length",
        "reduce range(100) as $i ([0]; [., .]) | walk(.)",
        "reduce range(100) as $i ([0]; [., .])",
        "reduce range(100) as $i ([0]; [., .]) | error",
        "reduce range(1e6) as $i (null; [.])",
        "reduce range(1e6) as $i (null; {a: .})",
        "\"x\" * 1e12",
        "\"x\" * 1e6 | [., ., ., .] | map([limit(1000; repeat(.))]) | map(add) | add",
        "[limit(100000; repeat([range(10000)]))] | length",
        "null | .[1e15] = 1",
        "[1, 2] | sort_by(repeat(1))",
        "[1, 2] | group_by(range(infinite))",
        "[1, 2] | min_by(range(infinite))",
        "[range(100)] | combinations(100)",
        "[range(20)] | [.[] as $a | .[] as $b | .[] as $c | .[] as $d | .[] as $e | .[] as $f | 1] | length",
        "try repeat(1) catch 1 | empty",
        "last(try range(infinite) catch 1)",
        "\"a\" * 100000 | [match(\"(a*)*b|a\"; \"g\")] | length",
        "\"a\" * 1000000 | gsub(\"\"; \"xyz\") | gsub(\"\"; \"xyz\")",
        "[limit(1e7; repeat(\"abc\"))] | join(\",\")",
        "path(repeat(.a))",
        "label $f | repeat(., 1) | if . == 2 then break $f else empty end",
        "isempty(repeat(empty))",
        "repeat(.[]?) | empty",
        "{} | until(.a == 1e12; .a += 1)",
        &closures,
        &wide,
    ];
    let definition = context("json_process").definition().clone();
    for query in endless {
        // Most would exceed their own limits later; here the call's deadline comes first.
        let deadline = Instant::now() + Duration::from_millis(300);
        let cx = CallContext::builder("call_1", definition.clone()).deadline(deadline).build();
        let outcome = within(LIMIT, query, || call_in(&cx, &jq("0", query)));
        match outcome {
            Err(error) => assert!(!error.hints().is_empty(), "{query}: {error:?}"),
            Ok(output) => panic!("{query} ends: {:.80}", output.text()),
        }
    }
    for harmless in [piped, negated] {
        let _ = within(LIMIT, &harmless, || call("json_process", &jq("0", &harmless)));
    }
}

#[test]
fn a_query_has_limits_of_its_own() {
    let table = [
        "until(false; .)",
        "last(range(infinite))",
        "reduce range(1e9) as $i (0; ., 1)",
        "[range(infinite)]",
        "reduce range(100) as $i ([0]; [., .]) | tojson",
    ];
    for query in table {
        fails_within_limit(query, "");
    }
    fails_within_limit("\"x\" * 1e12", "fits in memory");
    fails_within_limit("reduce range(200) as $i (null; [.])", "120 deep");
}

#[track_caller]
fn fails_within_limit(query: &str, says: &str) {
    within(LIMIT, query, || {
        fails("json_process", &jq("0", query), ErrorKind::Execution, says);
    });
}

#[test]
fn too_many_results_are_refused_with_what_to_do() {
    let error = call("json_process", &jq("0", "range(10001)")).expect_err("too many");
    assert!(error.message().contains("10000 results"), "{error:?}");
    assert_eq!(
        call("json_process", &jq("0", "range(10000)")).unwrap().text().lines().count(),
        10_000
    );
    fails("json_process", &jq("0", "\"x\" * 2000000"), ErrorKind::Execution, "1048576 bytes");
}

#[test]
fn a_query_over_a_large_text_is_answered() {
    let item = r#"{"id":7,"name":"some name","tags":["a","b"],"price":12.5}"#;
    // Unoptimised code is much slower than a release build.
    let items = if cfg!(debug_assertions) { 2_000 } else { 60_000 };
    let large = format!("[{}{item}]", format!("{item},").repeat(items - 1));
    let asked = jq(&large, "map(select(.price > 10) | {id, tag: .tags[0]}) | length");
    assert_eq!(text("json_process", &asked), items.to_string());
}

/// A call that can be cancelled.
struct Flag(Arc<AtomicBool>);
impl CallHost for Flag {
    fn cancelled(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
    fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[test]
fn a_query_ends_at_the_calls_deadline_and_when_it_is_cancelled() {
    let definition = context("json_process").definition().clone();
    let asked = jq("0", "until(false; .)");
    let deadline = Instant::now() + Duration::from_millis(100);
    let cx = CallContext::builder("call_1", definition.clone()).deadline(deadline).build();
    let outcome = within(Duration::from_secs(1), "the deadline", || call_in(&cx, &asked));
    assert_eq!(outcome.expect_err("stopped").message(), "it took too long");

    let flag = Arc::new(AtomicBool::new(false));
    let cx =
        CallContext::builder("call_2", definition).host(Arc::new(Flag(Arc::clone(&flag)))).build();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(100));
            flag.store(true, Ordering::Relaxed);
        });
        let outcome = within(Duration::from_secs(1), "cancelling", || call_in(&cx, &asked));
        assert_eq!(outcome.expect_err("stopped").kind(), ErrorKind::Cancelled);
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn no_program_makes_it_panic_or_hang(
        parts in prop::collection::vec(
            prop::sample::select(vec![
                ".", "..", "[", "]", "(", ")", "{", "}", "|", ",", ":", ";", "?", "//", "-", "*",
                "+", "/", "%", "|=", "=", "==", "<", " as $x ", "$x", "\"a\"", "0", "1", "1e9",
                "range(9)", "repeat(1)", "map(.)", "sort", "add", "length", "tojson", ".a", ".[0]",
                ".[]", ".[1:]", "try ", "reduce ", "foreach ", "if . then . else . end", "limit(2; .)",
                "path(..)", "del(.[0])", "to_entries", "flatten", "test(\"a\")", "explode",
                "implode", "split(\"a\")", "tonumber", "first", "label $f", "break $f", "nan", "@csv",
            ]),
            0..10,
        ),
    ) {
        let query = parts.concat();
        let asked = jq(r#"{"a":[1,"b",null,{"c":[]}],"é":-0.5}"#, &query);
        if let Err(error) = within(LIMIT, &query, || call("json_process", &asked)) {
            prop_assert_ne!(error.kind(), ErrorKind::Panic);
        }
    }
}
