//! Listeners outside of every jail: a message that arrives there has escaped.

use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Sockets of each kind, and the texts that have arrived at them.
pub(crate) struct Listeners {
    heard: Arc<Mutex<Vec<u8>>>,
    over: Arc<AtomicBool>,
    pub(crate) port: u16,
    pub(crate) datagram: PathBuf,
    pub(crate) stream: PathBuf,
    /// The names of the abstract sockets: one for streams, one for datagrams.
    pub(crate) names: [String; 2],
}

const POLL: Duration = Duration::from_millis(30);

impl Listeners {
    /// Opens them; sockets with paths are in that folder and accept messages from everybody.
    pub(crate) fn open(folder: &Path) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let heard = Arc::new(Mutex::new(Vec::new()));
        let over = Arc::new(AtomicBool::new(false));
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = |kind: &str| format!("red-team-{}-{number}-{kind}", std::process::id());
        let names = [name("stream"), name("datagram")];
        let (datagram, stream) = (folder.join("datagram"), folder.join("stream"));
        let abstract_name = |name: &str| SocketAddr::from_abstract_name(name).unwrap();

        let tcp = TcpListener::bind(("0.0.0.0", 0)).unwrap();
        let port = tcp.local_addr().unwrap().port();
        let udp = UdpSocket::bind(("0.0.0.0", port)).unwrap();
        let unix = UnixListener::bind(&stream).unwrap();
        let nameless = UnixListener::bind_addr(&abstract_name(&names[0])).unwrap();
        let datagrams = UnixDatagram::bind(&datagram).unwrap();
        let nameless_datagrams = UnixDatagram::bind_addr(&abstract_name(&names[1])).unwrap();
        for path in [&datagram, &stream] {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
        }
        tcp.set_nonblocking(true).unwrap();
        unix.set_nonblocking(true).unwrap();
        nameless.set_nonblocking(true).unwrap();
        udp.set_nonblocking(true).unwrap();
        datagrams.set_nonblocking(true).unwrap();
        nameless_datagrams.set_nonblocking(true).unwrap();

        let listeners = Self { heard, over, port, datagram, stream, names };
        listeners.watch(move |buffer| {
            let mut got = 0;
            if let Ok((mut one, _)) = tcp.accept() {
                let _ = one.set_read_timeout(Some(POLL));
                got += one.read(buffer).unwrap_or(0);
            }
            for listener in [&unix, &nameless] {
                if let Ok((mut one, _)) = listener.accept() {
                    let _ = one.set_read_timeout(Some(POLL));
                    got += one.read(&mut buffer[got..]).unwrap_or(0);
                }
            }
            got += udp.recv(&mut buffer[got..]).unwrap_or(0);
            for socket in [&datagrams, &nameless_datagrams] {
                got += socket.recv(&mut buffer[got..]).unwrap_or(0);
            }
            got
        });
        listeners
    }

    fn watch(&self, mut look: impl FnMut(&mut [u8]) -> usize + Send + 'static) {
        let (heard, over) = (Arc::clone(&self.heard), Arc::clone(&self.over));
        thread::spawn(move || {
            let mut buffer = vec![0; 64 * 1024];
            while !over.load(Ordering::Relaxed) {
                let got = look(&mut buffer);
                if got == 0 {
                    thread::sleep(POLL);
                } else {
                    heard.lock().unwrap().extend(&buffer[..got]);
                }
            }
        });
    }

    /// Whether a text has arrived; earlier messages get time to arrive.
    pub(crate) fn have_heard(&self, text: &str, wait: bool) -> bool {
        if wait {
            thread::sleep(3 * POLL);
        }
        let heard = self.heard.lock().unwrap();
        heard.windows(text.len()).any(|window| window == text.as_bytes())
    }
}

impl Drop for Listeners {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}
