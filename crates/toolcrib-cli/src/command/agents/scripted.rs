//! A model that answers from a file, to try things without a provider.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use serde_json::Value;
use toolcrib::agent::model::{ScriptedModel, ScriptedTurn};

/// How `--model` names it.
pub(super) const PREFIX: &str = "scripted:";

/// Reads a script: a JSON list of `{"text": …}` and `{"call": TOOL, "arguments": {…}}`. The first `answered` answers
/// are left out.
pub(super) fn model(path: &str, answered: usize) -> anyhow::Result<ScriptedModel> {
    let text = fs::read_to_string(Path::new(path))
        .with_context(|| format!("reading the script {path}"))?;
    let turns: Vec<Value> = serde_json::from_str(&text)
        .with_context(|| format!("the script {path} is not a JSON list of answers"))?;
    let turns = turns.iter().skip(answered).map(turn).collect::<anyhow::Result<Vec<_>>>();
    Ok(ScriptedModel::new(turns.with_context(|| format!("the script {path}"))?))
}

fn turn(answer: &Value) -> anyhow::Result<ScriptedTurn> {
    if let Some(text) = answer["text"].as_str() {
        return Ok(ScriptedTurn::text(text));
    }
    let Some(tool) = answer["call"].as_str() else {
        bail!(
            "an answer is {{\"text\": …}} or {{\"call\": TOOL, \"arguments\": {{…}}}}, got {answer}"
        );
    };
    let arguments = match &answer["arguments"] {
        Value::Null => Value::Object(serde_json::Map::new()),
        arguments => arguments.clone(),
    };
    Ok(ScriptedTurn::call(tool, arguments))
}
