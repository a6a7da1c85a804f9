//! Sends audit records to the collector as log records, each counted if it is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
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
use toolcrib_core::audit::{
    AuditDelivery, AuditRecord, AuditSendError, AuditSink, AuditTransport, DeliveryState,
};

use crate::exporter::Exporter;
use crate::{OtlpError, is_disabled, is_set, resource};

/// The variables that name the collector of audit records.
const ADDRESSES: [&str; 2] = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT"];

/// Bytes of one request at most, apart from a record that is larger alone.
const BATCH_BYTES: usize = 1024 * 1024;

/// A longer record is sent without its arguments, or in brief.
const RECORD_BYTES: usize = 256 * 1024;

/// How long a request may take that begins after the end.
const SHORT: Duration = Duration::from_millis(200);

/// Sends each audit record as a log record (severity INFO, the record's JSON as its body).
///
/// A call never waits for the collector, as [`AuditDelivery`] describes. Records that the collector rejects are lost and
/// counted, too.
#[derive(Debug)]
pub struct OtlpAudit {
    name: String,
    delivery: AuditDelivery,
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
        let state = DeliveryState::new("the collector");
        let status = Arc::new(AtomicU16::new(0));
        let client = Arc::new(WatchedClient {
            client: Exporter::new()?,
            status: Arc::clone(&status),
            state: Arc::clone(&state),
        });
        let mut exporter = LogExporter::builder().with_http().with_shared_http_client(client);
        if let Some(endpoint) = endpoint {
            exporter = exporter.with_endpoint(format!("{endpoint}/v1/logs"));
        }
        let mut exporter = exporter.build()?;
        exporter.set_resource(&resource());
        let transport = OtlpTransport {
            logger: SdkLoggerProvider::builder().build().logger("toolcrib.audit"),
            scope: InstrumentationScope::builder("toolcrib.audit").build(),
            exporter,
            runtime: tokio::runtime::Builder::new_current_thread().enable_all().build()?,
            status,
            state: Arc::clone(&state),
        };
        Ok(Self { name, delivery: AuditDelivery::start(state, transport)? })
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
        self.delivery.record(record);
    }

    fn lost(&self) -> u64 {
        self.delivery.lost()
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn problem(&self) -> Option<String> {
        self.delivery.problem()
    }

    fn flush(&self) {
        self.delivery.flush();
    }

    fn finish(&self) {
        self.delivery.finish();
    }
}

struct OtlpTransport {
    logger: SdkLogger,
    scope: InstrumentationScope,
    exporter: LogExporter,
    runtime: tokio::runtime::Runtime,
    /// The status of the collector's last answer; 0 if there was none.
    status: Arc<AtomicU16>,
    state: Arc<DeliveryState>,
}

impl AuditTransport for OtlpTransport {
    const BATCH: usize = 256;

    fn send(&mut self, records: &[AuditRecord]) -> Result<usize, AuditSendError> {
        let (mut logs, mut bytes) = (Vec::new(), 0);
        for record in records {
            let text = body(record);
            bytes += text.len();
            if bytes > BATCH_BYTES && !logs.is_empty() {
                break;
            }
            logs.push(self.log_record(record, text));
        }
        let batch: Vec<_> = logs.iter().map(|log| (log, &self.scope)).collect();
        self.status.store(0, Ordering::Relaxed);
        let export = self.exporter.export(LogBatch::new(&batch));
        let sent = self.runtime.block_on(async {
            tokio::select! {
                sent = export => sent.map_err(|error| error.to_string()),
                () = end_of(&self.state) => Err("the collector does not answer".to_owned()),
            }
        });
        match sent {
            Ok(()) => Ok(logs.len()),
            // The collector will never accept these; others it may.
            Err(reason) if matches!(self.status.load(Ordering::Relaxed), 400 | 413 | 422) => {
                Err(AuditSendError::Refused { records: logs.len(), reason })
            }
            Err(problem) => Err(AuditSendError::Unavailable(problem)),
        }
    }
}

impl OtlpTransport {
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
}

/// Resolves when the server has been ending for long enough; a request that begins later has a short time, too.
async fn end_of(state: &DeliveryState) {
    let began = Instant::now();
    while !state.is_over() || began.elapsed() < SHORT {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The JSON of a record; if it is too long, without its arguments, or else in brief.
fn body(record: &AuditRecord) -> String {
    let fits = |text: &String| text.len() <= RECORD_BYTES;
    let receiver = "the collector";
    Some(record.to_json())
        .filter(fits)
        .or_else(|| Some(record.without_arguments(receiver)?.to_json()).filter(fits))
        .unwrap_or_else(|| record.in_brief(receiver).to_json())
}

/// Notes the statuses of the collector's answers, and how many records it rejected.
#[derive(Debug)]
struct WatchedClient {
    client: Exporter,
    status: Arc<AtomicU16>,
    state: Arc<DeliveryState>,
}

#[async_trait::async_trait]
impl HttpClient for WatchedClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let answer = self.client.send_bytes(request).await?;
        self.status.store(answer.status().as_u16(), Ordering::Relaxed);
        if answer.status().is_success() {
            let decoded = ExportLogsServiceResponse::decode(answer.body().clone());
            let rejected = decoded.ok().and_then(|told| told.partial_success);
            if let Some(rejected) = rejected {
                let records = usize::try_from(rejected.rejected_log_records).unwrap_or_default();
                self.state.lose(records, &rejected.error_message);
            }
        }
        Ok(answer)
    }
}
