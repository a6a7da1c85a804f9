//! The rules of hosts that were asked recently.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use toolcrib_net::{Method, NamedBy, Request, Target};

use super::robots::RobotsRules;
use crate::service::WebState;

/// How long rules are used.
const TTL: Duration = Duration::from_secs(60 * 60);
/// How long the failure to get them is remembered.
const FAILURE_TTL: Duration = Duration::from_secs(60);
const MAX_HOSTS: usize = 256;
/// RFC 9309 wants at least this much to be read.
const MAX_BYTES: usize = 512 * 1024;
const TIMEOUT: Duration = Duration::from_secs(10);

/// The rules of hosts, by origin. They are public, so all identities share them.
#[derive(Default)]
pub(crate) struct RobotsCache(Mutex<HashMap<String, (Arc<RobotsRules>, Instant)>>);

impl RobotsCache {
    /// Whether `robots.txt` of the URL's server allows to fetch it. A server whose `robots.txt` cannot be read allows
    /// nothing; one that has none allows everything.
    pub(super) async fn allows(&self, web: &WebState, target: &Target) -> bool {
        let origin = target.origin();
        let rules = if let Some(rules) = self.known(&origin) {
            rules
        } else {
            let (rules, ttl) = fetched(web, &origin).await;
            self.keep(&origin, &rules, ttl);
            rules
        };
        let url = target.url();
        let path = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        rules.allow(&path)
    }

    fn known(&self, origin: &str) -> Option<Arc<RobotsRules>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (rules, until) = known.get(origin)?;
        (Instant::now() < *until).then(|| Arc::clone(rules))
    }

    fn keep(&self, origin: &str, rules: &Arc<RobotsRules>, ttl: Duration) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if known.len() >= MAX_HOSTS {
            known.retain(|_, (_, until)| now < *until);
            let first =
                known.iter().min_by_key(|(_, (_, until))| *until).map(|(key, _)| key.clone());
            if let Some(first) = first.filter(|_| known.len() >= MAX_HOSTS) {
                known.remove(&first);
            }
        }
        known.insert(origin.to_owned(), (Arc::clone(rules), now + ttl));
    }
}

async fn fetched(web: &WebState, origin: &str) -> (Arc<RobotsRules>, Duration) {
    let nothing = || (Arc::new(RobotsRules::nothing()), FAILURE_TTL);
    // The origin is that of a URL whose host was checked; its address is checked when it is dialled.
    let Ok(target) = Target::parse(&format!("{origin}/robots.txt"), NamedBy::Anybody) else {
        return nothing();
    };
    let _turn = web.hosts.permit(&target.host()).await;
    let request = Request::new(Method::GET, target).timeout(TIMEOUT).max_bytes(MAX_BYTES);
    match web.pages.send(request).await {
        Ok(response) if response.status.is_success() => {
            let text = String::from_utf8_lossy(&response.body);
            (Arc::new(RobotsRules::parse(&text)), TTL)
        }
        Ok(response) if response.status.is_client_error() && response.status.as_u16() != 429 => {
            (Arc::default(), TTL)
        }
        // The page cannot be reached either, and its own error says why.
        Err(error) if error.nothing_was_sent() => (Arc::default(), Duration::ZERO),
        _ => nothing(),
    }
}
