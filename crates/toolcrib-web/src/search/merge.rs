//! Merges the results of several providers: each page once, the best first.

use std::collections::HashMap;

use serde_json::{Value, json};
use url::Url;

use super::provider::Found;

/// How quickly the weight of a rank falls: the usual constant of reciprocal rank fusion.
const RANK_OFFSET: f64 = 60.0;
/// Parameters that say where a visitor comes from and change nothing on the page.
const TRACKING: [&str; 12] = [
    "fbclid", "gclid", "dclid", "msclkid", "mc_cid", "mc_eid", "igshid", "yclid", "gbraid",
    "wbraid", "ref_src", "srsltid",
];

/// A page that one or more providers found.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MergedResult {
    pub(super) title: String,
    pub(super) url: String,
    pub(super) snippet: String,
    pub(super) published: Option<String>,
    pub(super) providers: Vec<&'static str>,
    score: f64,
}

impl MergedResult {
    pub(super) fn to_value(&self) -> Value {
        let mut value = json!({
            "title": self.title,
            "url": self.url,
            "snippet": self.snippet,
            "providers": self.providers,
        });
        if let Some(published) = &self.published {
            value["published"] = published.as_str().into();
        }
        value
    }
}

/// The best pages: a page is better the earlier it comes and the more providers found it. Only `http` and `https` addresses count.
pub(super) fn merged(answers: Vec<(&'static str, Vec<Found>)>, limit: usize) -> Vec<MergedResult> {
    let mut results: Vec<MergedResult> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for (provider, found) in answers {
        let mut rank = 0.0;
        for one in found {
            let Some((key, url)) = canonical(&one.url) else { continue };
            rank += 1.0;
            let score = 1.0 / (RANK_OFFSET + rank);
            let Some(&at) = known.get(&key) else {
                known.insert(key, results.len());
                let Found { title, snippet, published, .. } = one;
                let title = if title.is_empty() { url.clone() } else { title };
                let providers = vec![provider];
                results.push(MergedResult { title, url, snippet, published, providers, score });
                continue;
            };
            let Some(same) = results.get_mut(at) else { continue };
            if !same.providers.contains(&provider) {
                same.providers.push(provider);
                same.score += score;
            }
            if one.snippet.len() > same.snippet.len() {
                same.snippet = one.snippet;
            }
            same.published = same.published.take().or(one.published);
        }
    }
    results.sort_by(|one, other| other.score.total_cmp(&one.score));
    results.truncate(limit);
    results
}

/// What two addresses of one page have in common, and the address to show.
fn canonical(address: &str) -> Option<(String, String)> {
    let mut url = Url::parse(address.trim()).ok()?;
    if !["http", "https"].contains(&url.scheme()) {
        return None;
    }
    let host = url.host_str()?.to_owned();
    let mut parameters: Vec<(String, String)> = url
        .query_pairs()
        .filter(|(name, _)| !name.starts_with("utm_") && !TRACKING.contains(&name.as_ref()))
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect();
    if url.query().is_some() && parameters.len() < url.query_pairs().count() {
        url.set_query(None);
        if !parameters.is_empty() {
            url.query_pairs_mut().extend_pairs(&parameters);
        }
    }
    parameters.sort();
    let host = host.strip_prefix("www.").unwrap_or(&host);
    let path = url.path().trim_end_matches('/');
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let key = format!("{host}{port}{path}?{parameters:?}");
    // A fragment may be part of the address of pages made by scripts.
    let fragment = url.fragment().filter(|fragment| fragment.starts_with(['!', '/']));
    let key = fragment.map_or(key.clone(), |fragment| format!("{key}#{fragment}"));
    Some((key, url.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(url: &str) -> Found {
        Found { title: url.to_owned(), url: url.to_owned(), ..Found::default() }
    }

    #[test]
    fn spellings_of_one_address_are_one_page() {
        let same = [
            "https://www.example.com/a/",
            "http://example.com/a",
            "https://EXAMPLE.com:443/a?utm_source=x&gclid=1",
            "https://example.com/a#part",
        ];
        let answers = vec![("searxng", same.map(found).into())];
        let results = merged(answers, 10);
        assert_eq!(results.len(), 1, "{results:?}");
        let different = [
            "https://example.com/a?page=2",
            "https://example.com/A",
            "https://example.com:8443/a",
            "https://app.example.com/#/settings",
            "https://app.example.com/#/users",
            "javascript:alert(1)",
        ];
        assert_eq!(merged(vec![("brave", different.map(found).into())], 10).len(), 5);
        let shown = merged(vec![("brave", vec![found("https://e.example/?b=1&utm_id=2&a=3")])], 1);
        assert_eq!(shown[0].url, "https://e.example/?b=1&a=3");
    }

    #[test]
    fn pages_that_several_providers_found_come_first() {
        let answers = vec![
            ("searxng", ["https://a.example/", "https://b.example/"].map(found).into()),
            ("brave", ["https://c.example/", "https://b.example"].map(found).into()),
        ];
        let results = merged(answers, 2);
        assert_eq!(results[0].url, "https://b.example/");
        assert_eq!(results[0].providers, ["searxng", "brave"]);
        assert_eq!(results[1].url, "https://a.example/");
    }
}
