//! What a service manager such as systemd learns (`sd_notify`): ready, reloading, stopping, and signs of life.

use std::ffi::OsString;
use std::io;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use tokio::task::JoinHandle;

/// The socket that the service manager listens on, and how often it wants to hear from the server.
const SOCKET: &str = "NOTIFY_SOCKET";
const WATCHDOG_MICROS: &str = "WATCHDOG_USEC";
const WATCHDOG_PROCESS: &str = "WATCHDOG_PID";

/// The service manager that started this server, if one did that wants to be told about it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServiceManager {
    address: Option<SocketAddr>,
    /// The time without a sign of life after which it restarts the server.
    patience: Option<Duration>,
}

impl ServiceManager {
    /// The one that the environment names.
    pub(crate) fn from_environment() -> Self {
        let Some(name) = std::env::var_os(SOCKET).filter(|name| !name.is_empty()) else {
            return Self::default();
        };
        let address = address(&name).inspect_err(|error| {
            tracing::warn!("the service manager is not told that the server is ready: {error}");
        });
        let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
        // Without a process id it means every process that sees the variable.
        let is_meant =
            number(WATCHDOG_PROCESS).is_none_or(|id| id == u64::from(std::process::id()));
        let patience = number(WATCHDOG_MICROS).filter(|micros| is_meant && *micros > 0);
        Self { address: address.ok(), patience: patience.map(Duration::from_micros) }
    }

    /// Calls are answered from now on.
    pub(crate) fn ready(&self, status: &str) {
        self.tell(&format!("READY=1\nSTATUS={}", one_line(status)));
    }

    /// The config and the manifests are read again; [`Self::ready`] ends it.
    pub(crate) fn reloading(&self) {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let micros = now.tv_sec.saturating_mul(1_000_000).saturating_add(now.tv_nsec / 1_000);
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={micros}"));
    }

    /// New calls are refused.
    pub(crate) fn stopping(&self) {
        self.tell("STOPPING=1\nSTATUS=waiting for running calls");
    }

    /// Gives signs of life twice as often as the service manager expects them, until the task is aborted. They come
    /// from a task like any other, so that they end when no task is run any more. Must be called on a runtime.
    pub(crate) fn begin_signs_of_life(&self) -> Option<JoinHandle<()>> {
        let patience = self.patience.filter(|_| self.address.is_some())?;
        let manager = self.clone();
        Some(tokio::spawn(async move {
            let mut ticks = tokio::time::interval(patience / 2);
            loop {
                ticks.tick().await;
                manager.tell("WATCHDOG=1");
            }
        }))
    }

    /// What cannot be sent is lost: the server is there for its clients.
    fn tell(&self, state: &str) {
        let Some(address) = &self.address else { return };
        let sent = UnixDatagram::unbound().and_then(|socket| {
            // A manager that does not read must not hold the server up.
            socket.set_nonblocking(true)?;
            socket.send_to_addr(state.as_bytes(), address)
        });
        if let Err(error) = sent {
            tracing::debug!("the service manager was not told {state:?}: {error}");
        }
    }
}

/// The address in `NOTIFY_SOCKET`: a path, or `@` and the name of an abstract socket.
fn address(name: &OsString) -> io::Result<SocketAddr> {
    #[cfg(target_os = "linux")]
    if let Some(name) = name.as_encoded_bytes().strip_prefix(b"@") {
        use std::os::linux::net::SocketAddrExt as _;
        return SocketAddr::from_abstract_name(name);
    }
    SocketAddr::from_pathname(name)
}

/// A status is one line.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_cannot_bring_a_state_of_its_own() {
        assert_eq!(one_line("serves\nSTOPPING=1  now"), "serves STOPPING=1 now");
    }

    #[test]
    fn paths_and_abstract_names_are_addresses() {
        let path = address(&"/run/systemd/notify".into()).expect("a path");
        assert_eq!(path.as_pathname(), Some(std::path::Path::new("/run/systemd/notify")));
        #[cfg(target_os = "linux")]
        assert!(address(&"@toolcrib/notify".into()).expect("a name").as_pathname().is_none());
    }
}
