//! A token bucket whose tokens identities share fairly.

use std::time::Duration;

use hashbrown::HashMap;
use tokio::time::Instant;
use toolcrib_tool::RateLimit;

use crate::admission::rate::{Tokens, nanoseconds};

/// Identities of one bucket that are known at once. Beyond it, the one that was seen longest ago is
/// forgotten.
const IDENTITIES_MAX: usize = 1_000;

/// One bucket for all identities, whose tokens go to the active ones in turn.
///
/// Each whole token that is there is held for one identity, and only that identity can take it. A token that
/// comes goes to the identity that has waited longest, until each holds its equal part of a full bucket;
/// then the further ones are spare, and anyone may take them. So a burst of one identity leaves the others
/// what they hold, in whatever order they come, and nothing of the rate is lost where the others take
/// nothing. An identity that is alone has the whole bucket.
#[derive(Debug)]
pub(super) struct FairBucket {
    tokens: Tokens,
    per: Duration,
    shares: HashMap<Box<str>, Share>,
    /// How many turns were given out.
    turns: u64,
}

#[derive(Debug)]
struct Share {
    /// Tokens that only this identity can take.
    held: i128,
    /// Who is next: tokens that come go to the least.
    turn: Turn,
    /// Active until then: for a period after its last call, or after it was told to come back.
    until: Instant,
}

/// The place of an identity in the order in which tokens go round. Its time is when it joined, so that a new
/// one comes behind those that have waited since before; and when it gets a token, the time that one token
/// takes after that. The number tells apart what has the same time.
type Turn = (Instant, u64);

/// A call for which there is no token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refused {
    /// How long until there is one.
    pub(super) wait: Duration,
    /// Whether other identities call the tool, too.
    pub(super) is_shared: bool,
}

impl FairBucket {
    /// A full bucket that nobody has a share of.
    pub(super) fn new(limit: RateLimit, now: Instant) -> Self {
        let tokens = Tokens::new(limit, now);
        Self { tokens, per: limit.per(), shares: HashMap::new(), turns: 0 }
    }

    /// Takes a token for an identity.
    pub(super) fn take(&mut self, identity: &str, now: Instant) -> Result<(), Refused> {
        self.tokens.fill(now);
        if self.shares.len() > 1 {
            self.shares.retain(|_, share| share.until > now);
        }
        self.deal(now);
        self.join(identity, now);
        let is_any_spare = self.spare() > 0;
        let Some(own) = self.shares.get_mut(identity) else { return Ok(()) };
        let is_served = own.held > 0 || is_any_spare;
        if is_served {
            self.tokens.take();
            own.held = (own.held - 1).max(0);
        }
        let wait = if is_served { Duration::ZERO } else { self.wait(identity, now) };
        let is_shared = self.shares.len() > 1;
        if let Some(own) = self.shares.get_mut(identity) {
            own.until = now.checked_add(wait.saturating_add(self.per)).unwrap_or(own.until);
        }
        if is_served { Ok(()) } else { Err(Refused { wait, is_shared }) }
    }

    /// Gives the tokens that nobody holds to those that hold less than an equal part of a full bucket, in
    /// turn.
    fn deal(&mut self, now: Instant) {
        let (mut left, most, next) = (self.spare(), self.most_held(), self.after_a_token(now));
        while left > 0 {
            let mut open: Vec<_> =
                self.shares.values_mut().filter(|share| share.held < most).collect();
            if open.is_empty() {
                return;
            }
            open.sort_unstable_by_key(|share| share.turn);
            let each = (left / count(open.len())).max(1);
            for share in open {
                let given = each.min(most - share.held).min(left);
                if given > 0 {
                    self.turns += 1;
                    (share.held, share.turn) = (share.held + given, (next, self.turns));
                    left -= given;
                }
            }
        }
    }

    /// Gives a new identity an equal part of the tokens that are there: those that nobody holds and, if these
    /// do not suffice, some of those who hold the most.
    fn join(&mut self, identity: &str, now: Instant) {
        if self.shares.contains_key(identity) {
            return;
        }
        if self.shares.len() >= IDENTITIES_MAX {
            let oldest = self.shares.iter().min_by_key(|(_, share)| share.until);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                self.shares.remove(&oldest);
            }
        }
        let most = self.most_beside_a_new_one();
        for share in self.shares.values_mut() {
            share.held = share.held.min(most);
        }
        self.turns += 1;
        let new = Share { held: 0, turn: (now, self.turns), until: now };
        self.shares.insert(identity.into(), new);
        let (held, next) = (self.spare().min(self.most_held()), self.after_a_token(now));
        if let Some(share) = self.shares.get_mut(identity).filter(|_| held > 0) {
            (share.held, share.turn.0) = (held, next);
        }
    }

    /// The most that each may hold of the tokens that are there, so that there is as much for a new identity:
    /// at least one, because nobody's last token goes to another.
    fn most_beside_a_new_one(&self) -> i128 {
        let all = self.tokens.whole();
        let mut most = all / count(self.shares.len() + 1);
        loop {
            // Those who hold less leave more to the others.
            let less = self.shares.values().map(|share| share.held).filter(|held| *held < most);
            let (holders, kept) =
                less.fold((0, 0), |(holders, kept), held| (holders + 1, kept + held));
            let next = (all - kept) / (count(self.shares.len() + 1) - holders);
            if next <= most {
                return most.max(1);
            }
            most = next;
        }
    }

    /// How long until there is a token for an identity that holds none: when it is its turn, or when all
    /// others are inactive.
    fn wait(&self, identity: &str, now: Instant) -> Duration {
        let Some(share) = self.shares.get(identity) else { return Duration::ZERO };
        let (mut before, mut lapse) = (1, now);
        for other in self.shares.values().filter(|other| other.turn != share.turn) {
            let is_earlier = other.turn < share.turn && other.held < self.most_held();
            before += other.held + i128::from(is_earlier);
            lapse = lapse.max(other.until);
        }
        let own = self.tokens.until(before * self.tokens.each);
        self.tokens.until(self.tokens.each).max(own.min(lapse - now))
    }

    /// When the time of one more token has passed.
    fn after_a_token(&self, now: Instant) -> Instant {
        now.checked_add(nanoseconds(self.tokens.each)).unwrap_or(now)
    }

    /// How many tokens nobody holds.
    fn spare(&self) -> i128 {
        self.tokens.whole() - self.shares.values().map(|share| share.held).sum::<i128>()
    }

    /// The most that one identity holds: an equal part of a full bucket, and at least one token.
    fn most_held(&self) -> i128 {
        (self.tokens.full / self.tokens.each / count(self.shares.len()).max(1)).max(1)
    }
}

fn count(identities: usize) -> i128 {
    i128::try_from(identities).unwrap_or(i128::MAX)
}

#[cfg(test)]
mod tests;
