//! The main content of a page, without menus, banners and other things that repeat on every page.

use std::cell::Cell;
use std::collections::HashSet;

use dom_query::{Document, NodeRef};
use dom_smoothie::{Article, CandidateSelectMode, Config, Readability, TextMode};
use url::Url;

use super::document::{MAX_DEPTH, parsed, stripped};
use crate::untrusted::one_line;

/// Pages with more nodes are not searched for their main content: that takes more than linear time.
const MAX_NODES: usize = 150_000;
/// Elements that are no content of a page, whatever is in them.
const NO_CONTENT: &str = "script, style, noscript, template, iframe, object, embed, svg, canvas, form, button, select, \
                          nav, dialog, [hidden], [aria-hidden=true], [role=navigation], [role=search], \
                          [role=banner], [role=contentinfo], [role=dialog], [role=alertdialog]";
/// Elements that are over the page, such as requests for consent. A short page has less text than they have.
const OVER_THE_PAGE: &str = "dialog, [role=dialog], [role=alertdialog]";
/// Elements that are no content unless an article has them.
const AROUND: &str = "header, footer, aside";
/// Where authors say that the content is, the most exact first.
const MAIN: [&str; 4] = ["main", "[role=main]", "article", "#content"];
/// The share of the page's own text that the main content must have, in percent. Lists, tables and reference pages are
/// cut down to less by what works for articles.
const MIN_SHARE: usize = 35;

/// The text of a page and what the page says about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageText {
    /// The title; empty if there is none.
    pub title: String,
    /// The main content.
    pub text: String,
    /// Who wrote it.
    pub byline: Option<String>,
    /// When it was published, as the page writes it.
    pub published: Option<String>,
    /// The language, as the page names it.
    pub language: Option<String>,
    /// A summary by its author.
    pub description: Option<String>,
    /// The name of the site.
    pub site: Option<String>,
}

/// The main content of an HTML page, as Markdown or as plain text. Links become absolute. It takes time in proportion to
/// the page's size, and never fails: a page without a recognizable content gives all of its text, and one that is built to
/// be expensive gives its words.
pub fn extract_text(html: &str, url: &Url, markdown: bool) -> PageText {
    let Some(document) = parsed(html) else {
        return PageText { text: stripped(html), ..PageText::default() };
    };
    // Markdown is written by recursion.
    if document.tree.len() > MAX_NODES || depth(&document) > MAX_DEPTH {
        return plain(&document);
    }
    let (own, is_named, whole) = own_text(&document.clone(), url, markdown);
    document.select(OVER_THE_PAGE).remove();
    let article = article(document, url, markdown);
    let mut page = whole;
    let Some(article) = article else {
        page.text = own;
        return page;
    };
    let found = words(&article.text_content);
    let is_main = found * 100 >= words(&own) * MIN_SHARE
        && (!is_named || is_mostly_in(&article.text_content, &own));
    page.text = if is_main { article.text_content.trim().to_owned() } else { own };
    page.title =
        Some(one_line(&article.title, 300)).filter(|t| !t.is_empty()).unwrap_or(page.title);
    let line =
        |text: Option<String>| text.map(|text| one_line(&text, 300)).filter(|t| !t.is_empty());
    page.byline = line(article.byline);
    page.published = line(article.published_time);
    page.site = line(article.site_name);
    page.description = page.description.or(line(article.excerpt));
    page.language = line(article.lang).or(page.language);
    page
}

/// What a reader mode makes of the page.
fn article(document: Document, url: &Url, markdown: bool) -> Option<Article> {
    let config = Config {
        candidate_select_mode: CandidateSelectMode::DomSmoothie,
        text_mode: if markdown { TextMode::Markdown } else { TextMode::Formatted },
        ..Config::default()
    };
    Readability::with_document(document, Some(url.as_str()), Some(config)).ok()?.parse().ok()
}

/// The whole text of a page without what is around the content, whether the page names the place of its content, and what
/// the page says about itself.
fn own_text(document: &Document, url: &Url, markdown: bool) -> (String, bool, PageText) {
    let about = about(document);
    document.select(NO_CONTENT).remove();
    let main = MAIN.iter().map(|place| document.select(place)).find(|found| found.length() == 1);
    let is_main = main.is_some();
    let place = main.and_then(|found| found.nodes().first().copied()).or_else(|| document.body());
    let Some(place) = place else { return (String::new(), false, about) };
    if !is_main {
        document.select(AROUND).remove();
    }
    let base = base(document, url);
    absolute(document, &base);
    let text = if markdown { place.md(None) } else { place.formatted_text() };
    (text.trim().to_owned(), is_main, about)
}

/// All text of a page that is too large or nests too deeply for more.
fn plain(document: &Document) -> PageText {
    let about = about(document);
    document.select("script, style, noscript, template").remove();
    let text = document.body().map(|body| body.formatted_text().trim().to_owned());
    PageText { text: text.unwrap_or_default(), ..about }
}

fn about(document: &Document) -> PageText {
    let meta = |selector: &str| {
        let value = document.select(selector).attr("content")?;
        Some(one_line(&value, 300)).filter(|text| !text.is_empty())
    };
    let title = one_line(&document.select_single("title").text(), 300);
    let heading = || one_line(&document.select_single("h1").text(), 300);
    PageText {
        title: if title.is_empty() { heading() } else { title },
        language: document.select("html").attr("lang").map(|lang| one_line(&lang, 40)),
        description: meta("meta[name=description]")
            .or_else(|| meta("meta[property='og:description']")),
        site: meta("meta[property='og:site_name']"),
        ..PageText::default()
    }
}

/// The address that relative links are relative to.
pub(super) fn base(document: &Document, url: &Url) -> Url {
    let written = document.select("base[href]").attr("href");
    written.and_then(|base| url.join(base.trim()).ok()).unwrap_or_else(|| url.clone())
}

/// Makes links and the sources of pictures absolute; pictures inside the page's text are left out.
fn absolute(document: &Document, base: &Url) {
    for (selector, name) in [("a[href]", "href"), ("img[src]", "src")] {
        for node in document.select(selector).nodes() {
            let Some(written) = node.attr(name) else { continue };
            match base.join(written.trim()) {
                Ok(url) if ["http", "https", "mailto"].contains(&url.scheme()) => {
                    node.set_attr(name, url.as_str());
                }
                _ => node.remove_attr(name),
            }
        }
    }
}

/// How deep elements nest.
fn depth(document: &Document) -> usize {
    let deepest = Cell::new(0);
    let mut open: Vec<(NodeRef<'_>, usize)> = vec![(document.root(), 0)];
    while let Some((node, depth)) = open.pop() {
        deepest.set(deepest.get().max(depth));
        open.extend(node.children_it(false).map(|child| (child, depth + 1)));
    }
    deepest.get()
}

/// Whether at least half of the words of a text are in another. On a page with little text, a reader mode can prefer what is
/// around the content.
fn is_mostly_in(part: &str, whole: &str) -> bool {
    let known: HashSet<&str> = whole.split_whitespace().collect();
    let shared = part.split_whitespace().filter(|word| known.contains(word)).count();
    shared * 2 >= words(part)
}

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}
