//! Pages that were fetched before, for each identity separately.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use toolcrib_net::Response;
use toolcrib_net::header::{CACHE_CONTROL, ETAG, HeaderName, HeaderValue, LAST_MODIFIED};
use toolcrib_tool::CallContext;

use super::fetch::Page;

/// Bytes of the pages of one identity, and of all.
const OWNER_BYTES: usize = 8 * 1024 * 1024;
const TOTAL_BYTES: usize = 64 * 1024 * 1024;
/// Pages of all identities.
const PAGES: usize = 1024;

/// For whom a page was fetched: tenant and user.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Owner(Option<String>, Option<String>);

impl Owner {
    pub(crate) fn of(cx: &CallContext) -> Self {
        Self(cx.tenant().map(Into::into), cx.user().map(Into::into))
    }
}

/// What a server said about using its answer again.
#[derive(Debug, Clone, Default)]
pub(super) struct Validators {
    etag: Option<HeaderValue>,
    last_modified: Option<HeaderValue>,
}

impl Validators {
    pub(super) fn of(response: &Response) -> Self {
        let header = |name: HeaderName| response.headers.get(name).cloned();
        Self { etag: header(ETAG), last_modified: header(LAST_MODIFIED) }
    }

    /// The headers that ask for the page only if it has changed.
    pub(super) fn conditions(&self) -> Vec<(HeaderName, HeaderValue)> {
        let name = HeaderName::from_static;
        let etag = self.etag.clone().map(|value| (name("if-none-match"), value));
        let date = self.last_modified.clone().map(|value| (name("if-modified-since"), value));
        etag.into_iter().chain(date).collect()
    }

    fn is_empty(&self) -> bool {
        self.etag.is_none() && self.last_modified.is_none()
    }
}

/// How long an answer is used without asking; `None` if it must not be kept.
pub(super) fn fresh_for(response: &Response, ttl: Duration) -> Option<Duration> {
    let said = response.headers.get_all(CACHE_CONTROL).iter().filter_map(|one| one.to_str().ok());
    let said: Vec<String> =
        said.flat_map(|one| one.split(',')).map(|one| one.trim().to_ascii_lowercase()).collect();
    if said.iter().any(|one| one == "no-store") {
        return None;
    }
    if said.iter().any(|one| one == "no-cache") {
        return Some(Duration::ZERO);
    }
    let age = said.iter().find_map(|one| one.strip_prefix("max-age=")?.parse().ok());
    Some(age.map_or(ttl, |age| ttl.min(Duration::from_secs(age))))
}

/// A page that was fetched before.
pub(super) struct CachedPage {
    pub(super) page: Arc<Page>,
    pub(super) validators: Validators,
    /// Whether it can be used without asking its server.
    pub(super) is_fresh: bool,
}

struct Entry {
    page: Arc<Page>,
    validators: Validators,
    fresh_until: Instant,
    used: u64,
}

#[derive(Default)]
struct Entries {
    pages: HashMap<(Owner, String), Entry>,
    clock: u64,
}

/// A bounded cache of pages; the least recently used go first.
#[derive(Default)]
pub(crate) struct PageCache(Mutex<Entries>);

impl PageCache {
    pub(super) fn get(&self, owner: &Owner, url: &str) -> Option<CachedPage> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.clock += 1;
        let clock = entries.clock;
        let entry = entries.pages.get_mut(&(owner.clone(), url.to_owned()))?;
        entry.used = clock;
        Some(CachedPage {
            page: Arc::clone(&entry.page),
            validators: entry.validators.clone(),
            is_fresh: Instant::now() < entry.fresh_until,
        })
    }

    /// Keeps a page, if it can be used again.
    pub(super) fn put(
        &self,
        owner: &Owner,
        url: &str,
        page: &Arc<Page>,
        validators: Validators,
        fresh: Option<Duration>,
    ) {
        let key = (owner.clone(), url.to_owned());
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_usable = fresh.is_some_and(|fresh| !fresh.is_zero() || !validators.is_empty());
        let Some(fresh) = fresh.filter(|_| is_usable && page.text.len() <= OWNER_BYTES / 2) else {
            entries.pages.remove(&key);
            return;
        };
        entries.clock += 1;
        let now = Instant::now();
        let entry = Entry {
            page: Arc::clone(page),
            validators,
            fresh_until: now.checked_add(fresh).unwrap_or(now),
            used: entries.clock,
        };
        entries.pages.insert(key, entry);
        entries.make_room(owner);
    }
}

impl Entries {
    fn make_room(&mut self, owner: &Owner) {
        while self.bytes(Some(owner)) > OWNER_BYTES {
            self.drop_oldest(Some(owner));
        }
        while self.pages.len() > PAGES || self.bytes(None) > TOTAL_BYTES {
            self.drop_oldest(None);
        }
    }

    fn of<'a>(
        &'a self,
        owner: Option<&'a Owner>,
    ) -> impl Iterator<Item = (&'a (Owner, String), &'a Entry)> {
        self.pages.iter().filter(move |((own, _), _)| owner.is_none_or(|owner| own == owner))
    }

    fn bytes(&self, owner: Option<&Owner>) -> usize {
        self.of(owner).map(|(_, entry)| entry.page.text.len()).sum()
    }

    fn drop_oldest(&mut self, owner: Option<&Owner>) {
        let oldest = self.of(owner).min_by_key(|(_, entry)| entry.used);
        if let Some(key) = oldest.map(|(key, _)| key.clone()) {
            self.pages.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(name: &str) -> Owner {
        Owner(None, Some(name.to_owned()))
    }

    #[test]
    fn the_oldest_pages_of_an_identity_make_room_for_its_new_ones_only() {
        let (cache, ttl) = (PageCache::default(), Some(Duration::from_secs(60)));
        let page = Arc::new(Page::of_text("https://a.example/", "x".repeat(OWNER_BYTES / 3)));
        let put = |who: &str, url: &str| {
            cache.put(&owner(who), url, &page, Validators::default(), ttl);
        };
        put("ada", "1");
        put("bob", "1");
        put("ada", "2");
        put("ada", "3");
        assert!(cache.get(&owner("ada"), "1").is_some());
        put("ada", "4");
        let has = |who: &str, url: &str| cache.get(&owner(who), url).is_some();
        assert!(has("ada", "1") && !has("ada", "2") && has("ada", "3") && has("ada", "4"));
        assert!(has("bob", "1") && !has("bob", "2"));
    }

    #[test]
    fn a_page_that_may_not_be_kept_is_forgotten() {
        let cache = PageCache::default();
        let page = Arc::new(Page::of_text("https://a.example/", "x".to_owned()));
        let put = |fresh| cache.put(&owner("ada"), "1", &page, Validators::default(), fresh);
        put(Some(Duration::from_secs(60)));
        assert!(cache.get(&owner("ada"), "1").is_some_and(|cached| cached.is_fresh));
        put(None);
        assert!(cache.get(&owner("ada"), "1").is_none());
        // Without a validator it could never be used.
        put(Some(Duration::ZERO));
        assert!(cache.get(&owner("ada"), "1").is_none());
    }
}
