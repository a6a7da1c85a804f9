//! Pages that break extractors.

use toolcrib_web::extract_text;
use url::Url;

fn base() -> Url {
    Url::parse("https://site.example/dir/page").expect("a URL")
}

fn text(html: &str) -> String {
    extract_text(html, &base(), false).text
}

fn markdown(html: &str) -> String {
    extract_text(html, &base(), true).text
}

/// An article of enough words to be recognized.
fn article(inside: &str) -> String {
    let paragraph = "<p>The harbour has a long history, and its pilots, who know every current, bring in ships of all \
                     sizes, by day and by night, in any weather that the sea sends.</p>";
    format!(
        "<html lang=en><head><title>Harbour - The Daily Sea</title><meta name=author content='Ada Pilot'></head><body>\
         <div class=cookie-banner role=dialog>We value your privacy. Accept all cookies</div>\
         <header><nav><ul><li><a href=/>Home</a><li><a href=/news>News</a></ul></nav></header>\
         <article><h1>Harbour</h1>{}{inside}{}</article>\
         <aside>Related: <a href=/x>Ten boats you must see</a></aside>\
         <footer>Copyright. Imprint. Newsletter sign-up</footer><script>var tracked = 1;</script></body></html>",
        paragraph.repeat(4),
        paragraph.repeat(4)
    )
}

#[test]
fn boilerplate_is_left_out() {
    for text in [text(&article("")), markdown(&article(""))] {
        assert!(text.contains("every current"), "{text}");
        for other in ["cookies", "News", "Ten boats", "Newsletter", "tracked"] {
            assert!(!text.contains(other), "{other}: {text}");
        }
    }
    let page = extract_text(&article(""), &base(), false);
    assert_eq!((page.language.as_deref(), page.byline.as_deref()), (Some("en"), Some("Ada Pilot")));
}

#[test]
fn a_page_with_less_text_than_its_request_for_consent_gives_its_own_text() {
    let consent = "<h2>We value your privacy</h2><p>We and our 842 partners store and access information on a device, such \
                   as cookies, and process personal data for personalised advertising, audience research and \
                   development of services. You may click to consent, or change your preferences.</p>";
    let main = "<main><h1>Closed on Monday</h1><p>The reading room stays closed on Monday, since the heating is \
                repaired.</p></main>";
    for (start, end) in [
        ("<div class=consent role=dialog>", "</div>"),
        ("<div role=alertdialog>", "</div>"),
        ("<dialog open>", "</dialog>"),
    ] {
        let html = format!("<title>Closed</title><body>{start}{consent}{end}{main}</body>");
        for found in [text(&html), markdown(&html)] {
            assert!(found.contains("reading room"), "{start} {found}");
            assert!(!found.contains("842 partners"), "{start} {found}");
        }
    }
}

#[test]
fn a_page_with_less_text_than_its_footer_gives_its_own_text() {
    let html = "<title>Closed</title><body><header><nav><ul><li><a href=/>Home</a></li></ul></nav></header><main>\
                <h1>Closed on Monday</h1><p>The reading room stays closed on Monday.</p></main><footer><p>Copyright 2026 \
                Example Media Group. All rights reserved.</p><ul><li><a href=/i>Imprint</a></li><li><a href=/p>Privacy \
                policy</a></li></ul><p>Subscribe to our newsletter and never miss an update.</p></footer>";
    for found in [text(html), markdown(html)] {
        assert!(found.contains("reading room") && !found.contains("Imprint"), "{found}");
    }
}

#[test]
fn tables_keep_their_cells() {
    let table = "<table><tr><th>Ship</th><th>Length</th></tr><tr><td>Aurora</td><td>120 m</td></tr>\
                 <tr><td>Borealis | II</td><td>88 m</td></tr></table>";
    let found = markdown(&article(table));
    assert!(found.contains("| Ship | Length |") && found.contains("| Aurora | 120 m |"), "{found}");
    let found = text(&article(table));
    assert!(found.contains("Aurora 120 m"), "{found}");
    // A page that is nothing but a table.
    let row = |row: usize| format!("<tr><td>row {row}</td><td>{}</td></tr>", row * row);
    let rows = (0..40).map(row).collect::<Vec<_>>().concat();
    let found = text(&format!("<title>Squares</title><body><table>{rows}</table>"));
    assert!(found.contains("row 39 1521"), "{found}");
}

#[test]
fn code_keeps_its_lines_and_indentation() {
    let code = "<pre><code class=language-rust>fn main() {\n    if a &lt; b &amp;&amp; c {\n        go();\n    }\n}</code></pre>";
    for found in [text(&article(code)), markdown(&article(code))] {
        assert!(found.contains("    if a < b && c {\n        go();"), "{found}");
    }
}

#[test]
fn texts_from_right_to_left_and_without_spaces_are_kept() {
    let arabic =
        "<p dir=rtl>هذا نص طويل عن الميناء، وعن السفن التي تدخله كل يوم، وعن البحر.</p>".repeat(8);
    assert!(
        text(&format!("<html dir=rtl lang=ar><body><main>{arabic}</main>")).contains("الميناء")
    );
    let japanese = "<p>港には長い歴史があり、水先人は毎日すべての船を導きます。</p>".repeat(8);
    assert!(text(&format!("<html lang=ja><body><div>{japanese}</div>")).contains("水先人"));
}

#[test]
fn broken_html_gives_its_words() {
    for (html, word) in [
        ("<p>one<p>two<div><span>three", "three"),
        ("<table><tr><td>cell<p>in", "cell"),
        ("<b><i>crossed</b></i> tail", "tail"),
        ("<html><body><p class=\"unclosed>lost</p><p id=x>kept</p>\"", ""),
        ("plain words without a tag", "without"),
        ("<p>&#x1F600;&bogus;&amp;amp; &#0;&#xD800; end", "end"),
        ("<!--<p>no-->yes", "yes"),
        ("<svg><p>in svg</p></svg><math><mi>x</mi></math>after", "after"),
        ("<frameset><frame src=a></frameset>", ""),
        ("\0\0<p>nul", "nul"),
        ("<noscript>Please enable JavaScript</noscript><div id=root></div>", ""),
        ("", ""),
    ] {
        assert!(text(html).contains(word), "{html}: {:?}", text(html));
        let _ = markdown(html);
    }
}

#[test]
fn links_and_pictures_become_absolute_and_scripts_in_links_go() {
    let found = markdown(
        "<main><p><a href='../a?b'>A</a> <a href='javascript:steal()'>B</a> <img src=//cdn.example/i.png alt=pic></p></main>",
    );
    assert!(found.contains("[A](https://site.example/a?b)"), "{found}");
    assert!(!found.contains("javascript"), "{found}");
}

#[test]
fn hostile_pages_end_and_overflow_no_stack() {
    let nested =
        |tag: &str, count: usize| format!("{}deep{}", format!("<{tag}>").repeat(count), "x");
    for tag in
        ["div", "blockquote", "ul><li", "b", "table><tr><td", "a href=x", "em", "section", "font"]
    {
        let html = nested(tag, 20_000);
        assert!(text(&html).contains("deep"), "{tag}");
        let _ = markdown(&html);
    }
    let wide = format!("<body>{}", "<p>word <a href=x>y</a>".repeat(60_000));
    assert!(text(&wide).contains("word"));
    let attributes = format!("<p {}>kept", "a=b ".repeat(50_000));
    assert!(text(&attributes).contains("kept"));
    let long = "x".repeat(3_000_000);
    assert!(text(&format!("<p>{long}")).len() >= 3_000_000);
}

#[test]
fn a_page_with_little_prose_is_not_cut_down_to_its_longest_paragraph() {
    let entry = |n| format!("<dt><code>option-{n}</code></dt><dd>Sets what number {n} does.</dd>");
    let entries = (0..60).map(entry).collect::<Vec<_>>().concat();
    let found = text(&format!(
        "<title>Options</title><body><main><h1>Options</h1><p>All of them.</p><dl>{entries}</dl></main>"
    ));
    assert!(found.contains("option-0") && found.contains("option-59"), "{found}");
}
