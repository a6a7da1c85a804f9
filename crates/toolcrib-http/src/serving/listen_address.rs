//! The address of a listener: a network address or a Unix socket.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::HttpError;
use crate::serving::unix_socket;
use crate::settings::DEFAULT_PORT;

/// The prefix of a socket path.
const UNIX: &str = "unix:";

/// The address of a listener: `127.0.0.1:7777`, `[::1]:7777`, or `unix:` and the absolute path of a
/// socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// An address and a port; port 0 picks a free one.
    Tcp(SocketAddr),
    /// A Unix socket, for programs of this user on this machine. It is created at the start with
    /// mode 0600 and removed at the end.
    Unix(PathBuf),
}

impl Listen {
    /// Whether only programs on this machine can reach it.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().is_loopback(),
            Self::Unix(_) => true,
        }
    }

    /// Checks that a server could listen there now. Leaves nothing behind.
    pub fn try_out(&self) -> Result<(), HttpError> {
        match self {
            Self::Tcp(address) => TcpListener::bind(address)
                .map(drop)
                .map_err(|source| HttpError::Bind { listen: self.clone(), error: source }),
            Self::Unix(path) => unix_socket::try_out(path),
        }
    }
}

impl Default for Listen {
    /// `127.0.0.1:7777`.
    fn default() -> Self {
        SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), DEFAULT_PORT).into()
    }
}

impl From<SocketAddr> for Listen {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "{UNIX}{}", path.display()),
        }
    }
}

/// An invalid listen address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidListen {
    /// It is not an address with a port.
    #[error(
        "{text:?} is not an address with a port: write it like 127.0.0.1:{DEFAULT_PORT}, \
         [::1]:{DEFAULT_PORT} or unix:/run/user/1000/toolcrib.sock"
    )]
    Address {
        /// The text.
        text: String,
    },
    /// The path of a socket is not absolute.
    #[error("{text:?}: the path of a socket is absolute, as in unix:/run/user/1000/toolcrib.sock")]
    Relative {
        /// The text.
        text: String,
    },
}

impl FromStr for Listen {
    type Err = InvalidListen;

    fn from_str(text: &str) -> Result<Self, InvalidListen> {
        let Some(path) = text.strip_prefix(UNIX) else {
            let refused = |_| InvalidListen::Address { text: text.to_owned() };
            return text.parse().map(Self::Tcp).map_err(refused);
        };
        if Path::new(path).is_absolute() {
            Ok(Self::Unix(path.into()))
        } else {
            Err(InvalidListen::Relative { text: text.to_owned() })
        }
    }
}

impl Serialize for Listen {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Listen {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl JsonSchema for Listen {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Listen".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listen_address_round_trips() {
        for (text, is_local) in [
            ("127.0.0.1:7777", true),
            ("[::1]:0", true),
            ("0.0.0.0:80", false),
            ("unix:/run/a b/crib.sock", true),
        ] {
            let listen: Listen = text.parse().unwrap();
            assert_eq!((listen.to_string().as_str(), listen.is_local()), (text, is_local));
        }
    }

    #[test]
    fn an_invalid_listen_address_is_refused_with_a_correction() {
        for (text, said) in [
            ("localhost", "127.0.0.1:7777"),
            ("/run/crib.sock", "unix:/run"),
            ("unix:crib.sock", "absolute"),
            ("unix:", "absolute"),
        ] {
            let refused = text.parse::<Listen>().unwrap_err().to_string();
            assert!(refused.contains(said) && refused.contains(text), "{refused}");
        }
    }
}
