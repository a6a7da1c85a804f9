//! The search for tools as contenders: ours, plain BM25, the crate `bm25`, tantivy.

use std::hint::black_box;
use std::time::Instant;

use bm25::{EmbedderBuilder, Scorer, Tokenizer};
use tantivy::collector::TopDocs;
use tantivy::query::BooleanQuery;
use tantivy::schema::{IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::{PreTokenizedString, Token};
use tantivy::{Index as Tantivy, TantivyDocument, TantivyError, Term};
use toolcrib_rounds::Contender;
use toolcrib_search::{Document, Index};

use crate::catalogue::{Tool, catalogue, questions};
use crate::plain::{Plain, words};

/// The first so many are asked for.
const FIRST: usize = 10;

/// A search of so many tools, with questions of so many sentences.
pub fn searches(tools: usize, sentences: usize) -> Vec<Contender> {
    let tools = catalogue(tools);
    let documents: Vec<Document> =
        tools.iter().map(|tool| Document::of(&tool.searchable())).collect();
    let index = Index::of(&documents);
    let texts: Vec<String> = tools.iter().map(Tool::plain).collect();
    let plain = Plain::new(&texts);
    let all = [
        asked("ours", sentences, move |question| index.search(question, FIRST).len()),
        asked("plain BM25", sentences, move |question| plain.search(question, FIRST).len()),
        asked("bm25 (crate)", sentences, bm25_crate(&texts)),
        asked("tantivy", sentences, tantivy(&texts).expect("an index in memory")),
    ];
    all.into()
}

/// An index of so many tools: ours of documents that are there (`ours`: what a reload costs), and with
/// all of them read (`ours, all read`).
pub fn indexing(tools: usize) -> Vec<Contender> {
    let tools = catalogue(tools);
    let documents: Vec<Document> =
        tools.iter().map(|tool| Document::of(&tool.searchable())).collect();
    let texts: Vec<String> = tools.iter().map(Tool::plain).collect();
    let (again, once_more) = (texts.clone(), texts.clone());
    let all = [
        repeated("ours", move || Index::of(&documents).len()),
        repeated("ours, all read", move || {
            let read = tools.iter().map(|tool| Document::of(&tool.searchable()));
            Index::of(&read.collect::<Vec<_>>()).len()
        }),
        repeated("plain BM25", move || {
            black_box(Plain::new(&texts));
            0
        }),
        repeated("bm25 (crate)", move || bm25_crate(&again)("a")),
        repeated("tantivy", move || tantivy(&once_more).expect("an index in memory")("a")),
    ];
    all.into()
}

fn asked(
    name: &'static str,
    sentences: usize,
    mut search: impl FnMut(&str) -> usize + 'static,
) -> Contender {
    let questions = questions(sentences);
    Contender::new(name, move |times| {
        let start = Instant::now();
        for question in questions.iter().cycle().take(usize::try_from(times).unwrap_or(usize::MAX))
        {
            black_box(search(black_box(question)));
        }
        start.elapsed()
    })
}

fn repeated(name: &'static str, mut work: impl FnMut() -> usize + 'static) -> Contender {
    Contender::new(name, move |times| {
        let start = Instant::now();
        for _ in 0..times {
            black_box(work());
        }
        start.elapsed()
    })
}

/// The words of the plain ranking, for the crate as well.
struct Words;

impl Tokenizer for Words {
    fn tokenize(&self, text: &str) -> Vec<String> {
        words(text)
    }
}

fn bm25_crate(texts: &[String]) -> impl FnMut(&str) -> usize + use<> {
    let corpus: Vec<&str> = texts.iter().map(String::as_str).collect();
    let embedder =
        EmbedderBuilder::<u32, _>::with_tokenizer_and_fit_to_corpus(Words, &corpus).build();
    let mut scorer = Scorer::<usize>::new();
    for (position, text) in texts.iter().enumerate() {
        scorer.upsert(&position, embedder.embed(text));
    }
    move |question| scorer.matches(&embedder.embed(question)).into_iter().take(FIRST).count()
}

/// BM25 over the same words, as a full search engine keeps and skips through them.
fn tantivy(texts: &[String]) -> Result<impl FnMut(&str) -> usize + use<>, TantivyError> {
    let counted = TextFieldIndexing::default().set_index_option(IndexRecordOption::WithFreqs);
    let mut schema = Schema::builder();
    let field = schema.add_text_field("text", TextOptions::default().set_indexing_options(counted));
    let index = Tantivy::create_in_ram(schema.build());
    let mut writer = index.writer_with_num_threads(1, 100_000_000)?;
    for text in texts {
        let tokens = words(text).into_iter().enumerate();
        let tokens = tokens.map(|(position, text)| Token { position, text, ..Token::default() });
        let mut document = TantivyDocument::new();
        let read = PreTokenizedString { text: String::new(), tokens: tokens.collect() };
        document.add_pre_tokenized_text(field, read);
        writer.add_document(document)?;
    }
    writer.commit()?;
    let searcher = index.reader()?.searcher();
    Ok(move |question: &str| {
        let mut asked = words(question);
        asked.sort_unstable();
        asked.dedup();
        let terms = asked.iter().map(|word| Term::from_field_text(field, word)).collect();
        let query = BooleanQuery::new_multiterms_query(terms);
        let best = TopDocs::with_limit(FIRST).order_by_score();
        searcher.search(&query, &best).map_or(0, |found| found.len())
    })
}
