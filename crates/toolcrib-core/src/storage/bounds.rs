//! How much a store keeps of one identity and of all together, and the error at a bound.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

/// How many entries a store keeps.
///
/// Identities cannot fill each other's shares, neither one nor many together: when all have reached
/// `total`, an identity that holds less than its [`reserve`](Self::reserve) still gets in, up to twice
/// the total. Expired entries make room first.
///
/// ```
/// use toolcrib_core::bounds::Bounds;
///
/// let bounds = Bounds::per_identity(100);
/// assert_eq!((bounds.per_identity, bounds.total, bounds.reserve()), (100, 1_000, 10));
/// // Ten others are at their bounds: a newcomer has its reserve.
/// assert!(bounds.admit("runs", 0, 1_000).is_ok());
/// assert!(bounds.admit("runs", 10, 1_010).is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bounds {
    /// Entries of one identity. Default 1,000.
    pub per_identity: usize,
    /// Entries of all identities together, beyond which each has its [`reserve`](Self::reserve) only.
    /// Default 10,000.
    pub total: usize,
    /// The key in the host's settings that changes them, for the error at a bound. Default: none.
    pub setting: Option<&'static str>,
}

impl Default for Bounds {
    fn default() -> Self {
        Self::per_identity(1_000)
    }
}

impl Bounds {
    /// So many entries of one identity, and ten times as many of all.
    pub const fn per_identity(entries: usize) -> Self {
        let total = entries.saturating_mul(10);
        Self { per_identity: entries, total, setting: None }
    }

    /// The same with another bound on the entries of all identities.
    #[must_use]
    pub const fn with_total(mut self, entries: usize) -> Self {
        self.total = entries;
        self
    }

    /// The same, changed by this key of the host's settings.
    #[must_use]
    pub const fn named(mut self, setting: &'static str) -> Self {
        self.setting = Some(setting);
        self
    }

    /// Entries that an identity may have although all identities together have reached the total: a
    /// tenth of its share, and at least one.
    pub const fn reserve(&self) -> usize {
        let tenth = self.per_identity / 10;
        if tenth == 0 { 1 } else { tenth }
    }

    /// Fails if there is no room for one entry more, where one identity has `own` and all have `all`.
    pub fn admit(&self, what: &'static str, own: usize, all: usize) -> Result<(), Full> {
        let (whose, limit) = if own >= self.per_identity {
            (Whose::Identity, self.per_identity)
        } else if all >= self.total
            && (own >= self.reserve() || all >= self.total.saturating_mul(2))
        {
            (Whose::All, self.total)
        } else {
            return Ok(());
        };
        Err(Full { setting: self.setting, ..Full::new(what, whose, limit) })
    }
}

/// The identity that holds the most entries: the one that makes room where all hold too many.
pub(crate) fn largest_holder<'a>(identities: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut entries: HashMap<&str, usize> = HashMap::new();
    for identity in identities {
        *entries.entry(identity).or_default() += 1;
    }
    let largest = entries.into_iter().max_by_key(|(identity, count)| (*count, *identity));
    largest.map(|(identity, _)| identity.to_owned())
}

/// Whose bound was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Whose {
    /// That of the identity that asks. Others are not affected.
    Identity,
    /// That of all identities together. The identity that asks holds more than its reserve, or all
    /// hold twice their bound.
    All,
}

/// A store holds as much as it may: which bound was reached, and whose.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Full {
    /// What there is too much of, as a plural: `waiting calls`.
    pub what: &'static str,
    /// Whose bound it is.
    pub whose: Whose,
    /// The bound.
    pub limit: usize,
    /// After how long an entry expires and makes room, where the store knows it.
    pub retry_after: Option<Duration>,
    /// The key in the host's settings that changes the bound, where there is one.
    pub setting: Option<&'static str>,
}

impl Full {
    /// The bound of `limit` entries was reached.
    pub const fn new(what: &'static str, whose: Whose, limit: usize) -> Self {
        Self { what, whose, limit, retry_after: None, setting: None }
    }

    /// Says when there will be room.
    #[must_use]
    pub const fn with_retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// Says which key of the settings changes the bound.
    #[must_use]
    pub const fn with_setting(mut self, key: &'static str) -> Self {
        self.setting = Some(key);
        self
    }
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, limit, .. } = self;
        match self.whose {
            Whose::Identity => write!(f, "this client has {limit} {what}, which is its limit")?,
            Whose::All => write!(f, "there are {limit} {what}, which is the limit of all clients")?,
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
        assert_eq!((refused.whose, refused.limit), (Whose::All, 40));
        assert_eq!(bounds.admit("runs", 0, 79), Ok(()));
        assert!(bounds.admit("runs", 0, 80).is_err());
        assert_eq!(Bounds::per_identity(0).admit("runs", 0, 0).expect_err("none").limit, 0);
    }
}
