//! The sessions of one client over HTTP: how many there may be, and which have ended.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use rmcp::transport::streamable_http_server::session::SessionManager as _;
use tokio::sync::watch;

use crate::session::streams::SessionStreams;

/// Sessions of one client at once, where nothing else is said.
const SESSIONS: usize = 256;
/// A session that its client has not used for so long is over, where nothing else is said.
const IDLE: Duration = Duration::from_secs(30 * 60);
/// The longest time between two looks for sessions that are over.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// The sessions of one client over HTTP, however many services it has. Cloning it is cheap; clones are the
/// same sessions.
///
/// When a client begins one session too many, its least recently used one ends. A session that its client
/// has not used for a while ends as well, unless the client is listening to a stream of it. A client that
/// names a session that has ended gets status 404 and begins another one.
///
/// ```
/// use std::time::Duration;
/// use toolcrib_mcp::{McpHttpOptions, McpSessions};
///
/// let sessions = McpSessions::of_at_most(100).idle(Duration::from_secs(600));
/// let options = McpHttpOptions::default().sessions(sessions);
/// # let _ = options;
/// ```
#[derive(Clone)]
pub struct McpSessions(Arc<KnownSessions>);

impl Default for McpSessions {
    /// At most 256 sessions, which end after 30 minutes without use.
    fn default() -> Self {
        Self::of_at_most(SESSIONS)
    }
}

impl McpSessions {
    /// At most so many at once.
    pub fn of_at_most(sessions: usize) -> Self {
        Self::with(sessions.max(1), IDLE)
    }

    /// The same bound for new sessions, which end after another time without use.
    #[must_use]
    pub fn idle(self, time: Duration) -> Self {
        Self::with(self.0.most, time)
    }

    /// Sessions of another client, within the same bounds.
    #[must_use]
    pub fn for_another_client(&self) -> Self {
        Self::with(self.0.most, self.0.idle)
    }

    fn with(most: usize, idle: Duration) -> Self {
        Self(Arc::new(KnownSessions { most, idle, state: Mutex::default() }))
    }

    pub(crate) fn known(&self) -> &Arc<KnownSessions> {
        &self.0
    }
}

impl std::fmt::Debug for McpSessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let KnownSessions { most, idle, .. } = &*self.0;
        f.debug_struct("McpSessions")
            .field("most", most)
            .field("idle", idle)
            .finish_non_exhaustive()
    }
}

/// What is known of them.
pub(crate) struct KnownSessions {
    most: usize,
    idle: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    sessions: HashMap<Box<str>, Known>,
    /// Whether somebody looks for those that are over.
    is_watched: bool,
}

struct Known {
    used: Instant,
    /// Answers and streams that its client is reading.
    open: usize,
    /// How many of these are streams of what the session tells without being asked.
    listening: watch::Sender<usize>,
    /// Where it can be ended.
    manager: Weak<SessionStreams>,
}

/// A session that has to end.
#[derive(Debug)]
pub(crate) struct Ended {
    id: Box<str>,
    manager: Weak<SessionStreams>,
}

impl Ended {
    /// Ends it: whoever names it from now on is told that there is none.
    pub(crate) async fn close(self) {
        if let Some(manager) = self.manager.upgrade() {
            // It may have ended by itself.
            let _ = manager.close_session(&self.id.to_string().into()).await;
        }
    }
}

impl KnownSessions {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a session was used; returns the one that has to end if it is new and there are too many.
    pub(crate) fn heard(&self, id: &str, manager: &Arc<SessionStreams>) -> Option<Ended> {
        let mut state = self.state();
        let now = Instant::now();
        if let Some(session) = state.sessions.get_mut(id) {
            session.used = now;
            return None;
        }
        let too_many = state.sessions.len() >= self.most;
        let oldest = too_many.then(|| {
            // One that nobody listens to goes before one whose client is there.
            let order = |session: &Known| (session.open > 0, session.used);
            let oldest = state.sessions.iter().min_by_key(|(_, session)| order(session));
            oldest.map(|(id, _)| id.clone())
        });
        let ended = oldest.flatten().and_then(|id| state.end(&id));
        let manager = Arc::downgrade(manager);
        let listening = watch::Sender::new(0);
        let session = Known { used: now, open: 0, listening, manager };
        state.sessions.insert(id.into(), session);
        ended
    }

    /// Notes that a client has shaken hands in a session; gives how many streams it listens to.
    pub(crate) fn shook_hands(&self, id: &str) -> Option<watch::Receiver<usize>> {
        Some(self.state().sessions.get(id)?.listening.subscribe())
    }

    /// A session is over.
    pub(crate) fn ended(&self, id: &str) {
        self.state().sessions.remove(id);
    }

    /// Notes that a client reads an answer of a session, or listens to what it tells without being asked,
    /// until the guard is dropped.
    pub(crate) fn reading(self: &Arc<Self>, id: &str, listens: bool) -> Reading {
        if let Some(session) = self.state().sessions.get_mut(id) {
            session.open += 1;
            session.listening.send_modify(|streams| *streams += usize::from(listens));
        }
        Reading { known: Arc::clone(self), id: id.into(), listens }
    }

    /// Ends sessions that are not used, from now on until there is none. The task lives no longer than
    /// the sessions do.
    pub(crate) fn watch(self: &Arc<Self>) {
        if std::mem::replace(&mut self.state().is_watched, true) {
            return;
        }
        let known = Arc::downgrade(self);
        let pause = (self.idle / 4).clamp(Duration::from_millis(10), LOOK_EVERY);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(pause).await;
                let Some(known) = known.upgrade() else { return };
                let Some(idle) = known.idle_ones() else { return };
                for session in idle {
                    tracing::debug!("a session that was not used for a while is ended");
                    session.close().await;
                }
            }
        });
    }

    /// The sessions that have to end, and tidies up after those that ended; `None` once there is none
    /// left to look after.
    fn idle_ones(&self) -> Option<Vec<Ended>> {
        let mut state = self.state();
        // One whose manager is gone has ended with its service.
        state.sessions.retain(|_, session| session.manager.strong_count() > 0);
        if state.sessions.is_empty() {
            state.is_watched = false;
            return None;
        }
        let managers = state.sessions.values().filter_map(|session| session.manager.upgrade());
        let managers: Vec<_> = managers.collect();
        let idle = state
            .sessions
            .iter()
            .filter(|(_, session)| session.open == 0 && session.used.elapsed() >= self.idle);
        let ids: Vec<_> = idle.map(|(id, _)| id.clone()).collect();
        let ended = ids.iter().filter_map(|id| state.end(id)).collect();
        drop(state);
        let mut tidied: Vec<*const SessionStreams> = Vec::new();
        for manager in managers {
            if !tidied.contains(&Arc::as_ptr(&manager)) {
                manager.tidy();
                tidied.push(Arc::as_ptr(&manager));
            }
        }
        Some(ended)
    }
}

impl State {
    fn end(&mut self, id: &str) -> Option<Ended> {
        let session = self.sessions.remove(id)?;
        Some(Ended { id: id.into(), manager: session.manager })
    }
}

/// A client that reads an answer or a stream of a session.
pub(crate) struct Reading {
    known: Arc<KnownSessions>,
    id: Box<str>,
    listens: bool,
}

impl Drop for Reading {
    fn drop(&mut self) {
        if let Some(session) = self.known.state().sessions.get_mut(&self.id) {
            session.open = session.open.saturating_sub(1);
            let gone = usize::from(self.listens);
            session.listening.send_modify(|streams| *streams = streams.saturating_sub(gone));
            session.used = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manager() -> Arc<SessionStreams> {
        Arc::new(SessionStreams::new(Duration::from_secs(1), None))
    }

    fn ended(session: Option<Ended>) -> Option<String> {
        session.map(|session| session.id.into())
    }

    #[test]
    fn the_least_recently_used_session_of_a_client_makes_room_for_a_new_one() {
        let manager = manager();
        let sessions = McpSessions::of_at_most(4);
        let known = sessions.known();
        for number in 0..4 {
            assert!(known.heard(&number.to_string(), &manager).is_none());
        }
        // Used again, the first two are not the oldest any more; and somebody listens to the third.
        assert!(known.heard("0", &manager).is_none());
        assert!(known.shook_hands("1").is_some());
        assert!(known.heard("1", &manager).is_none());
        let listening = known.reading("2", true);
        assert_eq!(ended(known.heard("new", &manager)).as_deref(), Some("3"));
        drop(listening);
        assert_eq!(known.state().sessions.len(), 4);
        // Another client's sessions are not affected.
        let other = sessions.for_another_client();
        assert!(other.known().heard("0", &manager).is_none());
    }

    #[test]
    fn a_handshake_counts_from_the_beginning_to_the_end_of_its_session() {
        let (manager, sessions) = (manager(), McpSessions::default());
        let known = sessions.known();
        assert!(known.shook_hands("unknown").is_none());
        known.heard("a", &manager);
        assert!(known.shook_hands("a").is_some());
        known.ended("a");
        assert!(known.shook_hands("a").is_none());
    }

    #[test]
    fn a_session_that_is_not_used_ends_and_one_that_is_read_does_not() {
        let manager = manager();
        let sessions = McpSessions::default().idle(Duration::ZERO);
        let known = sessions.known();
        known.heard("left", &manager);
        known.heard("read", &manager);
        let reading = known.reading("read", false);
        let over: Vec<_> = known.idle_ones().unwrap().into_iter().map(|one| one.id).collect();
        assert_eq!(over, ["left".into()]);
        drop(reading);
        assert_eq!(known.idle_ones().unwrap().len(), 1);
        assert!(known.idle_ones().is_none());
    }
}
