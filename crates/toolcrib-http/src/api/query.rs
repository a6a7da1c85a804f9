//! The query part of a URL.

use std::collections::BTreeMap;

use axum::http::Uri;

use crate::api::problem::Problem;

/// The parameters of a query, each taken once; the rest is an error.
pub(crate) struct Query(BTreeMap<String, String>);

impl Query {
    pub(crate) fn of(uri: &Uri) -> Result<Self, Problem> {
        let mut pairs = BTreeMap::new();
        for (key, value) in form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()) {
            if pairs.insert(key.clone().into_owned(), value.into_owned()).is_some() {
                return Err(Problem::unprocessable(format!("`{key}` is given twice in the query")));
            }
        }
        Ok(Self(pairs))
    }

    pub(crate) fn text(&mut self, key: &str) -> Option<String> {
        self.0.remove(key)
    }

    /// A number from 1 to `most`, or `default`.
    pub(crate) fn count(
        &mut self,
        key: &str,
        default: usize,
        most: usize,
    ) -> Result<usize, Problem> {
        let Some(text) = self.0.remove(key) else { return Ok(default) };
        let number = text.parse().ok().filter(|number| (1..=most).contains(number));
        number.ok_or_else(|| {
            Problem::unprocessable(format!(
                "`{key}` in the query is a number from 1 to {most}, not {text:?}"
            ))
        })
    }

    /// `true` or `false`; the default is `false`.
    pub(crate) fn switch(&mut self, key: &str) -> Result<bool, Problem> {
        match self.0.remove(key).as_deref() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => {
                let detail = format!("`{key}` in the query is `true` or `false`, not {other:?}");
                Err(Problem::unprocessable(detail))
            }
        }
    }

    /// Refuses parameters that were not taken.
    pub(crate) fn finish(self) -> Result<(), Problem> {
        match self.0.into_keys().next() {
            None => Ok(()),
            Some(key) => {
                Err(Problem::unprocessable(format!("this path has no query parameter `{key}`")))
            }
        }
    }
}
