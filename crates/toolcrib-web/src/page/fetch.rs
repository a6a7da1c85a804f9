//! Fetches one page: cache, conditional request, redirects, size, encoding.

use std::sync::Arc;

use toolcrib_net::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use toolcrib_net::{Method, NamedBy, Request, Response, StatusCode, Target};
use toolcrib_tool::ToolError;
use url::Url;

use super::cache::{Owner, Validators, fresh_for};
use super::charset::decoded;
use crate::failure;
use crate::service::WebState;
use crate::untrusted::shortened;

const ACCEPTED: &str = "text/html,application/xhtml+xml,text/markdown;q=0.9,text/plain;q=0.9,application/xml;q=0.8,\
     application/json;q=0.8,*/*;q=0.1";

/// What the text of a page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Media {
    Html,
    /// Text to be shown as it is: plain text, Markdown, JSON, XML, source code.
    Plain,
}

/// A page whose text can be read.
#[derive(Debug)]
pub(crate) struct Page {
    /// The URL after the last redirect.
    pub(crate) url: Url,
    pub(crate) media: Media,
    pub(crate) media_type: String,
    pub(crate) charset: &'static str,
    pub(crate) bytes: usize,
    pub(crate) text: String,
}

#[cfg(test)]
impl Page {
    /// A page of plain text.
    pub(super) fn of_text(url: &str, text: String) -> Self {
        let url = Url::parse(url).unwrap();
        let media_type = "text/plain".to_owned();
        Self { url, media: Media::Plain, media_type, charset: "UTF-8", bytes: text.len(), text }
    }
}

/// Whether a page came from its server or from the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FetchedFrom {
    Server,
    Cache,
    /// The server said that the cached page has not changed.
    Unchanged,
}

impl FetchedFrom {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Cache => "cache",
            Self::Unchanged => "cache, unchanged at the server",
        }
    }
}

/// A URL as an error shows it.
pub(crate) fn shown(url: &str) -> String {
    shortened(url, 200).into_owned()
}

/// Checks a URL that a model sent.
pub(crate) fn target(url: &str) -> Result<Target, ToolError> {
    let url = url.trim();
    let text = url.split_once('#').map_or(url, |(before, _)| before);
    Target::parse(text, NamedBy::Anybody)
        .map_err(|refusal| failure::of_page(refusal.into(), &shown(url)))
}

/// Fetches a page, or takes it from the cache of this owner.
pub(crate) async fn fetch(
    web: &WebState,
    owner: &Owner,
    target: &Target,
) -> Result<(Arc<Page>, FetchedFrom), ToolError> {
    let url = target.url().as_str();
    let cached = web.cache.get(owner, url);
    if let Some(cached) = cached.as_ref().filter(|cached| cached.is_fresh) {
        return Ok((Arc::clone(&cached.page), FetchedFrom::Cache));
    }
    let mut request = Request::new(Method::GET, target.clone())
        .header(ACCEPT, HeaderValue::from_static(ACCEPTED));
    for (name, value) in cached.iter().flat_map(|cached| cached.validators.conditions()) {
        request = request.header(name, value);
    }
    let response = {
        let _turn = web.hosts.permit(&target.host()).await;
        web.pages.send(request).await
    };
    let response = response.map_err(|error| failure::of_page(error, &shown(url)))?;
    let fresh = fresh_for(&response, web.settings.pages.cache_ttl);
    if response.status == StatusCode::NOT_MODIFIED
        && let Some(cached) = cached
    {
        web.cache.put(owner, url, &cached.page, cached.validators, fresh);
        return Ok((cached.page, FetchedFrom::Unchanged));
    }
    if !response.status.is_success() {
        return Err(failure::of_status(&response, &shown(url)));
    }
    let page = Arc::new(read(&response, &shown(url))?);
    web.cache.put(owner, url, &page, Validators::of(&response), fresh);
    Ok((page, FetchedFrom::Server))
}

/// The text of a response, or why it has none.
fn read(response: &Response, shown: &str) -> Result<Page, ToolError> {
    let content_type = response.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let content_type = content_type.unwrap_or_default();
    let body = &response.body;
    let media_type = response.media_type().unwrap_or_else(|| sniffed(body).to_owned());
    let media = media(&media_type, body).ok_or_else(|| {
        let what =
            format!("{shown} is {media_type} ({} bytes), which has no text to read", body.len());
        ToolError::execution(what).with_hint(
            "Look for a page with the same content, such as an HTML version or an abstract.",
        )
    })?;
    let is_markup = media == Media::Html || media_type.ends_with("xml");
    let (text, charset) = decoded(body, content_type, is_markup);
    let url = response.target.url().clone();
    Ok(Page { url, media, media_type, charset, bytes: body.len(), text })
}

fn media(media_type: &str, body: &[u8]) -> Option<Media> {
    match media_type {
        "text/html" | "application/xhtml+xml" => Some(Media::Html),
        "application/json"
        | "application/xml"
        | "application/javascript"
        | "application/yaml"
        | "application/x-yaml"
        | "application/toml"
        | "application/sql"
        | "application/x-sh" => Some(Media::Plain),
        "image/svg+xml" => None,
        text if text.starts_with("text/") || text.ends_with("+json") || text.ends_with("+xml") => {
            Some(Media::Plain)
        }
        // Servers name these for files whose type they do not know.
        "application/octet-stream" | "binary/octet-stream" => match sniffed(body) {
            "text/html" => Some(Media::Html),
            "text/plain" => Some(Media::Plain),
            _ => None,
        },
        _ => None,
    }
}

/// The type that a body without one has.
fn sniffed(body: &[u8]) -> &'static str {
    let head = &body[..body.len().min(512)];
    let start =
        String::from_utf8_lossy(head).trim_start_matches('\u{feff}').trim_start().to_lowercase();
    if ["<!doctype html", "<html", "<head", "<body", "<!--"]
        .iter()
        .any(|tag| start.starts_with(tag))
    {
        return "text/html";
    }
    if head.iter().any(|byte| matches!(byte, 0..=8 | 14..=26 | 28..=31)) {
        return "application/octet-stream";
    }
    "text/plain"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_without_text_are_told_from_text() {
        for (media_type, body, expected) in [
            ("text/html", &b""[..], Some(Media::Html)),
            ("application/xhtml+xml", b"", Some(Media::Html)),
            ("application/ld+json", b"{}", Some(Media::Plain)),
            ("application/rss+xml", b"<rss/>", Some(Media::Plain)),
            ("text/x-rust", b"fn", Some(Media::Plain)),
            ("application/pdf", b"%PDF", None),
            ("image/png", b"\x89PNG", None),
            ("image/svg+xml", b"<svg/>", None),
            ("application/octet-stream", b"plain words", Some(Media::Plain)),
            ("application/octet-stream", b" <!DOCTYPE html><p>", Some(Media::Html)),
            ("application/octet-stream", b"\x7fELF\x02\x01\x01\x00", None),
        ] {
            assert_eq!(media(media_type, body), expected, "{media_type}");
        }
        assert_eq!(sniffed(b"\xef\xbb\xbf<HTML>"), "text/html");
    }
}
