//! The links of a page.

use std::collections::HashSet;

use dom_query::Document;
use serde_json::{Value, json};
use url::Url;

use super::extract::base;
use crate::untrusted::one_line;

/// The most links of a page.
const MAX_LINKS: usize = 1_000;
const MAX_URL_BYTES: usize = 2_000;

/// A link of a page.
pub(super) struct PageLink {
    pub(super) url: String,
    pub(super) text: String,
}

impl PageLink {
    pub(super) fn to_value(&self) -> Value {
        json!({"url": self.url, "text": self.text})
    }
}

/// The links of a page in their order, each address once, and how many there are.
pub(super) fn links(document: &Document, url: &Url) -> (Vec<PageLink>, usize) {
    let base = base(document, url);
    let (mut seen, mut links) = (HashSet::new(), Vec::new());
    for node in document.select("a[href], area[href]").nodes() {
        let Some(mut target) = node.attr("href").and_then(|href| base.join(href.trim()).ok())
        else {
            continue;
        };
        target.set_fragment(None);
        let is_page = ["http", "https"].contains(&target.scheme());
        if !is_page || target.as_str().len() > MAX_URL_BYTES || target == *url {
            continue;
        }
        if seen.insert(target.as_str().to_owned()) && links.len() < MAX_LINKS {
            let own = one_line(&node.text(), 150);
            let label = || node.attr("aria-label").or_else(|| node.attr("title"));
            let text = if own.is_empty() {
                label().map(|l| one_line(&l, 150)).unwrap_or_default()
            } else {
                own
            };
            links.push(PageLink { url: target.into(), text });
        }
    }
    (links, seen.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_absolute_and_each_address_is_told_once() {
        let html = "<base href='/docs/'><a href='a#x'>A\n one</a><a href='a'>again</a><a href='//b.example/'></a>\
                    <a href='javascript:x()'>no</a><a href='mailto:x@example.com'>no</a><a href='http://['>no</a>\
                    <a href='#top'>top</a><a aria-label='Icon' href='https://c.example/?q=1'><svg></svg></a>";
        let (links, all) =
            links(&Document::from(html), &Url::parse("https://a.example/docs/").unwrap());
        let found: Vec<_> =
            links.iter().map(|link| (link.url.as_str(), link.text.as_str())).collect();
        assert_eq!(
            found,
            [
                ("https://a.example/docs/a", "A one"),
                ("https://b.example/", ""),
                ("https://c.example/?q=1", "Icon"),
            ]
        );
        assert_eq!(all, 3);
    }
}
