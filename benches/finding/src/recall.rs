//! How often the tools that answer a question are among the first, beside plain BM25 over the same texts.
//!
//! Two files of JSON lines:
//!
//! | file | a row |
//! |---|---|
//! | tools | `{name, description, input_schema, source}` |
//! | questions | `{query, names, pool}`: what somebody asks, the names of the tools that answer it, and the `source` of the tools among which they are sought; all tools, if no tool has this source |

use std::fs;
use std::path::Path;

use serde_json::Value;
use toolcrib_search::{Document, Index, Weights};

use crate::catalogue::Tool;
use crate::plain::Plain;

/// Tools are sought among so many first names.
pub const CUTS: [usize; 3] = [1, 5, 10];

/// The place of 5 among the [`CUTS`].
pub const AT_FIVE: usize = 1;

/// So many hits are asked for, because several tools may have one name.
const DEEP: usize = 64;

/// The tools of one source, and what is asked of them.
#[derive(Debug)]
pub struct Pool {
    /// The source.
    pub name: String,
    /// What is asked.
    pub questions: Vec<Question>,
    tools: Vec<Tool>,
    documents: Vec<Document>,
}

/// Something that is asked.
#[derive(Debug, Clone)]
pub struct Question {
    text: String,
    /// The names of the tools that answer it.
    pub names: Vec<String>,
}

/// How many of a question's tools are not among the first, for each of the [`CUTS`].
pub type Missed = [usize; CUTS.len()];

/// The pools of two files. Fails with what is missing.
pub fn read(tools: &Path, questions: &Path) -> Result<Vec<Pool>, String> {
    let tools = rows(tools)?;
    let mut pools: Vec<Pool> = Vec::new();
    for row in rows(questions)? {
        let name = text(&row, "pool");
        let question = Question {
            text: text(&row, "query"),
            names: row["names"].as_array().into_iter().flatten().filter_map(string).collect(),
        };
        if let Some(pool) = pools.iter_mut().find(|pool| pool.name == name) {
            pool.questions.push(question);
        } else {
            let mut of_pool: Vec<Tool> =
                tools.iter().filter(|tool| tool["source"] == name.as_str()).map(tool).collect();
            if of_pool.is_empty() {
                of_pool = tools.iter().map(tool).collect();
            }
            let documents = of_pool.iter().map(|tool| Document::of(&tool.searchable())).collect();
            pools.push(Pool { name, questions: vec![question], tools: of_pool, documents });
        }
    }
    Ok(pools)
}

/// The same questions, each asked of the tools of all pools.
pub fn among_all(pools: &[Pool]) -> Vec<Pool> {
    let tools: Vec<Tool> = pools.iter().flat_map(|pool| &pool.tools).cloned().collect();
    let documents: Vec<Document> = pools.iter().flat_map(|pool| &pool.documents).cloned().collect();
    let among_all = |pool: &Pool| Pool {
        name: pool.name.clone(),
        questions: pool.questions.clone(),
        tools: tools.clone(),
        documents: documents.clone(),
    };
    pools.iter().map(among_all).collect()
}

impl Pool {
    /// How many tools there are.
    pub fn tools(&self) -> usize {
        self.tools.len()
    }

    /// What ours misses of each question.
    pub fn ours(&self, weights: Weights) -> Vec<Missed> {
        let index = Index::with_weights(&self.documents, weights);
        let search = |question: &Question| {
            let hits = index.search(&question.text, DEEP);
            self.missed(question, hits.into_iter().map(|hit| hit.position))
        };
        self.questions.iter().map(search).collect()
    }

    /// What plain BM25 misses of each question.
    pub fn plain(&self) -> Vec<Missed> {
        let plain = Plain::new(&self.tools.iter().map(Tool::plain).collect::<Vec<_>>());
        let search = |question: &Question| {
            self.missed(question, plain.search(&question.text, DEEP).into_iter())
        };
        self.questions.iter().map(search).collect()
    }

    fn missed(&self, question: &Question, ranked: impl Iterator<Item = usize>) -> Missed {
        let mut names: Vec<&str> = Vec::new();
        for position in ranked {
            let name = self.tools[position].name.as_str();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        CUTS.map(|cut| {
            let first = &names[..names.len().min(cut)];
            question.names.iter().filter(|name| !first.contains(&name.as_str())).count()
        })
    }
}

fn rows(file: &Path) -> Result<Vec<Value>, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let row = |(at, line): (usize, &str)| {
        let place = || format!("{}:{}", file.display(), at + 1);
        serde_json::from_str(line).map_err(|error| format!("{}: {error}", place()))
    };
    text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(row).collect()
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
