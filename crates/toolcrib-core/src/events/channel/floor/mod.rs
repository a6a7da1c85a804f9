//! Who speaks: the rule of the ordered channel as a pure state machine.
//!
//! No lock, no clock, no waiting and no input or output: every transition is a method that says
//! what is to be done. The shell around it keeps it under one lock and does that.
//!
//! The rule: the first call to speak holds the floor until it ends; then the next in the order of
//! first words, which are as old as the moment the shell names; words of one moment go by the
//! calls' own order. What is presented is therefore whole calls, one after the other. What the
//! holder says is presented at once; what others say waits in their lines.

#[cfg(test)]
pub(crate) mod tests;

use std::collections::{BTreeSet, HashSet, VecDeque};

use hashbrown::HashMap;

/// One speaker on one floor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SpeakerId(u64);

/// When a word was said, in units of the shell's choice. Words of one moment are said at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FloorTime(pub(crate) u64);

/// Where an overflow keeps a word; never the same one twice on one floor.
pub(crate) type OverflowKey = u64;

/// What may wait on a floor before it is crowded, or goes to the overflow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FloorLimits {
    /// Words presented and not read; with that many the holder has to wait.
    pub(crate) words: usize,
    /// Bytes kept in memory; beyond that, words go to the overflow. One word may overshoot.
    pub(crate) bytes: usize,
}

/// What is to be done after a word.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SayResult<T> {
    /// Nobody will ever hear it: the speaker has ended.
    Unheard,
    /// It is kept here.
    Kept,
    /// It is to be put into the overflow under this key;
    /// [`lose_last`](Floor::lose_last) if that fails.
    Over(OverflowKey, T),
}

/// The next word for the reader.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NextWord<T> {
    /// A word.
    Word(T),
    /// A word that the overflow has under this key.
    Over(OverflowKey),
    /// So many words were lost here.
    Lost(u64),
    /// Nothing yet.
    Nothing,
    /// Nothing, ever: the floor is closed and everybody has ended.
    End,
}

/// A word that was said and not read.
#[derive(Debug)]
enum Word<T> {
    Here(T, usize),
    Over(OverflowKey),
    Lost(u64),
}

/// One speaker's words that were not read yet.
#[derive(Debug)]
struct SpeakerLine<T> {
    position: usize,
    has_spoken: bool,
    ended: bool,
    words: VecDeque<Word<T>>,
}

/// The state of one channel: who speaks, who waits, and what was said.
#[derive(Debug)]
pub(crate) struct Floor<T> {
    room: FloorLimits,
    lines: HashMap<SpeakerId, SpeakerLine<T>>,
    /// Those who have spoken and wait for the floor.
    waiting: BTreeSet<(FloorTime, usize, SpeakerId)>,
    /// Those who had or have the floor and are not read to the end. All but the last have ended;
    /// the last holds the floor unless it has ended.
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

    /// A new speaker; `position` is its place in the order of the calls. Once the floor is closed,
    /// nobody will hear it.
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

    /// A word that does not ask for the floor: it is presented ahead of the speaker's first word,
    /// and never if there is none.
    pub(crate) fn announce(&mut self, id: SpeakerId, word: T, bytes: usize) -> SayResult<T> {
        self.push(id, word, bytes)
    }

    /// A word. Takes the floor if it is free.
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

    /// The speaker has nothing more to say: the floor passes on. Ending twice changes nothing.
    /// Returns what the overflow is to forget: the announcements of one that never spoke.
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

    /// Whether the speaker has to wait for the reader before it says more. Only the holder of the
    /// floor ever has to, and nobody while there is no reader.
    pub(crate) fn must_wait(&self, id: SpeakerId) -> bool {
        self.attended
            && self.holder() == Some(id)
            && (self.unread >= self.room.words || self.bytes >= self.room.bytes)
            && self.unread > 0
    }

    /// Words that the reader could take now.
    pub(crate) fn unread(&self) -> usize {
        self.unread
    }

    /// Whether a reader that waits has something to see: a word, or the end.
    pub(crate) fn has_news(&self) -> bool {
        self.unread > 0 || (self.closed && self.speaking == 0)
    }

    /// Words that were not read, of all who have spoken.
    pub(crate) fn pending(&self) -> usize {
        self.lines.values().filter(|line| line.has_spoken).map(|line| line.words.len()).sum()
    }

    /// The reader takes the next word.
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

    /// Nobody joins any more.
    pub(crate) fn close(&mut self) {
        self.closed = true;
    }

    /// Whether there is a reader.
    pub(crate) fn is_attended(&self) -> bool {
        self.attended
    }

    /// There is a reader again; it goes on where the last one stopped.
    pub(crate) fn attach(&mut self) {
        self.attended = true;
    }

    /// There is no reader any more. Nobody waits for one, and what is and will be said goes to the
    /// overflow: returns what is to be put there now; [`lose`](Self::lose) what cannot be.
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

    /// The overflow could not keep the last word of this speaker.
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

    /// The overflow could not keep these words.
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

    /// Who holds the floor.
    fn holder(&self) -> Option<SpeakerId> {
        let last = *self.presented.back()?;
        self.lines.get(&last).filter(|line| !line.ended).map(|_| last)
    }

    /// Gives a free floor to the next who waits, and to the one after that if it has ended already.
    fn pass_on(&mut self) {
        while self.holder().is_none() {
            let Some((_, _, next)) = self.waiting.pop_first() else { return };
            self.unread += self.lines.get(&next).map_or(0, |line| line.words.len());
            self.presented.push_back(next);
        }
    }

    fn is_presented(&self, id: SpeakerId) -> bool {
        // Whoever can still speak and is presented holds the floor.
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

    /// Removes a speaker that never spoke, and what it announced. Returns what the overflow has of
    /// it.
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

/// Notes that words were lost here. Returns whether an earlier note took them in.
fn push_lost<T>(words: &mut VecDeque<Word<T>>, more: u64) -> bool {
    if let Some(Word::Lost(lost)) = words.back_mut() {
        *lost += more;
        return true;
    }
    words.push_back(Word::Lost(more));
    false
}
