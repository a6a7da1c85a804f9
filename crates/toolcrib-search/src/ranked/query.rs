//! A question, split into words and parts.

use super::filler::is_filler;
use super::synonyms::synonyms;
use super::weights::Weights;
use super::word::{Word, each_stem};

/// The longest question in bytes; a search ignores the rest.
pub const MAX_QUESTION: usize = 4_096;

/// The most words, including synonyms; the rest is ignored.
const MAX_WORDS: usize = 256;

/// The most parts that are ranked separately; the rest counts only for the whole question.
pub(super) const MAX_PARTS: usize = 7;

/// The words and parts of a question.
#[derive(Debug)]
pub(super) struct Query {
    pub(super) wanted: Vec<QueryWord>,
    /// The number of parts; 0 if the question has only one.
    pub(super) parts: usize,
}

/// A word to search for.
#[derive(Debug)]
pub(super) struct QueryWord {
    pub(super) word: Word,
    /// The word as written, in lower case.
    pub(super) written: String,
    pub(super) worth: f32,
    /// A synonym of a word in the question.
    pub(super) synonym: bool,
    /// A stop word, which finds nothing by itself.
    pub(super) filler: bool,
    /// A bit for each part of the question that contains it.
    pub(super) parts: u8,
    /// Whether it counts for the question as a whole.
    pub(super) whole: bool,
}

impl Query {
    pub(super) fn new(text: &str, weights: &Weights) -> Self {
        let mut end = text.len().min(MAX_QUESTION);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let mut parts = parts(&text[..end]);
        if parts.iter().filter(|part| part.counts).count() < 2 {
            for part in &mut parts {
                part.counts = false;
            }
        }
        let mut query = Self { wanted: Vec::new(), parts: 0 };
        for part in parts {
            let bit = if part.counts && query.parts < MAX_PARTS {
                query.parts += 1;
                1 << (query.parts - 1)
            } else {
                0
            };
            each_stem(part.text, |written, word| query.want(written, word, bit, weights));
        }
        query.drop_written_synonyms();
        // The question has only stop words, so search for them.
        if query.wanted.iter().all(|wanted| wanted.filler) {
            for wanted in &mut query.wanted {
                (wanted.worth, wanted.filler) = (1.0, false);
            }
        }
        query
    }

    fn want(&mut self, written: &str, word: Word, bit: u8, weights: &Weights) {
        let filler = is_filler(written);
        let worth = if filler { weights.stop_word } else { 1.0 };
        let wanted = |word, worth, synonym: bool| {
            let written = written.to_owned();
            let filler = filler && !synonym;
            QueryWord { word, written, worth, synonym, filler, parts: bit, whole: true }
        };
        self.add(wanted(word, worth, false));
        if !filler {
            for &other in synonyms(word) {
                self.add(wanted(other, weights.synonym, true));
            }
        }
    }

    fn add(&mut self, new: QueryWord) {
        let same = |known: &QueryWord| known.word == new.word && known.synonym == new.synonym;
        if let Some(known) = self.wanted.iter_mut().find(|known| same(known)) {
            known.parts |= new.parts;
        } else if self.wanted.len() < MAX_WORDS {
            self.wanted.push(new);
        }
    }

    /// A word that also occurs itself is not a synonym.
    fn drop_written_synonyms(&mut self) {
        let themselves: Vec<(Word, u8)> =
            self.wanted.iter().filter(|it| !it.synonym).map(|it| (it.word, it.parts)).collect();
        self.wanted.retain_mut(|wanted| {
            let itself = themselves.iter().find(|(word, _)| wanted.synonym && *word == wanted.word);
            if let Some((_, parts)) = itself {
                wanted.parts &= !parts;
                wanted.whole = false;
            }
            wanted.whole || wanted.parts != 0
        });
    }
}

/// A part of a question.
struct QuestionPart<'t> {
    text: &'t str,
    /// Whether it asks for something by itself.
    counts: bool,
}

/// Words that separate two requests.
const BETWEEN: [&str; 10] = [
    ", and ",
    " and then ",
    ", then ",
    " and also ",
    ", also ",
    " after that",
    " as well as ",
    "，然后",
    "，并",
    "，再",
];

/// The parts of a question: sentences, and requests joined in one sentence. A single word is not a part.
fn parts(text: &str) -> Vec<QuestionPart<'_>> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().copied();
        let ends = match c {
            // Followed by a blank, because a full stop may be inside a name, a number or an address.
            '.' | '?' | '!' | ';' => next.is_none_or(|(_, c)| c.is_whitespace() || c == '"'),
            '\n' | '。' | '？' | '！' | '；' => true,
            _ => false,
        };
        if ends {
            push_strung(&text[start..at], &mut parts);
            start = at + c.len_utf8();
        }
    }
    push_strung(&text[start..], &mut parts);
    parts
}

fn push_strung<'t>(sentence: &'t str, parts: &mut Vec<QuestionPart<'t>>) {
    let mut rest = sentence;
    loop {
        // Splitting beyond the ranked parts has no effect.
        let marks = BETWEEN.iter().filter(|_| parts.len() < 2 * MAX_PARTS);
        let cut = marks.filter_map(|mark| Some((rest.find(mark)?, mark.len()))).min();
        let (text, after) = match cut {
            Some((at, len)) => (&rest[..at], Some(&rest[at + len..])),
            None => (rest, None),
        };
        let mut words = 0;
        each_stem(text, |_, _| words += 1);
        parts.push(QuestionPart { text, counts: words >= 2 });
        match after {
            Some(after) => rest = after,
            None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> Query {
        Query::new(text, &Weights::default())
    }

    fn parts_of(text: &str) -> Vec<Vec<String>> {
        let query = query(text);
        let of = |part: usize| -> Vec<String> {
            let words = query.wanted.iter().filter(|it| it.parts >> part & 1 == 1 && !it.synonym);
            words.map(|wanted| wanted.written.clone()).collect()
        };
        (0..query.parts).map(of).collect()
    }

    #[test]
    fn consecutive_requests_become_separate_parts() {
        let expected = [vec!["read", "a", "txt"], vec!["then", "send", "mail"]];
        assert_eq!(parts_of("Read a.txt. Then send mail!"), expected);
        assert_eq!(parts_of("measure disks, and then draw charts").len(), 2);
        assert_eq!(parts_of("查天气。发邮件。").len(), 2);
        assert_eq!(parts_of("read a.txt").len(), 0);
        assert_eq!(parts_of("Thanks. Read a file!").len(), 0);
    }

    #[test]
    fn a_word_counts_once_with_its_highest_weight() {
        let query = query("picture image picture the");
        let image = query.wanted.iter().find(|wanted| wanted.written == "image").unwrap();
        assert!(!image.synonym && !image.filler);
        let the = query.wanted.iter().find(|wanted| wanted.written == "the").unwrap();
        assert!(the.filler);
    }

    #[test]
    fn stop_words_are_searched_if_there_are_no_others() {
        assert!(query("how to").wanted.iter().all(|wanted| !wanted.filler));
        assert!(query("?!").wanted.is_empty());
    }

    #[test]
    fn the_read_part_of_a_question_is_bounded() {
        let words: Vec<String> = (0..100_000).map(|number| format!("w{number}. and x")).collect();
        let long = words.join(" ");
        let query = query(&long);
        assert!(query.wanted.len() <= MAX_WORDS && query.parts <= MAX_PARTS);
        let _ = Query::new(&"é".repeat(MAX_QUESTION), &Weights::default());
    }
}
