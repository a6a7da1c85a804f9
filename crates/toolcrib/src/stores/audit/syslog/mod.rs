//! The audit log as messages to syslog (RFC 5424).

mod address;
mod connection;

use std::io;

use toolcrib_core::audit::{
    AuditDelivery, AuditRecord, AuditSendError, AuditSink, AuditTransport, DeliveryState, rfc3339,
};

pub use address::SyslogAddress;
use connection::{Connection, SendError};

/// Sends every record as a message to syslog, from a thread of its own: facility 13 (log audit), severity info, the
/// application `toolcrib`, the message ID `audit`, and as text the same JSON as in the file.
///
/// A call never waits for syslog, as [`AuditDelivery`] describes. A record that is too large for one message is sent
/// without its arguments.
///
/// ```
/// use std::os::unix::net::UnixDatagram;
/// use std::time::SystemTime;
/// use toolcrib::core::audit::{AuditRecord, AuditSink};
/// use toolcrib::stores::SyslogAudit;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("log");
/// let syslog = UnixDatagram::bind(&path)?;
/// let audit = SyslogAudit::start(path.to_string_lossy().parse()?)?;
/// audit.record(&AuditRecord::new(SystemTime::UNIX_EPOCH, "call_1", "calculator"));
/// let mut message = [0; 1024];
/// let length = syslog.recv(&mut message)?;
/// let message = std::str::from_utf8(&message[..length])?;
/// assert!(message.starts_with("<110>1 1970-01-01T00:00:00.000Z "), "{message}");
/// assert!(message.contains(r#" audit - {"v":1,"#), "{message}");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SyslogAudit {
    address: SyslogAddress,
    delivery: AuditDelivery,
}

impl SyslogAudit {
    /// Starts sending to an address. Whether anybody listens there shows with the first record
    /// ([`problem`](AuditSink::problem)).
    pub fn start(address: SyslogAddress) -> io::Result<Self> {
        let transport = SyslogTransport {
            connection: Connection::new(address.clone()),
            header: format!("{} toolcrib {} audit - ", host(), std::process::id()),
        };
        let delivery = AuditDelivery::start(DeliveryState::new("syslog"), transport)?;
        Ok(Self { address, delivery })
    }

    /// Where records are sent.
    pub fn address(&self) -> &SyslogAddress {
        &self.address
    }
}

impl AuditSink for SyslogAudit {
    fn record(&self, record: &AuditRecord) {
        self.delivery.record(record);
    }

    fn lost(&self) -> u64 {
        self.delivery.lost()
    }

    fn name(&self) -> String {
        self.address.to_string()
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

/// The host's name, as a word of a header.
fn host() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let word: String = name.chars().filter(char::is_ascii_graphic).take(255).collect();
    if word.is_empty() { "-".to_owned() } else { word }
}

struct SyslogTransport {
    connection: Connection,
    /// What every message has after its time.
    header: String,
}

impl SyslogTransport {
    fn message(&self, record: &AuditRecord) -> String {
        format!("<110>1 {} {}{}", rfc3339(record.time), self.header, record.to_json())
    }
}

impl AuditTransport for SyslogTransport {
    const BATCH: usize = 1;

    fn send(&mut self, records: &[AuditRecord]) -> Result<usize, AuditSendError> {
        let Some(record) = records.first() else { return Ok(0) };
        let mut sent = self.connection.send(&self.message(record));
        if matches!(sent, Err(SendError::TooLarge))
            && let Some(short) = record.without_arguments("syslog")
        {
            sent = self.connection.send(&self.message(&short));
        }
        if matches!(sent, Err(SendError::TooLarge)) {
            sent = self.connection.send(&self.message(&record.in_brief("syslog")));
        }
        match sent {
            Ok(()) => Ok(1),
            Err(SendError::TooLarge) => {
                let reason = "a record is too large for one message".to_owned();
                Err(AuditSendError::Refused { records: 1, reason })
            }
            Err(SendError::Away(problem)) => Err(AuditSendError::Unavailable(problem)),
        }
    }
}

#[cfg(test)]
mod tests;
