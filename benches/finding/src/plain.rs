//! Plain BM25 over one text per tool: what any library gives who does no more.

use std::collections::HashMap;

/// How soon a word that stands there again says nothing new, and how much long texts lose.
const SATURATION: f32 = 1.5;
const BY_LENGTH: f32 = 0.75;

/// An index of texts.
#[derive(Debug)]
pub struct Plain {
    postings: HashMap<String, Vec<(usize, f32)>>,
    texts: usize,
}

impl Plain {
    /// Of these texts.
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^24")]
    pub fn new(texts: &[String]) -> Self {
        let words: Vec<Vec<String>> = texts.iter().map(|text| words(text)).collect();
        let usual = words.iter().map(Vec::len).sum::<usize>() as f32 / texts.len().max(1) as f32;
        let mut postings: HashMap<String, Vec<(usize, f32)>> = HashMap::new();
        for (position, words) in words.into_iter().enumerate() {
            let length = words.len() as f32 / usual;
            let mut counts: HashMap<String, f32> = HashMap::new();
            for word in words {
                *counts.entry(word).or_default() += 1.0;
            }
            for (word, count) in counts {
                let dampened = count + SATURATION * (1.0 - BY_LENGTH + BY_LENGTH * length);
                let worth = count * (SATURATION + 1.0) / dampened;
                postings.entry(word).or_default().push((position, worth));
            }
        }
        Self { postings, texts: texts.len() }
    }

    /// The positions of the best texts.
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^24")]
    pub fn search(&self, question: &str, limit: usize) -> Vec<usize> {
        let mut scores = vec![0.0_f32; self.texts];
        let mut asked = words(question);
        asked.sort_unstable();
        asked.dedup();
        for postings in asked.iter().filter_map(|word| self.postings.get(word)) {
            let having = postings.len() as f32;
            let rarity = (1.0 + (self.texts as f32 - having + 0.5) / (having + 0.5)).ln();
            for &(position, worth) in postings {
                scores[position] += rarity * worth;
            }
        }
        let mut best: Vec<usize> = (0..self.texts).filter(|&at| scores[at] > 0.0).collect();
        let order = |one: &usize, other: &usize| {
            scores[*other].total_cmp(&scores[*one]).then(one.cmp(other))
        };
        if best.len() > limit {
            best.select_nth_unstable_by(limit, order);
            best.truncate(limit);
        }
        best.sort_unstable_by(order);
        best
    }
}

/// Lower-cased words, names in camel case taken apart.
pub fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut after_small = false;
    for c in text.chars() {
        if (!c.is_alphanumeric() || (after_small && c.is_uppercase())) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        after_small = c.is_lowercase() || c.is_numeric();
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}
