//! The HTTP sessions of one client: how many there may be, and when idle ones end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use rmcp::transport::streamable_http_server::session::SessionManager as _;
use tokio::sync::watch;

use crate::session::streams::SessionStreams;

/// The default limit of sessions per client.
const SESSIONS_MAX: usize = 256;
/// The default time without use after which a session ends.
const IDLE_LIMIT: Duration = Duration::from_secs(30 * 60);
/// The longest interval between two sweeps for expired sessions.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);

/// The HTTP sessions of one client, across all its services. Clones are cheap and share the
/// sessions.
///
/// When a client opens one session too many, its least recently used session ends. A session also
/// ends after a time without use, unless the client listens to one of its streams. A client that
/// names a session that has ended gets status 404 and opens another one.
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
pub struct McpSessions(Arc<SessionRegistry>);

impl Default for McpSessions {
    /// At most 256 sessions, which end after 30 minutes without use.
    fn default() -> Self {
        Self::of_at_most(SESSIONS_MAX)
    }
}

impl McpSessions {
    /// Creates a limit of this many sessions at once.
    pub fn of_at_most(sessions: usize) -> Self {
        Self::with(sessions.max(1), IDLE_LIMIT)
    }

    /// The same limit for new sessions, which end after another time without use.
    #[must_use]
    pub fn idle(self, time: Duration) -> Self {
        Self::with(self.0.most, time)
    }

    /// The sessions of another client, with the same limits.
    #[must_use]
    pub fn for_another_client(&self) -> Self {
        Self::with(self.0.most, self.0.idle)
    }

    fn with(most: usize, idle: Duration) -> Self {
        Self(Arc::new(SessionRegistry { most, idle, state: Mutex::default() }))
    }

    pub(crate) fn known(&self) -> &Arc<SessionRegistry> {
        &self.0
    }
}

impl std::fmt::Debug for McpSessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let SessionRegistry { most, idle, .. } = &*self.0;
        f.debug_struct("McpSessions")
            .field("most", most)
            .field("idle", idle)
            .finish_non_exhaustive()
    }
}

/// The sessions that are known.
pub(crate) struct SessionRegistry {
    most: usize,
    idle: Duration,
    state: Mutex<SessionTable>,
}

#[derive(Default)]
struct SessionTable {
    sessions: HashMap<Box<str>, SessionEntry>,
    /// Whether a task sweeps for expired sessions.
    is_watched: bool,
}

struct SessionEntry {
    used: Instant,
    /// The number of answers and streams that its client is reading.
    open: usize,
    /// The number of open common streams among them.
    listening: watch::Sender<usize>,
    /// The manager through which it can be ended.
    manager: Weak<SessionStreams>,
}

/// A session that has to be closed.
#[derive(Debug)]
pub(crate) struct EvictedSession {
    id: Box<str>,
    manager: Weak<SessionStreams>,
}

impl EvictedSession {
    /// Closes it: a client that names it from now on gets 404.
    pub(crate) async fn close(self) {
        if let Some(manager) = self.manager.upgrade() {
            // The session may have ended by itself.
            let _ = manager.close_session(&self.id.to_string().into()).await;
        }
    }
}

impl SessionRegistry {
    fn state(&self) -> MutexGuard<'_, SessionTable> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a session was used; returns the session to close if this one is new and there
    /// are too many.
    pub(crate) fn record_use(
        &self,
        id: &str,
        manager: &Arc<SessionStreams>,
    ) -> Option<EvictedSession> {
        let mut state = self.state();
        let now = Instant::now();
        if let Some(session) = state.sessions.get_mut(id) {
            session.used = now;
            return None;
        }
        let too_many = state.sessions.len() >= self.most;
        let oldest = too_many.then(|| {
            // A session without a listener is closed before one whose client is connected.
            let order = |session: &SessionEntry| (session.open > 0, session.used);
            let oldest = state.sessions.iter().min_by_key(|(_, session)| order(session));
            oldest.map(|(id, _)| id.clone())
        });
        let ended = oldest.flatten().and_then(|id| state.end(&id));
        let manager = Arc::downgrade(manager);
        let listening = watch::Sender::new(0);
        let session = SessionEntry { used: now, open: 0, listening, manager };
        state.sessions.insert(id.into(), session);
        ended
    }

    /// Records that a session's handshake is complete; returns the number of streams its client
    /// listens to.
    pub(crate) fn handshake_completed(&self, id: &str) -> Option<watch::Receiver<usize>> {
        Some(self.state().sessions.get(id)?.listening.subscribe())
    }

    /// Records that a session has ended.
    pub(crate) fn ended(&self, id: &str) {
        self.state().sessions.remove(id);
    }

    /// Records that a client reads an answer of a session, or listens to its common stream, until
    /// the guard is dropped.
    pub(crate) fn reading(self: &Arc<Self>, id: &str, listens: bool) -> SessionReader {
        if let Some(session) = self.state().sessions.get_mut(id) {
            session.open += 1;
            session.listening.send_modify(|streams| *streams += usize::from(listens));
        }
        SessionReader { known: Arc::clone(self), id: id.into(), listens }
    }

    /// Starts a task that closes unused sessions. It ends when there are none.
    pub(crate) fn watch(self: &Arc<Self>) {
        if std::mem::replace(&mut self.state().is_watched, true) {
            return;
        }
        let known = Arc::downgrade(self);
        let pause = (self.idle / 4).clamp(Duration::from_millis(10), SWEEP_INTERVAL);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(pause).await;
                let Some(known) = known.upgrade() else { return };
                let Some(idle) = known.take_idle() else { return };
                for session in idle {
                    tracing::debug!("an unused session was closed");
                    session.close().await;
                }
            }
        });
    }

    /// Takes out the sessions that have to be closed, and cleans up after those that have ended;
    /// `None` when no session is left.
    fn take_idle(&self) -> Option<Vec<EvictedSession>> {
        let mut state = self.state();
        // The manager is gone if the service has ended, and the session with it.
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
        let mut cleaned: Vec<*const SessionStreams> = Vec::new();
        for manager in managers {
            if !cleaned.contains(&Arc::as_ptr(&manager)) {
                manager.remove_expired();
                cleaned.push(Arc::as_ptr(&manager));
            }
        }
        Some(ended)
    }
}

impl SessionTable {
    fn end(&mut self, id: &str) -> Option<EvictedSession> {
        let session = self.sessions.remove(id)?;
        Some(EvictedSession { id: id.into(), manager: session.manager })
    }
}

/// A client that reads an answer or a stream of a session.
pub(crate) struct SessionReader {
    known: Arc<SessionRegistry>,
    id: Box<str>,
    listens: bool,
}

impl Drop for SessionReader {
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

    fn ended(session: Option<EvictedSession>) -> Option<String> {
        session.map(|session| session.id.into())
    }

    #[test]
    fn the_least_recently_used_session_of_a_client_makes_room_for_a_new_one() {
        let manager = manager();
        let sessions = McpSessions::of_at_most(4);
        let known = sessions.known();
        for number in 0..4 {
            assert!(known.record_use(&number.to_string(), &manager).is_none());
        }
        // After this, the first two sessions are recently used, and somebody listens to the third.
        assert!(known.record_use("0", &manager).is_none());
        assert!(known.handshake_completed("1").is_some());
        assert!(known.record_use("1", &manager).is_none());
        let listening = known.reading("2", true);
        assert_eq!(ended(known.record_use("new", &manager)).as_deref(), Some("3"));
        drop(listening);
        assert_eq!(known.state().sessions.len(), 4);
        // Sessions of another client are not affected.
        let other = sessions.for_another_client();
        assert!(other.known().record_use("0", &manager).is_none());
    }

    #[test]
    fn a_handshake_is_known_until_its_session_ends() {
        let (manager, sessions) = (manager(), McpSessions::default());
        let known = sessions.known();
        assert!(known.handshake_completed("unknown").is_none());
        known.record_use("a", &manager);
        assert!(known.handshake_completed("a").is_some());
        known.ended("a");
        assert!(known.handshake_completed("a").is_none());
    }

    #[test]
    fn an_unused_session_ends_unless_it_is_being_read() {
        let manager = manager();
        let sessions = McpSessions::default().idle(Duration::ZERO);
        let known = sessions.known();
        known.record_use("left", &manager);
        known.record_use("read", &manager);
        let reading = known.reading("read", false);
        let over: Vec<_> = known.take_idle().unwrap().into_iter().map(|one| one.id).collect();
        assert_eq!(over, ["left".into()]);
        drop(reading);
        assert_eq!(known.take_idle().unwrap().len(), 1);
        assert!(known.take_idle().is_none());
    }
}
