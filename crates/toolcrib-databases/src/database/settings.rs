//! The configured databases.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The databases that `db_query` can read, as a service for the tools.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Databases {
    /// The databases by name.
    pub databases: BTreeMap<String, Database>,
    /// The time limit of a query. Default: 30 s.
    pub timeout: Duration,
    /// The most rows of an answer. Default: 200.
    pub max_rows: usize,
    /// The most bytes of an answer's rows. Default: 256 KiB.
    pub max_bytes: usize,
}

impl Default for Databases {
    fn default() -> Self {
        Self {
            databases: BTreeMap::new(),
            timeout: Duration::from_secs(30),
            max_rows: 200,
            max_bytes: 256 << 10,
        }
    }
}

impl Databases {
    /// Adds a database.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, database: Database) -> Self {
        self.databases.insert(name.into(), database);
        self
    }

    /// Sets the time limit of a query.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Sets the most rows of an answer.
    #[must_use]
    pub fn with_max_rows(self, max_rows: usize) -> Self {
        Self { max_rows, ..self }
    }

    /// Sets the most bytes of an answer's rows.
    #[must_use]
    pub fn with_max_bytes(self, max_bytes: usize) -> Self {
        Self { max_bytes, ..self }
    }
}

/// A database and how it is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Database {
    /// Its URL, or where the URL is.
    pub url: UrlSource,
    /// Whether the role of a PostgreSQL database may be a superuser, who can read files of its server. Default `false`.
    pub allow_superuser: bool,
}

/// The URL of a database: `sqlite:PATH` or `postgres://USER@HOST/DATABASE`.
#[derive(Clone, PartialEq, Eq)]
pub enum UrlSource {
    /// The URL itself.
    Url(String),
    /// The name of a secret that has it.
    Secret(String),
}

/// A URL may contain a password, so it is not shown.
impl fmt::Debug for UrlSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(_) => f.write_str("Url(…)"),
            Self::Secret(name) => f.debug_tuple("Secret").field(name).finish(),
        }
    }
}

/// How secrets are looked up, as a service for the tools: from its name to its value, or to the reason why there is none.
#[derive(Clone)]
pub struct SecretLookup(Arc<LookupFn>);

type LookupFn = dyn Fn(&str) -> Result<String, String> + Send + Sync;

impl SecretLookup {
    /// Looks up secrets with this function, at each call that needs one.
    pub fn new(lookup: impl Fn(&str) -> Result<String, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(lookup))
    }
}

impl fmt::Debug for SecretLookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretLookup")
    }
}

/// Where a database is.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Address {
    Sqlite(PathBuf),
    /// A URL or a list of settings, as `PostgreSQL` reads it.
    Postgres(String),
}

impl Database {
    /// Its address, or why there is none.
    pub(crate) fn address(&self, secrets: Option<&SecretLookup>) -> Result<Address, String> {
        let url = match (&self.url, secrets) {
            (UrlSource::Url(url), _) => url.clone(),
            (UrlSource::Secret(name), Some(lookup)) => {
                (lookup.0)(name).map_err(|why| format!("the secret `{name}` is missing: {why}"))?
            }
            (UrlSource::Secret(name), None) => {
                return Err(format!("the secret `{name}` is missing"));
            }
        };
        address(&url).ok_or_else(|| {
            "its URL is neither sqlite:PATH nor postgres://USER@HOST/DATABASE".to_owned()
        })
    }
}

fn address(url: &str) -> Option<Address> {
    if let Some(path) = url.strip_prefix("sqlite:") {
        let path = path.strip_prefix("//").unwrap_or(path);
        return (!path.is_empty()).then(|| Address::Sqlite(path.into()));
    }
    let is_postgres = url.starts_with("postgres://") || url.starts_with("postgresql://");
    is_postgres.then(|| Address::Postgres(url.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_their_engine_and_are_not_shown() {
        assert!(address("sqlite:data/shop.db") == Some(Address::Sqlite("data/shop.db".into())));
        assert!(address("sqlite:///srv/shop.db") == Some(Address::Sqlite("/srv/shop.db".into())));
        assert!(matches!(address("postgresql://a@b/c"), Some(Address::Postgres(_))));
        for wrong in ["", "sqlite:", "mysql://a@b/c", "/srv/shop.db"] {
            assert!(address(wrong).is_none(), "{wrong}");
        }
        let database = Database {
            url: UrlSource::Url("postgres://a:SESAME@b".into()),
            allow_superuser: false,
        };
        assert!(!format!("{database:?}").contains("SESAME"));
    }
}
