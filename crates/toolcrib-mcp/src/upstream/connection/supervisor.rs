//! The task that keeps one upstream: connects, lists, watches, connects again.

use std::collections::BTreeMap;
use std::future::pending;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::backoff::Backoff;
use super::failure::Failure;
use super::link::Link;
use crate::upstream::connection::Connection;
use crate::upstream::review::OfferedTool;
use crate::upstream::review::confidential::Confidential;
use crate::upstream::settings::Upstream;
use crate::upstream::settings::declared::Declared;
use crate::upstream::status::UpstreamState;
use crate::upstream::tool::listing::{Listed, NoList, UPSTREAM_TOOLS_MAX, list};
use crate::upstream::tool::publish::{Publisher, Unaccepted};

/// After "my tools have changed": others of the same change may follow …
const SETTLING: Duration = Duration::from_millis(20);
/// … and a server that says so all the time is asked no more often than this.
const LISTING_PAUSE: Duration = Duration::from_millis(250);
/// How long a server that left a call unanswered may take to show that it is alive.
const PROOF_LIMIT: Duration = Duration::from_secs(10);
/// It is not asked for proof while other calls run: it may do one thing at a time.
const PROOF_PAUSE: Duration = Duration::from_secs(5);
/// How often it is looked whether somebody has accepted a definition.
const ACCEPTANCE_PAUSE: Duration = Duration::from_secs(2);

/// What others see and may ask of a keeper.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) state: watch::Sender<UpstreamState>,
    pub(crate) counts: Mutex<(usize, usize)>,
    /// How many of its tools are not taken.
    pub(crate) left_out: AtomicUsize,
    /// What somebody could accept.
    pub(crate) unaccepted: Mutex<BTreeMap<String, Unaccepted>>,
    /// What the server offers, as it says it.
    pub(crate) offered: Mutex<Vec<OfferedTool>>,
    /// What was reviewed, or pins, may have changed.
    pub(crate) look_again: Notify,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            state: watch::Sender::new(UpstreamState::Connecting),
            counts: Mutex::default(),
            left_out: AtomicUsize::new(0),
            unaccepted: Mutex::default(),
            offered: Mutex::default(),
            look_again: Notify::new(),
        }
    }
}

/// Keeps one upstream until it is told to stop.
pub(crate) struct Keeper {
    pub(crate) upstream: Arc<Upstream>,
    /// What is hidden of what it says.
    pub(crate) confidential: Confidential,
    pub(crate) link: Arc<Link>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) publisher: Publisher,
    /// How it is declared now.
    pub(crate) declared: watch::Receiver<Declared>,
    pub(crate) stop: CancellationToken,
}

impl Keeper {
    /// Returns with what the server said of its tools last.
    pub(crate) async fn run(mut self) -> Vec<Value> {
        self.publisher.take().await;
        if let Some(missing) = self.upstream.missing.clone() {
            self.down(Failure::new(missing), None);
            self.rest(None).await;
            return self.publisher.into_listed();
        }
        // What was known under other settings cannot be called before it is known under these.
        self.publish_down();
        let mut backoff: Backoff = self.upstream.backoff;
        loop {
            let stop = self.stop.clone();
            let opened = tokio::select! {
                biased;
                // What has been started goes with the future.
                () = stop.cancelled() => break,
                opened = self.connect() => opened,
            };
            let since = Instant::now();
            let failure = match opened {
                Ok(connection) => match self.serve(connection).await {
                    Some(failure) => failure,
                    None => break,
                },
                Err(failure) => failure,
            };
            let pause = backoff.next(since.elapsed());
            self.down(failure, Some(pause));
            if self.rest(Some(pause)).await {
                break;
            }
        }
        self.link.down("this program ends, or does not use it any more");
        self.publisher.into_listed()
    }

    /// Does nothing for a time, or for good; whether it is to stop.
    async fn rest(&mut self, pause: Option<Duration>) -> bool {
        let stop = self.stop.clone();
        let over = async {
            match pause {
                Some(pause) => sleep(pause).await,
                None => pending().await,
            }
        };
        tokio::pin!(over);
        loop {
            tokio::select! {
                () = stop.cancelled() => return true,
                () = &mut over => return false,
                Ok(()) = self.declared.changed() => {
                    self.follow().await;
                    self.publish_down();
                    self.count();
                }
            }
        }
    }

    /// Opens a connection and takes its tools over.
    async fn connect(&mut self) -> Result<Connection, Failure> {
        let connection = Connection::open(&self.upstream, &self.confidential).await?;
        match list(&connection.live.peer, self.upstream.connect_timeout, &self.confidential).await {
            Ok(tools) => {
                // Not a moment under settings that do not hold any more.
                if self.declared.has_changed().unwrap_or(false) {
                    self.follow().await;
                }
                self.take(tools).await;
            }
            Err(NoList::Refused(failure)) => {
                connection.close(&self.confidential).await;
                return Err(failure);
            }
            Err(NoList::Silent(failure)) => {
                let ended = connection.close(&self.confidential).await;
                return Err(Failure { detail: ended.detail.or(failure.detail), ..failure });
            }
        }
        self.link.up(Arc::clone(&connection.live));
        self.publish();
        tracing::info!(
            upstream = self.upstream.name,
            tools = self.publisher.counts().0,
            "connected to an MCP server"
        );
        Ok(connection)
    }

    /// Watches a connection; returns with why it is over, or nothing if this keeper is to stop.
    async fn serve(&mut self, mut connection: Connection) -> Option<Failure> {
        let changed = Arc::clone(&connection.changed);
        let (link, shared) = (Arc::clone(&self.link), Arc::clone(&self.shared));
        let mut listed = Instant::now();
        let mut list_at: Option<Instant> = None;
        let mut proof_at: Option<Instant> = None;
        let mut outgrown = pin!(connection.outgrown(&self.upstream));
        loop {
            let wake = |at: Option<Instant>| sleep_until(at.unwrap_or_else(Instant::now));
            tokio::select! {
                () = self.stop.cancelled() => {
                    connection.close(&self.confidential).await;
                    return None;
                }
                () = connection.lost() => return Some(connection.close(&self.confidential).await),
                () = &mut outgrown => {
                    connection.close(&self.confidential).await;
                    let reason = "it is started anew: files that decide what this server runs have \
                                  come into what it may change";
                    return Some(Failure::new(reason));
                }
                () = changed.notified() => {
                    let earliest = (listed + LISTING_PAUSE).max(Instant::now() + SETTLING);
                    list_at.get_or_insert(earliest);
                }
                () = link.given_up.notified() => {
                    proof_at.get_or_insert_with(Instant::now);
                }
                () = wake(list_at), if list_at.is_some() => {
                    (list_at, listed) = (None, Instant::now());
                    let limit = self.upstream.connect_timeout;
                    if let Some(failure) = self.relist(&connection, limit).await {
                        connection.close(&self.confidential).await;
                        return Some(failure);
                    }
                }
                () = wake(proof_at), if proof_at.is_some() => {
                    if connection.live.progress.in_flight() > 0 {
                        proof_at = Some(Instant::now() + PROOF_PAUSE);
                        continue;
                    }
                    (proof_at, listed) = (None, Instant::now());
                    let limit = self.upstream.connect_timeout.min(PROOF_LIMIT);
                    if self.relist(&connection, limit).await.is_some() {
                        connection.close(&self.confidential).await;
                        return Some(Failure::new("it stopped answering"));
                    }
                }
                () = shared.look_again.notified() => self.look_again().await,
                Ok(()) = self.declared.changed() => {
                    self.follow().await;
                    self.publish();
                }
                () = sleep(ACCEPTANCE_PAUSE), if self.publisher.awaits_acceptance() => {
                    self.look_again().await;
                }
            }
        }
    }

    /// Takes the list of tools over again; fails if the server does not answer, or is to stop.
    async fn relist(&mut self, connection: &Connection, limit: Duration) -> Option<Failure> {
        let answer = tokio::select! {
            () = self.stop.cancelled() => return None,
            answer = list(&connection.live.peer, limit, &self.confidential) => answer,
        };
        match answer {
            Ok(tools) => {
                self.take(tools).await;
                self.publish();
                None
            }
            Err(NoList::Refused(failure)) => {
                tracing::warn!(upstream = self.upstream.name, %failure, "its tools stay as they are");
                None
            }
            Err(NoList::Silent(failure)) => Some(failure),
        }
    }

    /// Takes a list over, and says what of it is left out.
    async fn take(&mut self, listed: Listed) {
        let Listed { tools, left_out } = listed;
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
        let state = match self.publisher.publish(false) {
            Ok(()) => UpstreamState::Connected,
            Err(error) => {
                tracing::error!(upstream = self.upstream.name, %error, "its tools were not taken");
                let failure = Failure::new("its tools were not taken");
                UpstreamState::down(failure.detail(&error.to_string(), &self.confidential), None)
            }
        };
        self.tell(state);
    }

    fn down(&mut self, failure: Failure, retry: Option<Duration>) {
        tracing::warn!(upstream = self.upstream.name, %failure, ?retry, "an MCP server is down");
        self.link.down(&failure.reason);
        self.publish_down();
        self.tell(UpstreamState::down(failure, retry));
    }

    fn publish_down(&mut self) {
        if let Err(error) = self.publisher.publish(true) {
            tracing::error!(upstream = self.upstream.name, %error, "its tools were not withdrawn");
        }
    }

    /// Takes over how the upstream is declared now.
    async fn follow(&mut self) {
        let declared = self.declared.borrow_and_update().clone();
        self.publisher.declare(&declared).await;
        self.upstream = declared.upstream;
    }

    fn tell(&self, state: UpstreamState) {
        self.count();
        self.shared.state.send_replace(state);
    }

    fn count(&self) {
        *self.shared.counts.lock().unwrap_or_else(PoisonError::into_inner) =
            self.publisher.counts();
        *self.shared.unaccepted.lock().unwrap_or_else(PoisonError::into_inner) =
            self.publisher.unaccepted();
        *self.shared.offered.lock().unwrap_or_else(PoisonError::into_inner) =
            self.publisher.offered();
    }
}
