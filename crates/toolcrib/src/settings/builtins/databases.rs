//! Settings of `db_query` and `describe_database`.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolcrib_databases::{Database, Databases, SecretLookup, UrlSource};
use toolcrib_runners::{ExposeSecret as _, Secrets};
use toolcrib_tool::units::{SizeLimit, TimeLimit};

use super::without_limit;

/// A database that `db_query` can read (`databases.<name>`).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DatabaseEntry {
    /// `sqlite:PATH`, where the path is absolute, or `postgres://USER@HOST/DATABASE`. A URL with a password is a
    /// secret: `${secret.NAME}`.
    pub url: DatabaseUrl,
    /// Whether the role of a PostgreSQL database may be a superuser, who can read files of its server.
    #[serde(default)]
    pub allow_superuser: bool,
}

/// The URL of a database, or the secret that has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct DatabaseUrl(UrlSource);

impl TryFrom<String> for DatabaseUrl {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        if let Some(rest) = text.strip_prefix("${secret.") {
            let name = rest.strip_suffix('}').filter(|name| !name.is_empty());
            let wrong = "a secret is named like `${secret.NAME}`";
            return Ok(Self(UrlSource::Secret(name.ok_or(wrong)?.to_owned())));
        }
        let known = ["sqlite:", "postgres://", "postgresql://"];
        if !known.iter().any(|scheme| text.starts_with(scheme)) {
            return Err("write `sqlite:PATH`, `postgres://USER@HOST/DATABASE` or `${secret.NAME}`");
        }
        let authority =
            text.split_once("://").map_or("", |(_, rest)| rest.split('/').next().unwrap_or(rest));
        let user = authority.rsplit_once('@').map_or("", |(user, _)| user);
        if user.contains(':') || text.contains("password=") {
            // The text has the password, so it is not repeated.
            return Err("a URL with a password is a secret: write `${secret.NAME}`");
        }
        Ok(Self(UrlSource::Url(text)))
    }
}

impl From<DatabaseUrl> for String {
    fn from(url: DatabaseUrl) -> Self {
        match url.0 {
            UrlSource::Url(url) => url,
            UrlSource::Secret(name) => format!("${{secret.{name}}}"),
        }
    }
}

/// Limits of `db_query`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DbQuery {
    /// The time limit of a query; `none` for no limit except that of every call.
    pub timeout: TimeLimit,
    /// The most rows of an answer.
    #[schemars(range(min = 1))]
    pub max_rows: NonZeroUsize,
    /// The most bytes of an answer's rows.
    pub max_bytes: SizeLimit,
}

impl Default for DbQuery {
    fn default() -> Self {
        let Databases { timeout, max_rows, max_bytes, .. } = Databases::default();
        Self {
            timeout: TimeLimit(Some(timeout)),
            max_rows: NonZeroUsize::new(max_rows).unwrap_or(NonZeroUsize::MIN),
            max_bytes: SizeLimit(max_bytes as u64),
        }
    }
}

impl DbQuery {
    /// The databases with these limits, for the tools.
    pub(super) fn databases(&self, entries: &BTreeMap<String, DatabaseEntry>) -> Databases {
        let databases = Databases::default()
            .with_timeout(without_limit(self.timeout))
            .with_max_rows(self.max_rows.get())
            .with_max_bytes(usize::try_from(self.max_bytes.0).unwrap_or(usize::MAX));
        entries.iter().fold(databases, |databases, (name, entry)| {
            let url = entry.url.0.clone();
            databases.with(name, Database { url, allow_superuser: entry.allow_superuser })
        })
    }
}

/// Adds the secrets, from which URLs of databases come.
pub(crate) fn lend_secrets(
    builtins: toolcrib_builtins::Builtins,
    secrets: &Secrets,
) -> toolcrib_builtins::Builtins {
    let secrets = secrets.clone();
    let lookup = move |name: &str| {
        let value = secrets.get(name).map_err(|missing| missing.to_string())?;
        Ok(value.expose_secret().to_owned())
    };
    builtins.family_service(std::sync::Arc::new(SecretLookup::new(lookup)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_with_a_password_has_to_be_a_secret_and_is_not_repeated() {
        for fine in ["sqlite:/srv/a.db", "postgres://reader@localhost:5432/shop", "${secret.shop}"]
        {
            let url = DatabaseUrl::try_from(fine.to_owned()).expect(fine);
            assert_eq!(String::from(url), fine);
        }
        for wrong in [
            "postgres://a:SESAME@b/c",
            "postgres://a@b/c?password=SESAME",
            "mysql://a@b",
            "${secret.}",
            "${secret.a",
        ] {
            let why = DatabaseUrl::try_from(wrong.to_owned()).expect_err(wrong);
            assert!(!why.contains("SESAME"), "{why}");
        }
    }
}
