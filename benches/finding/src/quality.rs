//! How often the tools that answer a question are among the first: on a data set, beside plain BM25.
//!
//! The data set is a folder with two files of JSON lines:
//!
//! | file | a row |
//! |---|---|
//! | `tool_catalog.jsonl` | `{name, description, input_schema, source}` |
//! | `tool_queries.jsonl` | `{id, query, names, pool}`: what somebody asks, the names of the tools that answer it, the `source` of the tools it is asked of |

use std::fs;
use std::path::Path;

use serde_json::Value;
use toolcrib_search::{Document, Index};

use crate::catalogue::Tool;
use crate::plain::Plain;
use crate::random::Random;

/// Recall is measured among so many first names.
pub const CUTS: [usize; 3] = [1, 5, 10];

/// The tools of one source, and what is asked of them.
#[derive(Debug)]
pub struct Pool {
    /// The source.
    pub name: String,
    /// Its tools.
    pub tools: Vec<Tool>,
    /// Its questions.
    pub questions: Vec<Question>,
}

/// Something that is asked.
#[derive(Debug)]
pub struct Question {
    /// What is asked.
    pub text: String,
    /// The names of the tools that answer it.
    pub names: Vec<String>,
    /// Whether the ranking was tuned with it. The others only report.
    pub tuned: bool,
}

/// Recall of one question by ours and by the plain ranking, at each of the [`CUTS`].
#[derive(Debug, Clone, Copy)]
pub struct Recall {
    /// Ours.
    pub ours: [f64; 3],
    /// The plain ranking's.
    pub plain: [f64; 3],
}

/// The pools of a data set. Fails with what is missing.
pub fn read(folder: &Path) -> Result<Vec<Pool>, String> {
    let tools = rows(&folder.join("tool_catalog.jsonl"))?;
    let mut pools: Vec<Pool> = Vec::new();
    for row in rows(&folder.join("tool_queries.jsonl"))? {
        let name = text(&row, "pool");
        let question = Question {
            text: text(&row, "query"),
            names: row["names"].as_array().into_iter().flatten().filter_map(string).collect(),
            tuned: is_tuned(&text(&row, "id")),
        };
        if let Some(pool) = pools.iter_mut().find(|pool| pool.name == name) {
            pool.questions.push(question);
        } else {
            let of_pool = tools.iter().filter(|tool| tool["source"] == name.as_str());
            let tools = of_pool.map(tool).collect();
            pools.push(Pool { name, tools, questions: vec![question] });
        }
    }
    Ok(pools)
}

/// Recall of every question of a pool.
pub fn measure(pool: &Pool) -> Vec<Recall> {
    let documents: Vec<Document> =
        pool.tools.iter().map(|tool| Document::of(&tool.searchable())).collect();
    let index = Index::of(&documents);
    let plain = Plain::new(&pool.tools.iter().map(Tool::plain).collect::<Vec<_>>());
    let recall = |question: &Question| {
        let deep = 64;
        let ours = index.search(&question.text, deep).into_iter().map(|hit| hit.position);
        let plain = plain.search(&question.text, deep).into_iter();
        Recall { ours: recalls(pool, question, ours), plain: recalls(pool, question, plain) }
    };
    pool.questions.iter().map(recall).collect()
}

/// The share of the wanted names among the first different ones.
#[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
fn recalls(pool: &Pool, question: &Question, ranked: impl Iterator<Item = usize>) -> [f64; 3] {
    let mut names: Vec<&str> = Vec::new();
    for position in ranked {
        let name = pool.tools[position].name.as_str();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    CUTS.map(|cut| {
        let first = &names[..names.len().min(cut)];
        let found = question.names.iter().filter(|name| first.contains(&name.as_str())).count();
        found as f64 / question.names.len().max(1) as f64
    })
}

/// The average over some questions, of ours and of the plain ranking, at one of the [`CUTS`].
#[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
pub fn average<'r>(recalls: impl Iterator<Item = &'r Recall> + Clone, cut: usize) -> (f64, f64) {
    let count = recalls.clone().count().max(1) as f64;
    let ours: f64 = recalls.clone().map(|recall| recall.ours[cut]).sum();
    let plain: f64 = recalls.map(|recall| recall.plain[cut]).sum();
    (ours / count, plain / count)
}

/// By how much ours is better than the plain ranking, as a share of it, on the average of the pools at
/// one of the [`CUTS`]; and between which numbers that lies in 95 of 100 drawings of the questions.
pub fn gain(pools: &[Vec<Recall>], cut: usize) -> (f64, [f64; 2]) {
    let relative = |pools: &[Vec<Recall>]| {
        let averages: Vec<_> = pools.iter().map(|pool| average(pool.iter(), cut)).collect();
        let ours: f64 = averages.iter().map(|(ours, _)| ours).sum();
        let plain: f64 = averages.iter().map(|(_, plain)| plain).sum();
        ours / plain - 1.0
    };
    let mut random = Random::new(2026);
    let mut drawn: Vec<f64> = (0..2_000)
        .map(|_| {
            let again = |pool: &Vec<Recall>| -> Vec<Recall> {
                pool.iter().map(|_| *random.of(pool)).collect()
            };
            relative(&pools.iter().map(again).collect::<Vec<_>>())
        })
        .collect();
    drawn.sort_by(f64::total_cmp);
    (relative(pools), [drawn[drawn.len() / 40], drawn[drawn.len() - 1 - drawn.len() / 40]])
}

/// One half of the questions, by a hash of their ids.
fn is_tuned(id: &str) -> bool {
    let hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    hash >> 32 & 1 == 0
}

fn rows(file: &Path) -> Result<Vec<Value>, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let row = |(at, line): (usize, &str)| {
        let place = || format!("{}:{}", file.display(), at + 1);
        serde_json::from_str(line).map_err(|error| format!("{}: {error}", place()))
    };
    text.lines().enumerate().map(row).collect()
}

fn tool(row: &Value) -> Tool {
    let properties = row["input_schema"]["properties"].as_object();
    let parameters = properties.into_iter().flatten();
    Tool {
        name: text(row, "name"),
        description: text(row, "description"),
        parameters: parameters
            .map(|(name, schema)| (name.clone(), text(schema, "description")))
            .collect(),
    }
}

fn text(row: &Value, key: &str) -> String {
    string(&row[key]).unwrap_or_default()
}

fn string(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}
