//! The floor: the ordering rule of the channel as a pure state machine.
//!
//! It has no lock, clock, waiting or I/O: every transition is a method that returns what to do.
//! `SharedChannel` keeps it under one lock and does that.
//!
//! The rule: the first call to speak holds the floor until it ends; then comes the next in the
//! order of first words by time, and for equal times in call order. So complete calls are
//! presented, one after the other. Words of the holder are presented at once; those of other calls
//! wait in their queues.

#[cfg(test)]
pub(crate) mod tests;

use std::collections::{BTreeSet, HashSet, VecDeque};

use hashbrown::HashMap;

/// The id of a speaker on one floor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SpeakerId(u64);

/// When a word was said, in units of the caller's choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FloorTime(pub(crate) u64);

/// The key of a word in the overflow, unique per floor.
pub(crate) type OverflowKey = u64;

/// How much a floor buffers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FloorLimits {
    /// Presented words that were not read; at this number the holder has to wait.
    pub(crate) words: usize,
    /// Bytes in memory; further words go to the overflow. One word may exceed the limit.
    pub(crate) bytes: usize,
}

/// What to do after a word.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SayResult<T> {
    /// It is ignored: the speaker has ended.
    Unheard,
    /// It is stored here.
    Kept,
    /// Put it into the overflow under this key; [`lose_last`](Floor::lose_last) if that fails.
    Over(OverflowKey, T),
}

/// The next word for the reader.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NextWord<T> {
    /// A word.
    Word(T),
    /// A word in the overflow under this key.
    Over(OverflowKey),
    /// This many words were lost here.
    Lost(u64),
    /// Nothing yet.
    Nothing,
    /// The end: the floor is closed and all speakers have ended.
    End,
}

/// A word that was not read yet.
#[derive(Debug)]
enum Word<T> {
    Here(T, usize),
    Over(OverflowKey),
    Lost(u64),
}

/// The unread words of one speaker.
#[derive(Debug)]
struct SpeakerLine<T> {
    position: usize,
    has_spoken: bool,
    ended: bool,
    words: VecDeque<Word<T>>,
}

/// The state of one channel: speakers, their order, and unread words.
#[derive(Debug)]
pub(crate) struct Floor<T> {
    room: FloorLimits,
    lines: HashMap<SpeakerId, SpeakerLine<T>>,
    /// Speakers with words that wait for the floor.
    waiting: BTreeSet<(FloorTime, usize, SpeakerId)>,
    /// Speakers that had or have the floor and still have unread words. All but the last have
    /// ended; the last holds the floor unless it has ended.
    presented: VecDeque<SpeakerId>,
    /// Words in the lines of `presented`.
    unread: usize,
    /// Bytes of all words in memory.
    bytes: usize,
    /// Speakers that have not ended.
    speaking: usize,
    next: u64,
    attended: bool,
    closed: bool,
}

impl<T> Floor<T> {
    /// A free floor with a reader.
    pub(crate) fn new(room: FloorLimits) -> Self {
        Self {
            room,
            lines: HashMap::new(),
            waiting: BTreeSet::new(),
            presented: VecDeque::new(),
            unread: 0,
            bytes: 0,
            speaking: 0,
            next: 0,
            attended: true,
            closed: false,
        }
    }

    /// Adds a speaker; `position` is its index in the order of the calls. On a closed floor it is
    /// ignored.
    pub(crate) fn join(&mut self, position: usize) -> SpeakerId {
        let id = SpeakerId(self.next);
        self.next += 1;
        if !self.closed {
            let line =
                SpeakerLine { position, has_spoken: false, ended: false, words: VecDeque::new() };
            self.lines.insert(id, line);
            self.speaking += 1;
        }
        id
    }

    /// Adds a word that does not take the floor: it is presented before the speaker's first word,
    /// or never if there is none.
    pub(crate) fn announce(&mut self, id: SpeakerId, word: T, bytes: usize) -> SayResult<T> {
        self.push(id, word, bytes)
    }

    /// Adds a word. Takes the floor if it is free.
    pub(crate) fn say(
        &mut self,
        id: SpeakerId,
        at: FloorTime,
        word: T,
        bytes: usize,
    ) -> SayResult<T> {
        let said = self.push(id, word, bytes);
        if let Some(line) = self.lines.get_mut(&id).filter(|line| !line.ended && !line.has_spoken) {
            line.has_spoken = true;
            self.waiting.insert((at, line.position, id));
            self.pass_on();
        }
        said
    }

    /// Ends a speaker, so that the floor passes on. Idempotent. Returns the keys to remove from the
    /// overflow: announcements of a speaker without words.
    pub(crate) fn end(&mut self, id: SpeakerId) -> Vec<OverflowKey> {
        let Some(line) = self.lines.get_mut(&id).filter(|line| !line.ended) else {
            return Vec::new();
        };
        line.ended = true;
        self.speaking -= 1;
        let unheard = if line.has_spoken { Vec::new() } else { self.forget(id) };
        self.pass_on();
        unheard
    }

    /// Whether the speaker has to wait for the reader. Only the holder of the floor ever has to,
    /// and only while there is a reader.
    pub(crate) fn must_wait(&self, id: SpeakerId) -> bool {
        self.attended
            && self.holder() == Some(id)
            && (self.unread >= self.room.words || self.bytes >= self.room.bytes)
            && self.unread > 0
    }

    /// The number of words the reader can take now.
    pub(crate) fn unread(&self) -> usize {
        self.unread
    }

    /// Whether there is a word for the reader, or the end.
    pub(crate) fn has_news(&self) -> bool {
        self.unread > 0 || (self.closed && self.speaking == 0)
    }

    /// The number of unread words of all speakers.
    pub(crate) fn pending(&self) -> usize {
        self.lines.values().filter(|line| line.has_spoken).map(|line| line.words.len()).sum()
    }

    /// Takes the next word for the reader.
    pub(crate) fn take(&mut self) -> NextWord<T> {
        while let Some(&id) = self.presented.front() {
            let Some(line) = self.lines.get_mut(&id) else {
                self.presented.pop_front();
                continue;
            };
            if let Some(word) = line.words.pop_front() {
                self.unread -= 1;
                return match word {
                    Word::Here(word, bytes) => {
                        self.bytes -= bytes;
                        NextWord::Word(word)
                    }
                    Word::Over(key) => NextWord::Over(key),
                    Word::Lost(lost) => NextWord::Lost(lost),
                };
            }
            if !line.ended {
                return NextWord::Nothing;
            }
            self.lines.remove(&id);
            self.presented.pop_front();
        }
        if self.closed && self.speaking == 0 { NextWord::End } else { NextWord::Nothing }
    }

    /// Closes the floor to new speakers.
    pub(crate) fn close(&mut self) {
        self.closed = true;
    }

    /// Whether there is a reader.
    pub(crate) fn is_attended(&self) -> bool {
        self.attended
    }

    /// Attaches a reader, which continues where the last one stopped.
    pub(crate) fn attach(&mut self) {
        self.attended = true;
    }

    /// Detaches the reader. No speaker waits from now on, and all words go to the overflow. Returns
    /// those to put there now; call [`lose`](Self::lose) for those that fail.
    pub(crate) fn detach(&mut self) -> Vec<(OverflowKey, T)> {
        self.attended = false;
        self.bytes = 0;
        let mut out = Vec::new();
        for line in self.lines.values_mut() {
            for word in &mut line.words {
                if matches!(word, Word::Here(..)) {
                    let key = self.next;
                    self.next += 1;
                    if let Word::Here(word, _) = std::mem::replace(word, Word::Over(key)) {
                        out.push((key, word));
                    }
                }
            }
        }
        out
    }

    /// The overflow could not store the last word of this speaker.
    pub(crate) fn lose_last(&mut self, id: SpeakerId) {
        let is_presented = self.is_presented(id);
        let Some(line) = self.lines.get_mut(&id) else { return };
        if matches!(line.words.back(), Some(Word::Over(_))) {
            line.words.pop_back();
            let gone = push_lost(&mut line.words, 1);
            if is_presented {
                self.unread -= usize::from(gone);
            }
        }
    }

    /// The overflow could not store these words.
    pub(crate) fn lose(&mut self, keys: &HashSet<OverflowKey>) {
        for line in self.lines.values_mut() {
            for word in std::mem::take(&mut line.words) {
                match word {
                    Word::Over(key) if keys.contains(&key) => {
                        push_lost(&mut line.words, 1);
                    }
                    Word::Lost(lost) => {
                        push_lost(&mut line.words, lost);
                    }
                    kept => line.words.push_back(kept),
                }
            }
        }
        let words = |id| self.lines.get(id).map_or(0, |line| line.words.len());
        self.unread = self.presented.iter().map(words).sum();
    }

    /// The holder of the floor.
    fn holder(&self) -> Option<SpeakerId> {
        let last = *self.presented.back()?;
        self.lines.get(&last).filter(|line| !line.ended).map(|_| last)
    }

    /// Gives a free floor to the next waiting speaker, and on if that one has already ended.
    fn pass_on(&mut self) {
        while self.holder().is_none() {
            let Some((_, _, next)) = self.waiting.pop_first() else { return };
            self.unread += self.lines.get(&next).map_or(0, |line| line.words.len());
            self.presented.push_back(next);
        }
    }

    fn is_presented(&self, id: SpeakerId) -> bool {
        // A presented speaker that has not ended holds the floor.
        self.holder() == Some(id)
    }

    fn push(&mut self, id: SpeakerId, word: T, bytes: usize) -> SayResult<T> {
        let is_presented = self.is_presented(id);
        let in_memory = self.attended && self.bytes < self.room.bytes;
        let key = self.next;
        let Some(line) = self.lines.get_mut(&id).filter(|line| !line.ended) else {
            return SayResult::Unheard;
        };
        if is_presented {
            self.unread += 1;
        }
        if in_memory {
            self.bytes += bytes;
            line.words.push_back(Word::Here(word, bytes));
            return SayResult::Kept;
        }
        self.next += 1;
        line.words.push_back(Word::Over(key));
        SayResult::Over(key, word)
    }

    /// Removes a speaker without words, and its announcements. Returns their keys in the overflow.
    fn forget(&mut self, id: SpeakerId) -> Vec<OverflowKey> {
        let mut overflowed = Vec::new();
        for word in self.lines.remove(&id).map(|line| line.words).into_iter().flatten() {
            match word {
                Word::Here(_, bytes) => self.bytes -= bytes,
                Word::Over(key) => overflowed.push(key),
                Word::Lost(_) => {}
            }
        }
        overflowed
    }
}

/// Records lost words here. Returns whether an earlier record was extended.
fn push_lost<T>(words: &mut VecDeque<Word<T>>, more: u64) -> bool {
    if let Some(Word::Lost(lost)) = words.back_mut() {
        *lost += more;
        return true;
    }
    words.push_back(Word::Lost(more));
    false
}
