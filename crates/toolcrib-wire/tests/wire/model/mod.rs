//! Requests to models and their answers.

mod anthropic;
mod chat;
mod conversation;
mod cuts;
mod limits;
mod responses;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use toolcrib_tool::ToolResult;
use toolcrib_wire::model::{
    Answer, DecoderSettings, Item, ModelError, ModelEvent, ModelItem, StreamDecoder, View, Wire,
};

/// The recorded streams of a wire, with their names; they are the seeds of its fuzz target, too.
fn recordings(wire: Wire) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder(wire))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sse"))
        .collect();
    files.sort();
    let name = |path: &PathBuf| path.file_stem().unwrap().to_string_lossy().into_owned();
    files.iter().map(|path| (name(path), fs::read(path).unwrap())).collect()
}

fn recording(wire: Wire, name: &str) -> Vec<u8> {
    fs::read(folder(wire).join(format!("{name}.sse"))).unwrap()
}

fn folder(wire: Wire) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../fuzz/seeds/{wire}_stream"))
}

fn settings() -> DecoderSettings {
    let mut settings = DecoderSettings::new("test/m");
    settings.call_id_prefix.replace_range(.., "made");
    settings
}

/// What a stream in these pieces reports, and how it ends.
fn decode<'a>(
    wire: Wire,
    pieces: impl IntoIterator<Item = &'a [u8]>,
    settings: DecoderSettings,
) -> (Vec<ModelEvent>, Result<Answer, ModelError>) {
    let mut decoder = StreamDecoder::new(wire, settings);
    let mut events = Vec::new();
    for piece in pieces {
        if let Err(error) = decoder.push(piece, &mut events) {
            assert_eq!(decoder.push(b"data: {}\n\n", &mut events), Err(error.clone()));
            return (events, Err(error));
        }
    }
    let answer = decoder.finish(&mut events);
    (events, answer)
}

/// The answer of a recording.
fn answer(wire: Wire, name: &str) -> Answer {
    decode(wire, [&*recording(wire, name)], settings()).1.unwrap()
}

/// The error of a recording.
fn error(wire: Wire, name: &str) -> ModelError {
    decode(wire, [&*recording(wire, name)], settings()).1.unwrap_err()
}

/// The calls as `id name arguments`.
fn calls(answer: &Answer) -> Vec<String> {
    let shown = answer.calls().map(|call| format!("{} {} {}", call.id, call.name, call.arguments));
    shown.collect()
}

fn reasoning(answer: &Answer) -> Option<&str> {
    answer.items.iter().find_map(|item| match item.view() {
        View::Reasoning { text } => Some(text.as_str()),
        _ => None,
    })
}

fn result(id: &str) -> Item {
    ToolResult::success(id.into(), "weather", "sunny".into(), Duration::ZERO).into()
}

fn items(items: Vec<ModelItem>) -> Vec<Item> {
    items.into_iter().map(Item::from).collect()
}
