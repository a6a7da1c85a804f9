//! The sessions over HTTP: which of too many has to go, and in which messages may be plain.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use crate::connection::Connection;

/// Sessions at once. Some take no more than what they remember, some a few tasks.
const SESSIONS_MAX: usize = 1_024;
/// After so long the protocol library is given a message of a session again, so that it does not take it
/// for one of which nothing is heard.
const UNHEARD: Duration = Duration::from_secs(60 * 60);

/// The sessions of one service. One that ends without a word of its client is known until it is the
/// least recently used of too many.
#[derive(Default)]
pub(crate) struct KnownSessions(Mutex<HashMap<Box<str>, Known>>);

struct Known {
    used: Instant,
    /// When the protocol library heard of it last.
    heard: Instant,
    /// Its client's, once hands have been shaken. It lives as long as the session does.
    connection: Weak<Connection>,
}

impl KnownSessions {
    fn known(&self) -> MutexGuard<'_, HashMap<Box<str>, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the protocol library has answered a message of a session; returns the session that has
    /// to go, if there are too many.
    pub(crate) fn heard(&self, id: &str) -> Option<Box<str>> {
        let mut known = self.known();
        let now = Instant::now();
        if let Some(session) = known.get_mut(id) {
            (session.used, session.heard) = (now, now);
            return None;
        }
        let session = Known { used: now, heard: now, connection: Weak::new() };
        known.insert(id.into(), session);
        if known.len() <= SESSIONS_MAX {
            return None;
        }
        let oldest = known.iter().min_by_key(|(_, session)| session.used)?.0.clone();
        known.remove(&oldest);
        Some(oldest)
    }

    /// Notes that a client has shaken hands in a session.
    pub(crate) fn shook_hands(&self, id: &str, connection: &Arc<Connection>) {
        if let Some(session) = self.known().get_mut(id) {
            session.connection = Arc::downgrade(connection);
        }
    }

    /// Notes another use of a session: the connection of its client, if the protocol library need not
    /// hear of it.
    pub(crate) fn used(&self, id: &str) -> Option<Arc<Connection>> {
        let mut known = self.known();
        let session = known.get_mut(id)?;
        if session.heard.elapsed() > UNHEARD {
            return None;
        }
        let connection = session.connection.upgrade()?;
        session.used = Instant::now();
        Some(connection)
    }

    /// A session is over.
    pub(crate) fn ended(&self, id: &str) {
        self.known().remove(id);
    }
}

#[cfg(test)]
mod tests {
    use toolcrib_core::{Executor, Registry};

    use super::*;
    use crate::{McpOptions, McpServer};

    fn connection() -> Arc<Connection> {
        let registry: Registry = Registry::scratch().build().unwrap();
        let executor = Executor::builder(registry).build();
        Arc::new(Connection::new(&McpServer::new(executor, McpOptions::default())))
    }

    #[test]
    fn the_least_recently_used_of_too_many_sessions_goes() {
        let sessions = KnownSessions::default();
        for number in 0..SESSIONS_MAX {
            assert_eq!(sessions.heard(&number.to_string()), None);
        }
        // Used again, the first two are not the oldest any more.
        assert_eq!(sessions.heard("0"), None);
        let connection = connection();
        sessions.shook_hands("1", &connection);
        assert!(sessions.used("1").is_some());
        assert_eq!(sessions.heard("new").as_deref(), Some("2"));
        assert_eq!(sessions.known().len(), SESSIONS_MAX);
    }

    #[test]
    fn messages_may_be_plain_from_the_handshake_to_the_end_of_the_session() {
        let sessions = KnownSessions::default();
        let own = connection();
        sessions.shook_hands("unknown", &own);
        assert!(sessions.used("unknown").is_none());
        sessions.heard("a");
        assert!(sessions.used("a").is_none());
        sessions.shook_hands("a", &own);
        assert!(sessions.used("a").is_some_and(|found| Arc::ptr_eq(&found, &own)));
        sessions.ended("a");
        assert!(sessions.used("a").is_none());
        sessions.heard("b");
        sessions.shook_hands("b", &own);
        drop(own);
        assert!(sessions.used("b").is_none());
    }
}
