//! A connection to syslog, made when it is first needed and again after a failure.

use std::io::{self, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use rustix::io::Errno;

use super::SyslogAddress;

/// How long connecting and sending one message take at most.
const PATIENCE: Duration = Duration::from_secs(2);

/// The largest datagram: what a receiver of syslog over UDP should accept and every network carries.
const UDP_BYTES: usize = 8 * 1024;

/// The largest message of a socket or connection.
const MESSAGE_BYTES: usize = 64 * 1024;

/// Why a message was not sent.
pub(super) enum SendError {
    /// One message cannot hold it.
    TooLarge,
    /// Nobody takes messages now.
    Away(String),
}

pub(super) struct Connection {
    address: SyslogAddress,
    open: Option<Open>,
}

enum Open {
    Unix(UnixDatagram),
    Udp(UdpSocket),
    Tcp(TcpStream),
}

impl Connection {
    pub(super) fn new(address: SyslogAddress) -> Self {
        Self { address, open: None }
    }

    /// Sends one message.
    pub(super) fn send(&mut self, message: &str) -> Result<(), SendError> {
        let max = match self.address {
            SyslogAddress::Udp(_) => UDP_BYTES,
            SyslogAddress::Socket(_) | SyslogAddress::Tcp(_) => MESSAGE_BYTES,
        };
        if message.len() > max {
            return Err(SendError::TooLarge);
        }
        // Syslog may have been restarted since: a second attempt connects anew.
        let attempts = 1 + usize::from(self.open.is_some());
        let mut failure = None;
        for _ in 0..attempts {
            match self.attempt(message.as_bytes()) {
                Ok(()) => return Ok(()),
                Err(error) if error.raw_os_error() == Some(Errno::MSGSIZE.raw_os_error()) => {
                    return Err(SendError::TooLarge);
                }
                Err(error) => {
                    self.open = None;
                    failure = Some(error.to_string());
                }
            }
        }
        Err(SendError::Away(failure.unwrap_or_default()))
    }

    fn attempt(&mut self, message: &[u8]) -> io::Result<()> {
        let open = match &mut self.open {
            Some(open) => open,
            none => none.insert(Open::to(&self.address)?),
        };
        match open {
            Open::Unix(socket) => socket.send(message).map(drop),
            Open::Udp(socket) => socket.send(message).map(drop),
            Open::Tcp(stream) => {
                let mut framed = format!("{} ", message.len()).into_bytes();
                framed.extend_from_slice(message);
                stream.write_all(&framed)
            }
        }
    }
}

/// Connects, and ends the connection.
pub(super) fn try_out(address: &SyslogAddress) -> io::Result<()> {
    Open::to(address).map(drop)
}

impl Open {
    fn to(address: &SyslogAddress) -> io::Result<Self> {
        let nobody = || io::Error::new(io::ErrorKind::NotFound, "the host has no address");
        match address {
            SyslogAddress::Socket(path) => {
                let socket = UnixDatagram::unbound()?;
                socket.connect(path)?;
                socket.set_write_timeout(Some(PATIENCE))?;
                Ok(Self::Unix(socket))
            }
            SyslogAddress::Udp(host) => {
                let to = host.to_socket_addrs()?.next().ok_or_else(nobody)?;
                let own = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
                let socket = UdpSocket::bind(own)?;
                socket.connect(to)?;
                Ok(Self::Udp(socket))
            }
            SyslogAddress::Tcp(host) => {
                let to = host.to_socket_addrs()?.next().ok_or_else(nobody)?;
                let stream = TcpStream::connect_timeout(&to, PATIENCE)?;
                stream.set_write_timeout(Some(PATIENCE))?;
                Ok(Self::Tcp(stream))
            }
        }
    }
}
