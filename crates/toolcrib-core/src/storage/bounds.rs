//! Bounds of stores, per identity and in total.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

/// How many entries a store holds.
///
/// Identities cannot use up each other's shares: even when `total` is reached, an identity that
/// holds less than its [`reserve`](Self::reserve) can add entries, up to twice the total. Expired
/// entries make room first.
///
/// ```
/// use toolcrib_core::bounds::Bounds;
///
/// let bounds = Bounds::per_identity(100);
/// assert_eq!((bounds.per_identity, bounds.total, bounds.reserve()), (100, 1_000, 10));
/// // Ten others are at their bounds; a new identity has its reserve.
/// assert!(bounds.admit("runs", 0, 1_000).is_ok());
/// assert!(bounds.admit("runs", 10, 1_010).is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bounds {
    /// Entries of one identity. Default 1,000.
    pub per_identity: usize,
    /// Entries of all identities together. Beyond it, each has only its [`reserve`](Self::reserve).
    /// Default 10,000.
    pub total: usize,
    /// The configuration key of the bound, for error messages. Default: none.
    pub setting: Option<&'static str>,
}

impl Default for Bounds {
    fn default() -> Self {
        Self::per_identity(1_000)
    }
}

impl Bounds {
    /// Bounds with this many entries per identity, and ten times as many in total.
    pub const fn per_identity(entries: usize) -> Self {
        let total = entries.saturating_mul(10);
        Self { per_identity: entries, total, setting: None }
    }

    /// Sets the bound on the entries of all identities.
    #[must_use]
    pub const fn with_total(mut self, entries: usize) -> Self {
        self.total = entries;
        self
    }

    /// Sets the configuration key of the bound.
    #[must_use]
    pub const fn named(mut self, setting: &'static str) -> Self {
        self.setting = Some(setting);
        self
    }

    /// Entries that an identity may have even if the total is reached: a tenth of its share, at
    /// least one.
    pub const fn reserve(&self) -> usize {
        let tenth = self.per_identity / 10;
        if tenth == 0 { 1 } else { tenth }
    }

    /// Fails if there is no room for one more entry, if the identity has `own` entries and all
    /// identities have `all`.
    pub fn admit(&self, what: &'static str, own: usize, all: usize) -> Result<(), Full> {
        let (scope, limit) = if own >= self.per_identity {
            (BoundScope::Identity, self.per_identity)
        } else if all >= self.total
            && (own >= self.reserve() || all >= self.total.saturating_mul(2))
        {
            (BoundScope::All, self.total)
        } else {
            return Ok(());
        };
        Err(Full { setting: self.setting, ..Full::new(what, scope, limit) })
    }
}

/// The identity that holds the most entries, and makes room when the total is reached.
pub(crate) fn largest_holder<'a>(identities: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut entries: HashMap<&str, usize> = HashMap::new();
    for identity in identities {
        *entries.entry(identity).or_default() += 1;
    }
    let largest = entries.into_iter().max_by_key(|(identity, count)| (*count, *identity));
    largest.map(|(identity, _)| identity.to_owned())
}

/// Which bound was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BoundScope {
    /// The bound of the requesting identity. Others are not affected.
    Identity,
    /// The bound of all identities together. The requesting identity holds more than its reserve,
    /// or all hold twice the bound.
    All,
}

/// A bound of a store was reached.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Full {
    /// What the bound counts, as a plural: `waiting calls`.
    pub what: &'static str,
    /// Which bound it is: that of one identity, or of all together.
    pub scope: BoundScope,
    /// The bound.
    pub limit: usize,
    /// When an entry will expire and make room, if known.
    pub retry_after: Option<Duration>,
    /// The configuration key of the bound, if there is one.
    pub setting: Option<&'static str>,
}

impl Full {
    /// The bound of `limit` entries was reached.
    pub const fn new(what: &'static str, scope: BoundScope, limit: usize) -> Self {
        Self { what, scope, limit, retry_after: None, setting: None }
    }

    /// Sets when there will be room.
    #[must_use]
    pub const fn with_retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// Sets the configuration key of the bound.
    #[must_use]
    pub const fn with_setting(mut self, key: &'static str) -> Self {
        self.setting = Some(key);
        self
    }
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, limit, .. } = self;
        match self.scope {
            BoundScope::Identity => {
                write!(f, "this client has {limit} {what}, which is its limit")?;
            }
            BoundScope::All => {
                write!(f, "there are {limit} {what}, which is the limit of all clients")?;
            }
        }
        if let Some(setting) = self.setting {
            write!(f, " (`{setting}`)")?;
        }
        Ok(())
    }
}

impl std::error::Error for Full {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_says_which_bound_was_reached_and_whose() {
        let bounds = Bounds::per_identity(2).with_total(3);
        assert_eq!(bounds.admit("waiting calls", 1, 2), Ok(()));
        let own = bounds.admit("waiting calls", 2, 2).expect_err("it has two");
        assert_eq!(own.to_string(), "this client has 2 waiting calls, which is its limit");
        let all = bounds.admit("waiting calls", 1, 3).expect_err("there are three");
        let all = all.with_setting("limits.per_client.runs");
        assert_eq!(
            all.to_string(),
            "there are 3 waiting calls, which is the limit of all clients (`limits.per_client.runs`)"
        );
    }
    #[test]
    fn an_identity_below_its_reserve_gets_in_until_all_hold_twice_their_bound() {
        let bounds = Bounds::per_identity(20).with_total(40);
        assert_eq!(bounds.reserve(), 2);
        assert_eq!(bounds.admit("runs", 1, 40), Ok(()));
        let refused = bounds.admit("runs", 2, 41).expect_err("it has its reserve");
        assert_eq!((refused.scope, refused.limit), (BoundScope::All, 40));
        assert_eq!(bounds.admit("runs", 0, 79), Ok(()));
        assert!(bounds.admit("runs", 0, 80).is_err());
        assert_eq!(Bounds::per_identity(0).admit("runs", 0, 0).expect_err("none").limit, 0);
    }
}
