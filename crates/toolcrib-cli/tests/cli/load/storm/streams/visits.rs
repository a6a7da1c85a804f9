//! What a client does with one response.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_testkit::model_server::{Fault, ModelServer, Reply};
use toolcrib_testkit::served::{Dialect, check_events};

use super::super::Listening;
use super::client::{Events, finished, is_whole, number};
use super::ledger::{End, Ledger, text_of};

/// Bytes that the model sends at once, so that its answer takes some time.
const PIECE: usize = 200;

/// The models, which are given an answer before each request.
pub(super) struct Script {
    /// Answers with texts.
    pub(super) texts: ModelServer,
    /// Calls `mark`, and then answers with a text.
    pub(super) calls: ModelServer,
    /// Calls `nap`.
    pub(super) naps: ModelServer,
    /// How long a nap takes: a number that no other process has.
    pub(super) nap: String,
}

impl Script {
    fn number() -> usize {
        static LAST: AtomicUsize = AtomicUsize::new(0);
        LAST.fetch_add(1, Ordering::Relaxed)
    }

    fn answer() -> Reply {
        Reply::text(text_of(Self::number())).with_fault(Fault::Pieces(PIECE))
    }
}

/// One response, in the way that is the turn of this visit.
pub(super) fn visit(
    server: &Listening,
    script: &Script,
    ledger: &Ledger,
    visit: usize,
) -> Result<(), String> {
    // How many events are read before the client leaves.
    let early = visit.wrapping_mul(7919) % 40;
    match visit % 8 {
        0 => {
            let events = all(server, &asked(script, ledger, json!({})), usize::MAX)?.0;
            ledger.enter(&check_events(Dialect::OpenAi, &events)?.response)?;
        }
        1 | 2 => returning(server, ledger, &asked(script, ledger, json!({})), early)?,
        3 => returning(server, ledger, &asked(script, ledger, json!({"background": true})), early)?,
        4 => cancelling(server, ledger, &asked(script, ledger, json!({})), early)?,
        5 => unstored(server, ledger, &asked(script, ledger, json!({"store": false})), early)?,
        6 => {
            let number = Script::number();
            script.calls.push(Reply::call("mark", json!({"number": format!("call-{number}")})));
            script.calls.push(Script::answer());
            let ask = json!({"model": "marker", "input": "Mark.", "stream": true});
            returning(server, ledger, &ask, early)?;
        }
        _ => sleeping(server, script, ledger)?,
    }
    Ok(())
}

/// A request of the bare model.
fn asked(script: &Script, ledger: &Ledger, also: Value) -> Value {
    script.texts.push(Script::answer());
    ledger.asks_the_model();
    let mut ask = json!({"model": "texts/scripted", "input": "Answer.", "stream": true});
    if let (Some(ask), Value::Object(also)) = (ask.as_object_mut(), also) {
        ask.extend(also);
    }
    ask
}

/// The first events of a new response, its path, and the stream unless it is over.
fn begun(
    server: &Listening,
    ask: &Value,
    count: usize,
) -> Result<(Vec<Value>, String, Option<Events>), String> {
    let (mut stream, mut events) = (Events::open(server, "POST /v1/responses", ask)?, Vec::new());
    let is_open = stream.read(&mut events, count.max(1))?;
    let id = events.first().and_then(|event| event["response"]["id"].as_str());
    let path = format!("/v1/responses/{}", id.ok_or("the first event has no response")?);
    Ok((events, path, is_open.then_some(stream)))
}

/// All events of a new response, and its path.
fn all(server: &Listening, ask: &Value, count: usize) -> Result<(Vec<Value>, String), String> {
    let (events, path, open) = begun(server, ask, count)?;
    if open.is_some() { Err("the stream has no end".to_owned()) } else { Ok((events, path)) }
}

/// Hangs up, comes back, hangs up, and stays then.
fn returning(server: &Listening, ledger: &Ledger, ask: &Value, early: usize) -> Result<(), String> {
    let (mut events, path, _) = begun(server, ask, early)?;
    for count in [early, usize::MAX] {
        // At once, or when some of the rest has been said.
        std::thread::sleep(Duration::from_millis([0, 0, 20, 200][early % 4]));
        let after = events.last().map(number).ok_or("no events")??;
        let line = format!("GET {path}?stream=true&starting_after={after}");
        let mut stream = Events::open(server, &line, &Value::Null)?;
        if !stream.read(&mut events, count)? {
            if !stream.is_done {
                return Err(format!("{path}: the stream broke after {:?}", events.last()));
            }
            break;
        }
    }
    let whole = is_whole(&events).map_err(|problem| format!("{path}: {problem}"))?;
    let response = if whole {
        check_events(Dialect::OpenAi, &events)
            .map_err(|problem| format!("{path}: {problem}"))?
            .response
    } else {
        // The log of a response that ended is forgotten some time later: its items come back whole.
        finished(&events).map_err(|problem| format!("{path}: {problem}"))?.clone()
    };
    ledger.returned(whole);
    let shown = get(server, &path)?;
    if shown["output"] != response["output"] {
        return Err(format!("{path}: {shown} is not {response}"));
    }
    match ledger.enter(&response)? {
        End::Completed => Ok(()),
        End::Cancelled => Err(format!("{path}: nobody cancelled it")),
    }
}

/// Cancels over another connection and reads the stream to its end.
fn cancelling(
    server: &Listening,
    ledger: &Ledger,
    ask: &Value,
    early: usize,
) -> Result<(), String> {
    let (mut events, path, open) = begun(server, ask, early)?;
    let is_cancelled = cancel(server, &path)?;
    if let Some(mut stream) = open {
        while stream.read(&mut events, 1)? {}
        if !stream.is_done {
            return Err(format!("{path}: the stream broke after {:?}", events.last()));
        }
    }
    is_whole(&events).map_err(|problem| format!("{path}: {problem}"))?;
    let end = ledger.enter(&get(server, &path)?)?;
    if is_cancelled == (end == End::Cancelled) {
        Ok(())
    } else {
        Err(format!("{path}: cancelled {is_cancelled}, and it is {end:?}"))
    }
}

/// Hangs up on a response that is not stored: it is over, and nobody has it.
fn unstored(server: &Listening, ledger: &Ledger, ask: &Value, early: usize) -> Result<(), String> {
    let (events, path, stream) = begun(server, ask, early)?;
    is_whole(&events).map_err(|problem| format!("{path}: {problem}"))?;
    drop(stream);
    let reply = server.connection().ask(&format!("GET {path}"), &[], &Value::Null);
    let reply = reply.map_err(|error| format!("{path}: {error}"))?;
    if reply.status != 404 {
        return Err(format!("{path}: {reply:?}"));
    }
    ledger.unstored();
    Ok(())
}

/// Cancels a response in the background while it waits for a program, or before.
fn sleeping(server: &Listening, script: &Script, ledger: &Ledger) -> Result<(), String> {
    script.naps.push(Reply::call("nap", json!({"seconds": script.nap})));
    let ask = json!({"model": "sleeper", "input": "Sleep.", "background": true});
    let reply = server.connection().ask("POST /v1/responses", &[], &ask);
    let reply = reply.map_err(|error| format!("POST /v1/responses: {error}"))?;
    let id = reply.body["id"].as_str().ok_or_else(|| format!("no response: {reply:?}"))?;
    let path = format!("/v1/responses/{id}");
    std::thread::sleep(Duration::from_millis([0, 50, 200, 500][Script::number() % 4]));
    if !cancel(server, &path)? {
        return Err(format!("{path}: it cannot be over"));
    }
    match ledger.enter(&get(server, &path)?)? {
        End::Cancelled => Ok(()),
        End::Completed => Err(format!("{path}: it was cancelled")),
    }
}

/// Whether the response was cancelled; otherwise it was over.
fn cancel(server: &Listening, path: &str) -> Result<bool, String> {
    let reply = server.connection().ask(&format!("POST {path}/cancel"), &[], &Value::Null);
    let reply = reply.map_err(|error| format!("{path}/cancel: {error}"))?;
    match (reply.status, reply.body["status"].as_str(), reply.body["error"]["code"].as_str()) {
        (200, Some("cancelled"), _) => Ok(true),
        // Over before, or while it was being cancelled.
        (409, _, Some("already_over")) | (200, Some("completed"), _) => Ok(false),
        _ => Err(format!("{path}/cancel: {reply:?}")),
    }
}

fn get(server: &Listening, path: &str) -> Result<Value, String> {
    let reply = server.connection().ask(&format!("GET {path}"), &[], &Value::Null);
    let reply = reply.map_err(|error| format!("{path}: {error}"))?;
    if reply.status == 200 { Ok(reply.body) } else { Err(format!("{path}: {reply:?}")) }
}
