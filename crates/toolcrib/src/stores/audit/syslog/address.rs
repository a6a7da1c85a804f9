//! Where syslog listens.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Where syslog listens: a Unix datagram socket by its path, or `udp://HOST:PORT` or `tcp://HOST:PORT`.
///
/// ```
/// use toolcrib::stores::SyslogAddress;
///
/// assert_eq!("/dev/log".parse::<SyslogAddress>()?.to_string(), "/dev/log");
/// assert_eq!("udp://[::1]:514".parse::<SyslogAddress>()?.to_string(), "udp://[::1]:514");
/// assert!("tcp://logs".parse::<SyslogAddress>().is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SyslogAddress {
    /// A Unix datagram socket, such as `/dev/log`.
    Socket(PathBuf),
    /// Datagrams to a host and port. Lost ones are not noticed.
    Udp(String),
    /// A connection to a host and port, each message after its length (RFC 6587).
    Tcp(String),
}

impl SyslogAddress {
    /// The path of a socket.
    pub fn path(&self) -> Option<&PathBuf> {
        match self {
            Self::Socket(path) => Some(path),
            Self::Udp(_) | Self::Tcp(_) => None,
        }
    }

    /// Connects once, sending nothing; over UDP that shows only whether there is such a host.
    pub fn try_out(&self) -> std::io::Result<()> {
        super::connection::try_out(self)
    }

    #[cfg(feature = "manifests")]
    pub(crate) fn path_mut(&mut self) -> Option<&mut PathBuf> {
        match self {
            Self::Socket(path) => Some(path),
            Self::Udp(_) | Self::Tcp(_) => None,
        }
    }
}

impl FromStr for SyslogAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let network = |address: &str| {
            let port = address.rsplit_once(':').and_then(|(host, port)| {
                (!host.is_empty()).then(|| port.parse::<u16>().ok()).flatten()
            });
            match port {
                Some(1..) => Ok(address.to_owned()),
                _ => Err(format!("`{text}` has no host and port: write it as udp://HOST:514")),
            }
        };
        match text.split_once("://") {
            Some(("udp", address)) => network(address).map(Self::Udp),
            Some(("tcp", address)) => network(address).map(Self::Tcp),
            Some((scheme, _)) => {
                Err(format!("syslog is not reached by `{scheme}`: write a path, udp:// or tcp://"))
            }
            None if text.is_empty() => {
                Err("the address is empty: write a path such as /dev/log".to_owned())
            }
            None => Ok(Self::Socket(Path::new(text).to_owned())),
        }
    }
}

impl fmt::Display for SyslogAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => write!(f, "{}", path.display()),
            Self::Udp(address) => write!(f, "udp://{address}"),
            Self::Tcp(address) => write!(f, "tcp://{address}"),
        }
    }
}

impl Serialize for SyslogAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SyslogAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for SyslogAddress {
    fn schema_name() -> Cow<'static, str> {
        "SyslogAddress".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "minLength": 1})
    }
}
