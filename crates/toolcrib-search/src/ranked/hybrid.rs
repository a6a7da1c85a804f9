//! Hybrid search: combines words with the vectors of an embedding model.

use super::{Hit, Index};

/// The constant of reciprocal rank fusion, as its authors chose it (Cormack, Clarke, Büttcher 2009): how much low ranks
/// still count.
const FUSION: f32 = 60.0;

/// How many hits of each ranking are combined.
const DEPTH: usize = 100;

/// Turns texts into vectors so that texts with similar meanings are close together: the host's embedding model.
///
/// All vectors of one provider must have the same dimension. They need not be normalised.
pub trait Embedder {
    /// The error if there is no vector.
    type Error;

    /// The vector of a text.
    fn embed(&self, text: &str) -> Result<Vec<f32>, Self::Error>;
}

/// An [`Index`] with a vector for each document: finds tools by words and by meaning.
///
/// The two rankings are computed separately and combined by rank, so their scores need no common scale.
///
/// ```
/// use std::convert::Infallible;
/// use toolcrib_search::{Document, Embedder, HybridIndex, Index, Searchable};
///
/// /// Stands for a model that knows what rain has to do with weather.
/// struct Model;
///
/// impl Embedder for Model {
///     type Error = Infallible;
///     fn embed(&self, text: &str) -> Result<Vec<f32>, Infallible> {
///         let wet = text.contains("rain") || text.contains("forecast");
///         Ok(if wet { vec![1.0, 0.0] } else { vec![0.0, 1.0] })
///     }
/// }
///
/// let tools = ["city_forecast", "disk_usage"];
/// let documents = tools.map(|name| Document::of(&Searchable { name, ..Default::default() }));
/// let index = HybridIndex::new(Index::of(&documents), tools, Model)?;
/// let hits = index.search("will it rain?", 1)?;
/// assert_eq!(tools[hits[0].position], "city_forecast");
/// # Ok::<(), Infallible>(())
/// ```
#[derive(Debug, Clone)]
pub struct HybridIndex<E> {
    words: Index,
    embedder: E,
    /// By position; normalised or all zeros.
    vectors: Vec<Vec<f32>>,
}

impl<E: Embedder> HybridIndex<E> {
    /// Computes a vector for each document from the text at its position, for example its name and description. A
    /// document without a text is found only by its words.
    pub fn new<'t>(
        words: Index,
        texts: impl IntoIterator<Item = &'t str>,
        embedder: E,
    ) -> Result<Self, E::Error> {
        let texts = texts.into_iter().take(words.len());
        let vectors = texts.map(|text| embedder.embed(text)).collect::<Result<Vec<_>, _>>()?;
        Ok(Self::with_vectors(words, vectors, embedder))
    }

    /// Uses existing vectors, by position: those of unchanged documents need not be computed again.
    pub fn with_vectors(words: Index, mut vectors: Vec<Vec<f32>>, embedder: E) -> Self {
        vectors.truncate(words.len());
        for vector in &mut vectors {
            normalise(vector);
        }
        Self { words, embedder, vectors }
    }

    /// The word index.
    pub fn words(&self) -> &Index {
        &self.words
    }

    /// The tools that match a question by its words and its vector, the best first, at most `limit`.
    pub fn search(&self, question: &str, limit: usize) -> Result<Vec<Hit>, E::Error> {
        self.search_among(question, limit, |_| true)
    }

    /// [`search`](Self::search) among the documents whose position is `allowed`.
    pub fn search_among(
        &self,
        question: &str,
        limit: usize,
        allowed: impl Fn(usize) -> bool,
    ) -> Result<Vec<Hit>, E::Error> {
        let depth = limit.max(DEPTH);
        let by_words = self.words.search_among(question, depth, &allowed);
        let by_vector = self.nearest(self.embedder.embed(question)?, depth, allowed);
        let mut hits: Vec<Hit> = Vec::with_capacity(by_words.len() + by_vector.len());
        for ranking in [by_words, by_vector] {
            for (place, hit) in (1_u16..).zip(ranking) {
                // A document that is first in both rankings scores 1.
                let score = (FUSION + 1.0) / (FUSION + f32::from(place)) / 2.0;
                hits.push(Hit { score, ..hit });
            }
        }
        hits.sort_by_key(|hit| hit.position);
        let both = hits.chunk_by(|one, other| one.position == other.position);
        let mut hits: Vec<Hit> = both
            .map(|both| Hit { score: both.iter().map(|hit| hit.score).sum(), ..both[0] })
            .collect();
        hits.sort_unstable_by(Hit::order);
        hits.truncate(limit);
        Ok(hits)
    }

    /// The documents whose vectors are closest to the question's.
    fn nearest(
        &self,
        mut question: Vec<f32>,
        depth: usize,
        allowed: impl Fn(usize) -> bool,
    ) -> Vec<Hit> {
        normalise(&mut question);
        let similar = self.vectors.iter().enumerate().filter(|(position, _)| allowed(*position));
        let mut hits: Vec<Hit> = similar
            .map(|(position, vector)| Hit { position, score: product(vector, &question) })
            .filter(|hit| hit.score > 0.0)
            .collect();
        hits.sort_unstable_by(Hit::order);
        hits.truncate(depth);
        hits
    }
}

fn product(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

/// Normalises a vector. One of length zero or infinity becomes zero.
fn normalise(vector: &mut Vec<f32>) {
    let length = product(vector, vector).sqrt();
    if length.is_normal() {
        for number in vector {
            *number /= length;
        }
    } else {
        vector.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Document, Searchable};
    use super::*;

    /// A simple embedder from hashed trigrams, which finds similar spellings.
    #[derive(Debug)]
    struct Trigrams;

    /// The text was too long for [`Trigrams`].
    #[derive(Debug, PartialEq)]
    struct TooLong;

    impl Embedder for Trigrams {
        type Error = TooLong;

        fn embed(&self, text: &str) -> Result<Vec<f32>, TooLong> {
            if text.len() > 100 {
                return Err(TooLong);
            }
            let mut vector = vec![0.0; 64];
            for three in text.as_bytes().windows(3) {
                let hash = three.iter().fold(7_usize, |hash, byte| hash * 31 + usize::from(*byte));
                vector[hash % 64] += 1.0;
            }
            Ok(vector)
        }
    }

    const TOOLS: [&str; 4] = ["forecasting", "disk_usage", "send_mail", "weatherman"];

    fn index() -> HybridIndex<Trigrams> {
        let documents = TOOLS.map(|name| Document::of(&Searchable { name, ..Default::default() }));
        HybridIndex::new(Index::of(&documents), TOOLS, Trigrams).unwrap()
    }

    fn names(hits: &[Hit]) -> Vec<&str> {
        hits.iter().map(|hit| TOOLS[hit.position]).collect()
    }

    #[test]
    fn vectors_find_documents_without_the_words() {
        let index = index();
        assert!(index.words().search("reforecasted", 10).is_empty());
        assert_eq!(names(&index.search("reforecasted", 1).unwrap()), ["forecasting"]);
    }

    #[test]
    fn a_hit_of_both_rankings_comes_first_and_the_best_scores_one() {
        let hits = index().search("disk_usage", 10).unwrap();
        assert_eq!(hits[0], Hit { position: 1, score: 1.0 });
        assert!(hits[1..].iter().all(|hit| hit.score < 0.6));
    }

    #[test]
    fn excluded_documents_are_found_by_neither() {
        let hits = index().search_among("weatherman forecasting", 10, |at| at == 0).unwrap();
        assert_eq!(names(&hits), ["forecasting"]);
        assert!(index().search_among("disk_usage", 10, |_| false).unwrap().is_empty());
    }

    #[test]
    fn an_error_of_the_provider_is_returned() {
        let long = "x".repeat(101);
        assert_eq!(index().search(&long, 1), Err(TooLong));
        let words = Index::of([&Document::of(&Searchable::default())]);
        assert_eq!(HybridIndex::new(words, [long.as_str()], Trigrams).err(), Some(TooLong));
    }

    #[test]
    fn vectors_that_point_nowhere_find_nothing() {
        let documents = TOOLS.map(|name| Document::of(&Searchable { name, ..Default::default() }));
        let strange =
            vec![vec![], vec![0.0; 64], vec![f32::NAN; 64], vec![f32::INFINITY; 64], vec![1.0]];
        let index = HybridIndex::with_vectors(Index::of(&documents), strange, Trigrams);
        assert!(index.search("reforecasted", 10).unwrap().is_empty());
        assert_eq!(names(&index.search("mail", 10).unwrap()), ["send_mail"]);
    }
}
