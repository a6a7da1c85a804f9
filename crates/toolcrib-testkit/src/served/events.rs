//! Server-sent events, read as strictly as the strictest client does.

use serde_json::Value;

/// The events of a stream of responses: each is one `event` line and one `data` line, and the last line is `[DONE]`.
pub(super) fn named_events(stream: &str) -> Result<Vec<Value>, String> {
    let rest = stream
        .strip_suffix("data: [DONE]\n\n")
        .ok_or_else(|| "the stream must end with `data: [DONE]`".to_owned())?;
    let mut events = Vec::new();
    for frame in frames(rest)? {
        let lines: Vec<&str> = frame.split('\n').collect();
        let &[event, data] = lines.as_slice() else {
            return Err(format!("an event must have two lines: {frame:?}"));
        };
        let name = event
            .strip_prefix("event: ")
            .ok_or_else(|| format!("the first line must be the event's name: {frame:?}"))?;
        let value = data_of(data)?;
        if value["type"] != name {
            return Err(format!("the name {name:?} is not the type of {data}"));
        }
        events.push(value);
    }
    Ok(events)
}

/// The chunks of a stream of chat completions, and whether the last line is `[DONE]`.
pub(super) fn plain_events(stream: &str) -> Result<(Vec<Value>, bool), String> {
    let (rest, is_done) = match stream.strip_suffix("data: [DONE]\n\n") {
        Some(rest) => (rest, true),
        None => (stream, false),
    };
    let events = frames(rest)?.into_iter().map(data_of).collect::<Result<_, _>>()?;
    Ok((events, is_done))
}

fn frames(stream: &str) -> Result<Vec<&str>, String> {
    if stream.is_empty() {
        return Ok(Vec::new());
    }
    let stream = stream
        .strip_suffix("\n\n")
        .ok_or_else(|| "the last event must end with an empty line".to_owned())?;
    Ok(stream.split("\n\n").collect())
}

fn data_of(line: &str) -> Result<Value, String> {
    let data = line
        .strip_prefix("data: ")
        .ok_or_else(|| format!("the line must begin with `data: `: {line:?}"))?;
    serde_json::from_str(data).map_err(|error| format!("the data is not JSON: {error}: {data}"))
}
