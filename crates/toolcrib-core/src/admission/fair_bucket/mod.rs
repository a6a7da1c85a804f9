//! A token bucket whose tokens identities share fairly.

use std::time::Duration;

use hashbrown::HashMap;
use tokio::time::Instant;
use toolcrib_tool::RateLimit;

use crate::admission::rate::{Tokens, nanoseconds};

/// Identities of one bucket that are known at once. Beyond it, the one that was seen longest ago is
/// forgotten.
const IDENTITIES_MAX: usize = 1_000;

/// One bucket for all identities, of which each active one has an equal share.
///
/// A token in the share of one identity cannot be taken by another, unless the bucket has more tokens than
/// the shares of all others hold. So a burst of one identity leaves the others their shares, while nothing
/// of the rate is lost: where the others take nothing, their shares fill, and each further token may be
/// taken by anyone. An identity that is alone has the whole bucket.
#[derive(Debug)]
pub(super) struct FairBucket {
    tokens: Tokens,
    per: Duration,
    shares: HashMap<Box<str>, Share>,
}

#[derive(Debug)]
struct Share {
    /// What others cannot take, counted as the tokens are; below 0 what it has taken of the others'.
    here: i128,
    /// Active until then: for a period after its last call, or after it was told to come back.
    until: Instant,
}

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
        Self { tokens: Tokens::new(limit, now), per: limit.per(), shares: HashMap::new() }
    }

    /// Takes a token for an identity.
    pub(super) fn take(&mut self, identity: &str, now: Instant) -> Result<(), Refused> {
        self.fill(now);
        self.join(identity, now);
        let each = self.tokens.each;
        let (mut reserved, mut promised, mut lapse) = (0, 0, now);
        for (_, other) in self.shares.iter().filter(|(name, _)| ***name != *identity) {
            reserved += other.here.max(0);
            promised += if other.here >= each { each } else { 0 };
            lapse = lapse.max(other.until);
        }
        let active = self.count();
        let Some(share) = self.shares.get_mut(identity) else { return Ok(()) };
        let has_own = share.here >= each;
        let has_spare = self.tokens.here >= each + reserved;
        let wait = if self.tokens.has_one() && (has_own || has_spare) {
            self.tokens.take();
            // Spare tokens are nobody's share.
            share.here = if has_own { share.here - each } else { share.here.min(0) };
            None
        } else if has_own {
            // The next tokens are for those that have a right to one.
            Some(self.tokens.until(each + promised))
        } else {
            // Its share grows by its part of the time, or faster when others become inactive.
            let own = nanoseconds((each - share.here).saturating_mul(active));
            Some(self.tokens.until(each).max(own.min(lapse - now)))
        };
        let back = wait.unwrap_or_default().saturating_add(self.per);
        share.until = now.checked_add(back).unwrap_or(share.until);
        wait.map_or(Ok(()), |wait| Err(Refused { wait, is_shared: active > 1 }))
    }

    /// Adds the tokens that came meanwhile, to each active identity an equal part.
    fn fill(&mut self, now: Instant) {
        let passed = self.tokens.fill(now);
        if self.shares.len() > 1 {
            self.shares.retain(|_, share| share.until > now);
        }
        let (part, full) = (passed / self.count().max(1), self.full_share());
        for share in self.shares.values_mut() {
            share.here = (share.here + part).min(full);
        }
    }

    /// Gives a new identity an equal part of the tokens that are there: those that nobody has a share of
    /// and, if these do not suffice, some of the largest shares. It has a right to the next token even if
    /// there is none: those without a right to one owe it that.
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
        self.shares.insert(identity.into(), Share { here: 0, until: now });
        let (each, most) = (self.tokens.each, self.equal_part(identity));
        let (mut reserved, mut debtors) = (0, 0);
        for (name, share) in &mut self.shares {
            share.here = share.here.min(most);
            reserved += share.here.max(0);
            debtors += i128::from(share.here < each && **name != *identity);
        }
        let free = (self.tokens.here - reserved).clamp(0, most);
        let owed = if debtors == 0 { 0 } else { (each - free).max(0) };
        for (name, share) in &mut self.shares {
            if **name == *identity {
                share.here = free + owed;
            } else if share.here < each {
                share.here = (share.here - owed / debtors).max(-self.tokens.full);
            }
        }
    }

    /// The most that each may hold of the tokens that are there, so that there is as much for a new identity:
    /// at least one token. What whole tokens leave is nobody's share, so that no token is split among them.
    fn equal_part(&self, new: &str) -> i128 {
        let others = || self.shares.iter().filter(|(name, _)| ***name != *new);
        let mut part = self.tokens.here / self.count().max(1);
        loop {
            // Those who hold less than this part leave more to the others.
            let less = || others().map(|(_, share)| share.here).filter(|here| *here < part);
            let kept: i128 = less().map(|here| here.max(0)).sum();
            let sharing = self.count() - i128::try_from(less().count()).unwrap_or(0);
            let next = (self.tokens.here - kept) / sharing.max(1);
            if next <= part {
                return (part - part % self.tokens.each).clamp(self.tokens.each, self.full_share());
            }
            part = next;
        }
    }

    /// The most that the share of one identity holds: at least one token.
    fn full_share(&self) -> i128 {
        (self.tokens.full / self.count().max(1)).max(self.tokens.each)
    }

    fn count(&self) -> i128 {
        i128::try_from(self.shares.len()).unwrap_or(i128::MAX)
    }
}

#[cfg(test)]
mod tests;
