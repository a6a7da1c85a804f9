//! Sends audit records to the collector as log records, each counted if it is lost.

use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use http::{Request, Response};
use opentelemetry::InstrumentationScope;
use opentelemetry::logs::{AnyValue, LogRecord as _, Logger as _, LoggerProvider as _, Severity};
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{LogExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceResponse;
use opentelemetry_sdk::logs::{
    LogBatch, LogExporter as _, SdkLogRecord, SdkLogger, SdkLoggerProvider,
};
use prost::Message as _;
use toolcrib_core::audit::{AuditRecord, AuditSink};

use crate::exporter::Exporter;
use crate::{OtlpError, is_disabled, is_set, resource};

/// The variables that name the collector of audit records.
const ADDRESSES: [&str; 2] = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT"];

/// Records that may wait for the collector.
const QUEUE: usize = 4096;

/// Records and bytes of one request at most.
const BATCH: usize = 256;
const BATCH_BYTES: usize = 1024 * 1024;

/// A longer record is sent without its arguments.
const RECORD_BYTES: usize = 256 * 1024;

/// The pause after a failure.
const RETRY: Duration = Duration::from_secs(1);

/// How long waiting records are still sent at the end, and how long a flush waits.
const LAST: Duration = Duration::from_secs(2);

/// How long a request may take that begins after the end.
const SHORT: Duration = Duration::from_millis(200);

/// Sends each audit record as a log record (severity INFO, the record's JSON as its body), from a thread of its own.
///
/// A call never waits for the collector. Up to 4,096 records wait while it is unavailable; further ones are lost and
/// counted, and so are those that the collector rejects. Dropping it sends what waits, for two seconds at most.
#[derive(Debug)]
pub struct OtlpAudit {
    name: String,
    /// `None` only while it is dropped.
    queue: Option<SyncSender<AuditMessage>>,
    sender: Option<JoinHandle<()>>,
    state: Arc<SenderState>,
}

#[derive(Debug)]
enum AuditMessage {
    Record(Box<AuditRecord>),
    /// To be answered when everything before it is sent, or given up.
    Flush(SyncSender<()>),
}

#[derive(Debug, Default)]
struct SenderState {
    lost: AtomicU64,
    was_logged: AtomicBool,
    /// Until when waiting records are still sent, once the server ends.
    until: OnceLock<Instant>,
    /// The status of the collector's last answer; 0 if there was none.
    status: AtomicU16,
    problem: Mutex<Option<String>>,
}

impl SenderState {
    /// Whether the server has been ending for long enough.
    fn is_over(&self) -> bool {
        self.until.get().is_some_and(|until| Instant::now() >= *until)
    }

    fn lose(&self, records: u64, reason: &str) {
        if records > 0 {
            self.lost.fetch_add(records, Ordering::Relaxed);
            if !self.was_logged.swap(true, Ordering::Relaxed) {
                tracing::error!(%reason, "audit records for the collector are lost; this is logged once");
            }
        }
    }

    fn set_problem(&self, problem: Option<String>) {
        let mut known = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        match (&*known, &problem) {
            (None, Some(problem)) => {
                tracing::warn!(%problem, "audit records cannot be sent to the collector and wait");
            }
            (Some(_), None) => tracing::info!("audit records are sent to the collector again"),
            _ => {}
        }
        *known = problem;
    }
}

impl OtlpAudit {
    /// Starts sending to the collector that this process's variables name; `None` if they name none, or
    /// `OTEL_SDK_DISABLED` is `true`.
    pub fn from_environment() -> Result<Option<Self>, OtlpError> {
        let named = ADDRESSES.into_iter().rev().find(|name| is_set(name));
        match named.filter(|_| !is_disabled()) {
            Some(variable) => {
                let name = std::env::var(variable).unwrap_or_default();
                Self::start(None, without_user(&name)).map(Some)
            }
            None => Ok(None),
        }
    }

    /// Starts sending to the collector at this address, such as `http://127.0.0.1:4318`; variables configure the rest.
    pub fn to(endpoint: &str) -> Result<Self, OtlpError> {
        Self::start(Some(endpoint), without_user(endpoint))
    }

    fn start(endpoint: Option<&str>, name: String) -> Result<Self, OtlpError> {
        let state = Arc::new(SenderState::default());
        let client =
            Arc::new(WatchedClient { client: Exporter::new()?, state: Arc::clone(&state) });
        let mut exporter = LogExporter::builder().with_http().with_shared_http_client(client);
        if let Some(endpoint) = endpoint {
            exporter = exporter.with_endpoint(format!("{endpoint}/v1/logs"));
        }
        let mut exporter = exporter.build()?;
        exporter.set_resource(&resource());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (queue, messages) = sync_channel(QUEUE);
        let thread = AuditSender {
            logger: SdkLoggerProvider::builder().build().logger("toolcrib.audit"),
            scope: InstrumentationScope::builder("toolcrib.audit").build(),
            exporter,
            runtime,
            state: Arc::clone(&state),
        };
        let sender = std::thread::Builder::new()
            .name("toolcrib-audit-otlp".into())
            .spawn(move || thread.run(&messages))?;
        Ok(Self { name, queue: Some(queue), sender: Some(sender), state })
    }
}

/// An address without a user and password.
fn without_user(address: &str) -> String {
    match address.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
            let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
            let slash = if path.is_empty() { "" } else { "/" };
            let path = path.split(['?', '#']).next().unwrap_or_default();
            format!("{scheme}://{host}{slash}{path}")
        }
        None => "the OpenTelemetry collector".to_owned(),
    }
}

impl AuditSink for OtlpAudit {
    fn record(&self, record: &AuditRecord) {
        let Some(queue) = &self.queue else { return };
        if let Err(error) = queue.try_send(AuditMessage::Record(Box::new(record.clone()))) {
            self.state.lose(1, &error.to_string());
        }
    }

    fn lost(&self) -> u64 {
        self.state.lost.load(Ordering::Relaxed)
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn problem(&self) -> Option<String> {
        self.state.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn flush(&self) {
        let (done, sent) = sync_channel(1);
        let asked = self
            .queue
            .as_ref()
            .is_some_and(|queue| queue.try_send(AuditMessage::Flush(done)).is_ok());
        if asked {
            // An error means that the thread is gone, or that the collector does not answer.
            let _ = sent.recv_timeout(LAST);
        }
    }

    fn finish(&self) {
        let _ = self.state.until.set(Instant::now() + LAST);
        let Some(queue) = &self.queue else { return };
        let (done, sent) = sync_channel(1);
        // A full queue is empty after `LAST`.
        if queue.send(AuditMessage::Flush(done)).is_ok() {
            // An error means that the thread is gone.
            let _ = sent.recv_timeout(2 * LAST);
        }
    }
}

impl Drop for OtlpAudit {
    fn drop(&mut self) {
        let _ = self.state.until.set(Instant::now() + LAST);
        drop(self.queue.take());
        if let Some(sender) = self.sender.take() {
            // A panic of the thread has been reported by itself.
            let _ = sender.join();
        }
    }
}

/// The thread that sends.
struct AuditSender {
    logger: SdkLogger,
    scope: InstrumentationScope,
    exporter: LogExporter,
    runtime: tokio::runtime::Runtime,
    state: Arc<SenderState>,
}

impl AuditSender {
    fn run(self, messages: &Receiver<AuditMessage>) {
        let mut unsent = 0;
        while let Ok(first) = messages.recv() {
            let (mut records, mut bytes, mut waiting) = (Vec::new(), 0, Vec::new());
            let mut next = Some(first);
            while let Some(message) = next {
                match message {
                    AuditMessage::Record(record) => {
                        let text = body(&record);
                        bytes += text.len();
                        records.push(self.log_record(&record, text));
                    }
                    AuditMessage::Flush(done) => waiting.push(done),
                }
                let has_room = records.len() < BATCH && bytes < BATCH_BYTES;
                next = if has_room { messages.try_recv().ok() } else { None };
            }
            unsent += self.deliver(&records, unsent > 0);
            if !waiting.is_empty() {
                report_unsent(&mut unsent);
            }
            for done in waiting {
                // The caller may have stopped waiting.
                let _ = done.send(());
            }
        }
        report_unsent(&mut unsent);
    }

    fn log_record(&self, record: &AuditRecord, text: String) -> SdkLogRecord {
        let mut log = self.logger.create_log_record();
        log.set_event_name("toolcrib.audit");
        log.set_timestamp(record.time);
        log.set_observed_timestamp(SystemTime::now());
        log.set_severity_number(Severity::Info);
        log.set_severity_text("INFO");
        log.set_body(AnyValue::from(text));
        log
    }

    /// Sends records as soon as the collector accepts them. Returns how many were left when the server had to end.
    /// Once it has ended and the collector `is_given_up`, nothing is tried any more.
    fn deliver(&self, records: &[SdkLogRecord], is_given_up: bool) -> u64 {
        if records.is_empty() {
            return 0;
        }
        let count = u64::try_from(records.len()).unwrap_or(u64::MAX);
        let batch: Vec<_> = records.iter().map(|record| (record, &self.scope)).collect();
        while !(is_given_up && self.state.is_over()) {
            self.state.status.store(0, Ordering::Relaxed);
            let export = self.exporter.export(LogBatch::new(&batch));
            let sent = self.runtime.block_on(async {
                tokio::select! {
                    sent = export => Some(sent),
                    () = end_of(&self.state) => None,
                }
            });
            let problem = match sent {
                Some(Ok(())) => {
                    self.state.set_problem(None);
                    return 0;
                }
                Some(Err(error)) => error.to_string(),
                None => break,
            };
            // The collector will never accept these; others it may.
            if matches!(self.state.status.load(Ordering::Relaxed), 400 | 413 | 422) {
                self.state.lose(count, &problem);
                self.state.set_problem(Some(problem));
                return 0;
            }
            self.state.set_problem(Some(problem));
            if self.state.is_over() {
                break;
            }
            let failed_at = Instant::now();
            while failed_at.elapsed() < RETRY && !self.state.is_over() {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        self.state.lost.fetch_add(count, Ordering::Relaxed);
        count
    }
}

/// Resolves when the server has been ending for long enough; a request that begins later has a short time, too.
async fn end_of(state: &SenderState) {
    let began = Instant::now();
    while !state.is_over() || began.elapsed() < SHORT {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn report_unsent(unsent: &mut u64) {
    let records = std::mem::take(unsent);
    if records > 0 {
        tracing::error!(
            records,
            "audit records were not sent to the collector before the server ended; `audit.file` has them if it is set"
        );
    }
}

/// The JSON of a record, without its arguments if it is too long.
fn body(record: &AuditRecord) -> String {
    let text = record.to_json();
    match &record.arguments {
        Some(arguments) if text.len() > RECORD_BYTES => {
            let mut short = record.clone();
            let bytes = arguments.to_string().len();
            short.arguments = Some(format!("[{bytes} bytes, too large for the collector]").into());
            short.to_json()
        }
        _ => text,
    }
}

/// Notes the statuses of the collector's answers, and how many records it rejected.
#[derive(Debug)]
struct WatchedClient {
    client: Exporter,
    state: Arc<SenderState>,
}

#[async_trait::async_trait]
impl HttpClient for WatchedClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let answer = self.client.send_bytes(request).await?;
        self.state.status.store(answer.status().as_u16(), Ordering::Relaxed);
        if answer.status().is_success() {
            let decoded = ExportLogsServiceResponse::decode(answer.body().clone());
            let rejected = decoded.ok().and_then(|told| told.partial_success);
            if let Some(rejected) = rejected {
                let records = u64::try_from(rejected.rejected_log_records).unwrap_or_default();
                self.state.lose(records, &rejected.error_message);
            }
        }
        Ok(answer)
    }
}
