//! The task that supervises one upstream: it connects, lists tools, watches and reconnects.

use std::collections::BTreeMap;
use std::future::pending;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use toolcrib_core::RegistryError;

use super::backoff::Backoff;
use super::failure::Failure;
use super::link::Link;
use crate::upstream::connection::Connection;
use crate::upstream::offers::ServerOffer;
use crate::upstream::restart::{ProgramFiles, RESTARTING};
use crate::upstream::review::OfferedTool;
use crate::upstream::review::confidential::Confidential;
use crate::upstream::set::Inner;
use crate::upstream::settings::Upstream;
use crate::upstream::settings::declared::UpstreamDeclaration;
use crate::upstream::settings::selection::UnmatchedSetting;
use crate::upstream::status::UpstreamState;
use crate::upstream::tool::listing::{ListingError, ToolListing, UPSTREAM_TOOLS_MAX, list};
use crate::upstream::tool::publish::{Publisher, UnacceptedChange};

/// Debounce after a list-changed notification: more may follow for the same change.
const CHANGE_DEBOUNCE: Duration = Duration::from_millis(20);
/// The shortest time between two listings, for a server that reports changes all the time.
const LISTING_INTERVAL: Duration = Duration::from_millis(250);
/// How long a server that left a call unanswered may take to answer a probe.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);
/// The probe is delayed while other calls run: the server may handle one call at a time.
const PROBE_DELAY: Duration = Duration::from_secs(5);
/// How often to check whether somebody has accepted a definition.
const ACCEPTANCE_POLL: Duration = Duration::from_secs(2);

/// State of a supervisor that others read, and signals that they send to it.
#[derive(Debug)]
pub(crate) struct SupervisorState {
    pub(crate) state: watch::Sender<UpstreamState>,
    pub(crate) counts: Mutex<(usize, usize)>,
    /// How many of its tools are left out.
    pub(crate) left_out: AtomicUsize,
    /// The resources and prompts as the server lists them, whatever of them is offered.
    pub(crate) listed: Mutex<ServerOffer>,
    /// Filters and overrides that match nothing.
    pub(crate) unmatched: Mutex<Vec<UnmatchedSetting>>,
    /// The changed definitions that somebody could accept.
    pub(crate) unaccepted: Mutex<BTreeMap<String, UnacceptedChange>>,
    /// The tools as the server describes them.
    pub(crate) offered: Mutex<Vec<OfferedTool>>,
    /// Notified when the review or the pins may have changed.
    pub(crate) look_again: Notify,
    /// Notified when the connection is to be made anew.
    pub(crate) restart: Notify,
    /// The files that decide what its program runs, as they were at its start.
    pub(crate) files: Mutex<ProgramFiles>,
}

impl Default for SupervisorState {
    fn default() -> Self {
        Self {
            state: watch::Sender::new(UpstreamState::Connecting),
            counts: Mutex::default(),
            left_out: AtomicUsize::new(0),
            listed: Mutex::default(),
            unmatched: Mutex::default(),
            unaccepted: Mutex::default(),
            offered: Mutex::default(),
            look_again: Notify::new(),
            restart: Notify::new(),
            files: Mutex::default(),
        }
    }
}

/// How a connection ended.
enum ConnectionEnd {
    Lost(Failure),
    /// It is to be made anew at once.
    Restart,
    /// The supervisor is to stop.
    Stopped,
}

/// Supervises one upstream until it is told to stop.
pub(crate) struct Supervisor {
    pub(crate) upstream: Arc<Upstream>,
    /// Values to hide in the server's output.
    pub(crate) confidential: Confidential,
    pub(crate) link: Arc<Link>,
    pub(crate) shared: Arc<SupervisorState>,
    pub(crate) publisher: Publisher,
    /// The current declaration of the upstream.
    pub(crate) declared: watch::Receiver<UpstreamDeclaration>,
    /// The upstreams that this one is among.
    pub(crate) set: Weak<Inner>,
    /// Changes when another upstream may have got its names.
    pub(crate) first_attempts: watch::Receiver<()>,
    /// Whether tools are withheld because an earlier upstream may offer their names.
    pub(crate) withholds: bool,
    pub(crate) stop: CancellationToken,
}

impl Supervisor {
    /// Returns what the server last said about its tools.
    pub(crate) async fn run(mut self) -> Vec<Value> {
        self.publisher.take().await;
        if let Some(missing) = self.upstream.missing.clone() {
            self.down(Failure::new(missing), None);
            self.pause_for(None).await;
            return self.publisher.into_listed();
        }
        // Tools known under other settings cannot be called until they are known under these.
        self.publish_down();
        let mut backoff: Backoff = self.upstream.backoff;
        loop {
            let stop = self.stop.clone();
            let opened = tokio::select! {
                biased;
                // Dropping the future ends what it has started.
                () = stop.cancelled() => break,
                opened = self.connect() => opened,
            };
            let since = Instant::now();
            let failure = match opened {
                Ok(connection) => match self.serve(connection).await {
                    ConnectionEnd::Lost(failure) => failure,
                    ConnectionEnd::Restart => {
                        backoff = self.upstream.backoff;
                        self.down(Failure::new(RESTARTING), Some(Duration::ZERO));
                        continue;
                    }
                    ConnectionEnd::Stopped => break,
                },
                Err(failure) => failure,
            };
            let pause = backoff.next(since.elapsed());
            self.down(failure, Some(pause));
            if self.pause_for(Some(pause)).await {
                break;
            }
        }
        self.link.down("this program is ending, or no longer uses it");
        self.publisher.into_listed()
    }

    /// Waits for a delay, or for good without one. Returns whether to stop.
    async fn pause_for(&mut self, pause: Option<Duration>) -> bool {
        let stop = self.stop.clone();
        let shared = Arc::clone(&self.shared);
        let over = async {
            match pause {
                Some(pause) => tokio::select! {
                    () = sleep(pause) => {}
                    () = shared.restart.notified() => {}
                },
                None => pending().await,
            }
        };
        tokio::pin!(over);
        loop {
            tokio::select! {
                () = stop.cancelled() => return true,
                () = &mut over => return false,
                Ok(()) = self.declared.changed() => {
                    self.apply_declaration().await;
                    self.publish_down();
                    self.update_counts();
                }
                Ok(()) = self.first_attempts.changed() => self.publish_down(),
            }
        }
    }

    /// Opens a connection and takes over its tools.
    async fn connect(&mut self) -> Result<Connection, Failure> {
        let connection = Connection::open(&self.upstream, &self.confidential).await?;
        match list(&connection.live.peer, self.upstream.connect_timeout, &self.confidential).await {
            Ok(tools) => {
                // Never publish under settings that no longer apply.
                if self.declared.has_changed().unwrap_or(false) {
                    self.apply_declaration().await;
                }
                self.take(tools).await;
            }
            Err(ListingError::Refused(failure)) => {
                connection.close(&self.confidential).await;
                return Err(failure);
            }
            Err(ListingError::Silent(failure)) => {
                let ended = connection.close(&self.confidential).await;
                return Err(Failure { detail: ended.detail.or(failure.detail), ..failure });
            }
        }
        self.list_offer(&connection).await;
        self.shared
            .files
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone_from(&connection.files_at_start);
        self.link.up(Arc::clone(&connection.live));
        self.publish();
        tracing::info!(
            upstream = self.upstream.name,
            tools = self.publisher.counts().0,
            "connected to an MCP server"
        );
        Ok(connection)
    }

    /// Watches a connection until it ends.
    async fn serve(&mut self, mut connection: Connection) -> ConnectionEnd {
        let changed = Arc::clone(&connection.changed);
        let (link, shared) = (Arc::clone(&self.link), Arc::clone(&self.shared));
        let mut listed = Instant::now();
        let mut list_at: Option<Instant> = None;
        let mut probe_at: Option<Instant> = None;
        let mut needs_restart = pin!(connection.needs_restart(&self.upstream));
        loop {
            let wake = |at: Option<Instant>| sleep_until(at.unwrap_or_else(Instant::now));
            tokio::select! {
                () = self.stop.cancelled() => {
                    connection.close(&self.confidential).await;
                    return ConnectionEnd::Stopped;
                }
                () = shared.restart.notified() => {
                    connection.close(&self.confidential).await;
                    return ConnectionEnd::Restart;
                }
                () = connection.lost() => return ConnectionEnd::Lost(connection.close(&self.confidential).await),
                () = &mut needs_restart => {
                    connection.close(&self.confidential).await;
                    let reason = "it is being restarted: it could change files that decide what this \
                                  server runs";
                    return ConnectionEnd::Lost(Failure::new(reason));
                }
                () = changed.notified() => {
                    let earliest = (listed + LISTING_INTERVAL).max(Instant::now() + CHANGE_DEBOUNCE);
                    list_at.get_or_insert(earliest);
                }
                () = link.given_up.notified() => {
                    probe_at.get_or_insert_with(Instant::now);
                }
                () = wake(list_at), if list_at.is_some() => {
                    (list_at, listed) = (None, Instant::now());
                    let limit = self.upstream.connect_timeout;
                    if let Some(failure) = self.relist(&connection, limit).await {
                        connection.close(&self.confidential).await;
                        return ConnectionEnd::Lost(failure);
                    }
                }
                () = wake(probe_at), if probe_at.is_some() => {
                    if connection.live.progress.in_flight() > 0 {
                        probe_at = Some(Instant::now() + PROBE_DELAY);
                        continue;
                    }
                    (probe_at, listed) = (None, Instant::now());
                    let limit = self.upstream.connect_timeout.min(PROBE_TIMEOUT);
                    if self.relist(&connection, limit).await.is_some() {
                        connection.close(&self.confidential).await;
                        return ConnectionEnd::Lost(Failure::new("it stopped answering"));
                    }
                }
                () = shared.look_again.notified() => self.look_again().await,
                Ok(()) = self.declared.changed() => {
                    self.apply_declaration().await;
                    self.publish();
                    self.list_offer(&connection).await;
                }
                Ok(()) = self.first_attempts.changed() => self.publish(),
                () = sleep(ACCEPTANCE_POLL), if self.publisher.has_changed_tools() => {
                    self.look_again().await;
                }
            }
        }
    }

    /// Lists the tools again. Fails if the server does not answer; returns nothing if it is to
    /// stop.
    async fn relist(&mut self, connection: &Connection, limit: Duration) -> Option<Failure> {
        let answer = tokio::select! {
            () = self.stop.cancelled() => return None,
            answer = list(&connection.live.peer, limit, &self.confidential) => answer,
        };
        match answer {
            Ok(tools) => {
                self.take(tools).await;
                self.publish();
                self.list_offer(connection).await;
                None
            }
            Err(ListingError::Refused(failure)) => {
                tracing::warn!(
                    upstream = self.upstream.name,
                    %failure,
                    "the tool list could not be refreshed; the known tools stay"
                );
                self.list_offer(connection).await;
                None
            }
            Err(ListingError::Silent(failure)) => Some(failure),
        }
    }

    /// Lists the resources and prompts, if some are offered.
    async fn list_offer(&self, connection: &Connection) {
        let listed = tokio::select! {
            () = self.stop.cancelled() => return,
            listed = ServerOffer::list(&connection.live.peer, &self.upstream) => listed,
        };
        {
            let mut known = self.shared.listed.lock().unwrap_or_else(PoisonError::into_inner);
            if *known == listed {
                return;
            }
            *known = listed;
        }
        if let Some(set) = self.set.upgrade() {
            set.offers_changed();
        }
    }

    /// Takes over a list of tools and logs how many are left out.
    async fn take(&mut self, listed: ToolListing) {
        let ToolListing { tools, left_out } = listed;
        if left_out > 0 {
            tracing::warn!(
                upstream = self.upstream.name,
                left_out,
                "an MCP server lists more than {UPSTREAM_TOOLS_MAX} tools; the others are left out"
            );
        }
        self.shared.left_out.store(left_out, Ordering::Relaxed);
        self.publisher.list(tools).await;
    }

    async fn look_again(&mut self) {
        self.publisher.compare().await;
        self.publish();
    }

    fn publish(&mut self) {
        let is_first = *self.shared.state.borrow() == UpstreamState::Connecting;
        let state = match self.publish_tools(false) {
            // The others wait until it is known which names it gets.
            Ok(()) if is_first && self.withholds => return self.update_counts(),
            Ok(()) => UpstreamState::Connected,
            Err(error) => {
                tracing::error!(upstream = self.upstream.name, %error, "the registry rejected the tools of an upstream");
                let failure = Failure::new("the registry rejected its tools");
                UpstreamState::down(failure.detail(&error.to_string(), &self.confidential), None)
            }
        };
        self.set_state(state);
    }

    fn down(&mut self, failure: Failure, retry: Option<Duration>) {
        let retry_in = retry.map(|wait| format!("{:.1} s", wait.as_secs_f64()));
        tracing::warn!(upstream = self.upstream.name, %failure, retry_in, "an MCP server is down");
        self.link.down(&failure.reason);
        self.publish_down();
        self.set_state(UpstreamState::down(failure, retry));
    }

    fn publish_down(&mut self) {
        if let Err(error) = self.publish_tools(true) {
            tracing::error!(upstream = self.upstream.name, %error, "tools could not be marked as unavailable");
        }
    }

    /// Publishes the tools whose names no other upstream has, or may still get.
    fn publish_tools(&mut self, down: bool) -> Result<(), RegistryError> {
        // Before looking: what ends meanwhile is a change.
        self.first_attempts.mark_unchanged();
        let rank = self.declared.borrow().rank;
        let claims = self.set.upgrade().map(|set| set.claims(rank)).unwrap_or_default();
        self.withholds = self.publisher.publish(down, &claims)?;
        Ok(())
    }

    /// Applies the current declaration of the upstream.
    async fn apply_declaration(&mut self) {
        let declared = self.declared.borrow_and_update().clone();
        self.publisher.declare(&declared).await;
        self.upstream = declared.upstream;
    }

    fn set_state(&self, state: UpstreamState) {
        self.update_counts();
        let before = self.shared.state.send_replace(state);
        if before == UpstreamState::Connecting
            && let Some(set) = self.set.upgrade()
        {
            set.first_attempt_ended();
        }
    }

    fn update_counts(&self) {
        *self.shared.counts.lock().unwrap_or_else(PoisonError::into_inner) =
            self.publisher.counts();
        *self.shared.unmatched.lock().unwrap_or_else(PoisonError::into_inner) =
            self.publisher.unmatched();
        *self.shared.unaccepted.lock().unwrap_or_else(PoisonError::into_inner) =
            self.publisher.unaccepted();
        *self.shared.offered.lock().unwrap_or_else(PoisonError::into_inner) =
            self.publisher.offered();
    }
}
